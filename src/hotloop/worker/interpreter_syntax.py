"""Python syntax that means something else inside a Triton kernel than in Python.

In a compiled kernel `and`, `or` and `not` on tensors work element by element. In the interpreter
the kernel is plain Python, where the truth value of a block decides which operand survives, so
`a == b and i < j` silently becomes `i < j`, and a branch on a block is always taken. The
transformer here turns those operators and conditions into calls of the functions below; Triton's
own rewriting of assignments and comparisons is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as _stock

LOGICAL_NAME = "_interpreted_logical"
NOT_NAME = "_interpreted_not"
CONDITION_NAME = "_interpreted_condition"


def logical(method: str, *operands: Callable[[], Any]) -> Any:
    """Evaluate `and` or `or` as a kernel does.

    Plain values short-circuit as in Python; tensors are combined element by element.

    Args:
        method: `logical_and` or `logical_or`.
        operands: thunks, evaluated from left to right.
    """
    tensors: list[Any] = []
    value: Any = None
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) == (method == "logical_or"):
            return value
    if not tensors:
        return value
    result = tensors[0]
    for tensor in tensors[1:]:
        result = getattr(result, method)(tensor)
    return result


def logical_not(value: Any) -> Any:
    """Evaluate `not` as a kernel does."""
    return value.__not__() if isinstance(value, tl.tensor) else not value


def condition(value: Any) -> Any:
    """Pass on the condition of an `if`, `while` or conditional expression.

    Raises:
        ValueError: the condition is a block; a compiled kernel cannot branch on one either.
    """
    if isinstance(value, tl.tensor) and value.handle.data.size != 1:
        raise ValueError(
            f"expected a scalar condition, got a block of shape {value.handle.data.shape}; reduce "
            "it first (tl.max, tl.sum) or select with tl.where"
        )
    return value


class KernelSyntax(_stock.ASTTransformer):
    """Triton's rewriting, plus element-wise logical operators and checked conditions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Rewrite `a and b` to a call with one thunk an operand."""
        self.generic_visit(node)
        method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        thunks = [ast.Lambda(args=nothing, body=value) for value in node.values]
        return self._call(node, LOGICAL_NAME, [ast.Constant(value=method), *thunks])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Rewrite `not a` to a call."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return self._call(node, NOT_NAME, [node.operand])

    def visit_If(self, node: ast.If) -> ast.AST:
        """Check the condition of an `if`."""
        return self._checked(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Check the condition of a `while`."""
        return self._checked(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Check the condition of a conditional expression."""
        return self._checked(node)

    def _checked(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = self._call(node.test, CONDITION_NAME, [node.test])
        checked: ast.AST = node
        return checked

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Visit the value too, which Triton 3.6 does not do, then rewrite as Triton does."""
        node.value = self.visit(node.value)
        result: ast.AST = super().visit_Assign(node)
        return result

    @staticmethod
    def _call(node: ast.AST, name: str, args: list[Any]) -> ast.AST:
        function = ast.Name(id=name, ctx=ast.Load())
        return ast.copy_location(ast.Call(func=function, args=args, keywords=[]), node)


INJECTED: dict[str, Any] = {
    LOGICAL_NAME: logical,
    NOT_NAME: logical_not,
    CONDITION_NAME: condition,
}
"""What a rewritten kernel refers to, by the name it uses."""
