"""Arithmetic on values: signs, missing terms and factors, functions and their order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import VALUE, Site, language_call
from benchmarks.mutation.writing import renamed, text

AT_VALUES = frozenset({VALUE})
UNARY = frozenset({
    "exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "abs", "sigmoid", "erf", "tanh",
    "sin", "cos", "floor", "ceil", "log1p",
})  # fmt: skip
LOOK_ALIKES = {
    "exp": ("tl.exp2",), "exp2": ("tl.exp",), "log": ("tl.log2",), "log2": ("tl.log",),
    "sqrt": ("tl.rsqrt",), "rsqrt": ("tl.sqrt",), "sin": ("tl.cos",), "cos": ("tl.sin",),
    "floor": ("tl.ceil",), "ceil": ("tl.floor",), "sigmoid": ("tl.exp",), "log1p": ("tl.log",),
}  # fmt: skip


def _binary(node: ast.AST, *operators: type[ast.operator]) -> ast.BinOp | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, operators):
        return node
    return None


@BOOK.add("add_to_subtract", "arithmetic", ast.BinOp, roles=AT_VALUES)
def add_to_subtract(node: ast.AST, site: Site) -> Iterator[str]:
    """Subtract instead of adding."""
    if found := _binary(node, ast.Add):
        yield f"{text(found.left)} - {text(found.right)}"


@BOOK.add("subtract_to_add", "arithmetic", ast.BinOp, roles=AT_VALUES)
def subtract_to_add(node: ast.AST, site: Site) -> Iterator[str]:
    """Add instead of subtracting."""
    if found := _binary(node, ast.Sub):
        yield f"{text(found.left)} + {text(found.right)}"


@BOOK.add("subtract_swapped", "arithmetic", ast.BinOp, roles=AT_VALUES)
def subtract_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Subtract the other way round."""
    if found := _binary(node, ast.Sub):
        yield f"{text(found.right)} - {text(found.left)}"


@BOOK.add("term_dropped", "missing_parts", ast.BinOp, roles=AT_VALUES)
def term_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a term: a bias, a carry, a residual."""
    if found := _binary(node, ast.Add):
        yield text(found.left)
        yield text(found.right)


@BOOK.add("subtraction_dropped", "missing_parts", ast.BinOp, roles=AT_VALUES)
def subtraction_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out what is subtracted: a mean, a maximum."""
    found = _binary(node, ast.Sub)
    if found and language_call(site.parent) not in ("exp", "exp2"):
        yield text(found.left)


@BOOK.add("maximum_not_subtracted", "missing_parts", ast.BinOp, roles=AT_VALUES)
def maximum_not_subtracted(node: ast.AST, site: Site) -> Iterator[str]:
    """Take an exponential without the shift that keeps it finite."""
    found = _binary(node, ast.Sub)
    if found and language_call(site.parent) in ("exp", "exp2"):
        yield text(found.left)


@BOOK.add("factor_dropped", "missing_parts", ast.BinOp, roles=AT_VALUES)
def factor_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a factor: a scale, a weight, half of a square."""
    if found := _binary(node, ast.Mult):
        yield text(found.left)
        yield text(found.right)


@BOOK.add("divisor_dropped", "missing_parts", ast.BinOp, roles=AT_VALUES)
def divisor_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a normalisation."""
    if found := _binary(node, ast.Div):
        yield text(found.left)


@BOOK.add("multiply_divide", "arithmetic", ast.BinOp, roles=AT_VALUES)
def multiply_divide(node: ast.AST, site: Site) -> Iterator[str]:
    """Divide instead of multiplying, or the reverse."""
    if found := _binary(node, ast.Mult, ast.Div):
        operator = "/" if isinstance(found.op, ast.Mult) else "*"
        yield f"{text(found.left)} {operator} {text(found.right)}"


@BOOK.add("negation_dropped", "arithmetic", ast.UnaryOp, roles=AT_VALUES)
def negation_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a minus sign."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    if negative and isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield text(node.operand)


@BOOK.add("result_negated", "arithmetic", ast.Call)
def result_negated(node: ast.AST, site: Site) -> Iterator[str]:
    """Store the negative."""
    if isinstance(node, ast.Call) and language_call(node) == "store" and len(node.args) > 1:
        rest = [ast.unparse(a) for a in node.args[2:]] + [ast.unparse(k) for k in node.keywords]
        args = [ast.unparse(node.args[0]), f"-{text(node.args[1])}", *rest]
        yield f"tl.store({', '.join(args)})"


@BOOK.add("function_dropped", "functions", ast.Call)
def function_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a function: an activation, a root."""
    if isinstance(node, ast.Call) and language_call(node) in UNARY:
        yield text(node.args[0])


@BOOK.add("function_twice", "functions", ast.Call)
def function_twice(node: ast.AST, site: Site) -> Iterator[str]:
    """Apply a function twice."""
    if isinstance(node, ast.Call) and language_call(node) in UNARY:
        yield f"{ast.unparse(node.func)}({ast.unparse(node)})"


@BOOK.add("function_swapped", "functions", ast.Call)
def function_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Take a function for one of a similar name."""
    if isinstance(node, ast.Call):
        for other in LOOK_ALIKES.get(language_call(node) or "", ()):
            yield renamed(node, other)


@BOOK.add("clamp_dropped", "functions", ast.Call)
def clamp_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out one side of a maximum or minimum: a ReLU, a clamp, a running maximum."""
    if isinstance(node, ast.Call) and language_call(node) in ("maximum", "minimum"):
        yield text(node.args[0])
        yield text(node.args[1])


@BOOK.add("branches_swapped", "functions", ast.Call)
def branches_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Swap the two sides of a choice."""
    if isinstance(node, ast.Call) and language_call(node) == "where":
        test, yes, no = (ast.unparse(a) for a in node.args)
        yield f"tl.where({test}, {no}, {yes})"


@BOOK.add("branch_only", "functions", ast.Call)
def branch_only(node: ast.AST, site: Site) -> Iterator[str]:
    """Take one side of a choice always."""
    if isinstance(node, ast.Call) and language_call(node) == "where":
        yield text(node.args[1])
        yield text(node.args[2])
