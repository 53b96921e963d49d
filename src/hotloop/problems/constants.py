"""Module-level constants of a problem file, read from its syntax tree without running it.

What the coordinator shows of a problem's sizes, and what `--set` may replace, comes from here. It
is not an interpreter: a value that is more than arithmetic on other constants is simply not known
here; the judge knows all of them.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Constant = int | float | str
"""What a module-level constant may be replaced by."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_CALLS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "int": int, "round": round}
_DTYPE = re.compile(r"bool|u?int\d+|b?float\d+\w*")
_MAX_POWER = 64  # 2**64 is more than any size; a larger exponent would only burn time


def assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None, int]]:
    """Yield (name, value, line) of every plain top-level assignment, in order.

    The value is None where the name is one of several targets that are unpacked from one object.
    """
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _unpack(statement.target, statement.value, statement.lineno)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _unpack(target, statement.value, statement.lineno)


def _unpack(
    target: ast.expr, value: ast.expr, line: int
) -> Iterator[tuple[str, ast.expr | None, int]]:
    if isinstance(target, ast.Name):
        yield target.id, value, line
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        known = len(parts) == len(target.elts)
        for i, item in enumerate(target.elts):
            if isinstance(item, ast.Name):
                yield item.id, parts[i] if known else None, line


def bound_names(tree: ast.Module) -> dict[str, int]:
    """Return every name that the module binds at its top level, with the line of its last binding.

    Covered: assignments, functions, classes and imports, also inside top-level `if` and `try`.
    """
    names: dict[str, int] = {}
    for node in _top_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = node.lineno
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names[(alias.asname or alias.name).split(".")[0]] = node.lineno
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for item in ast.walk(target):
                    if isinstance(item, ast.Name):
                        names[item.id] = node.lineno
    return names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _top_level(statement.body)
            yield from _top_level(getattr(statement, "orelse", []))
        if isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from _top_level(handler.body)


def fold_constants(tree: ast.Module, overrides: Mapping[str, Constant]) -> dict[str, Constant]:
    """Return the top-level constants whose values can be read, with `overrides` in force.

    An override holds wherever its name is assigned, so constants derived from it follow.
    """
    values: dict[str, Constant] = dict(overrides)
    for name, expression, _ in assignments(tree):
        if name in overrides:
            continue
        value = _fold(expression, values) if expression is not None else None
        if isinstance(value, (int, float, str)):
            values[name] = value
        else:
            values.pop(name, None)
    return values


def _fold(node: ast.expr, known: Mapping[str, Constant]) -> Any:
    """Return the value of a constant expression; None when it is not one."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        dtype = node.value.id == "torch" and _DTYPE.fullmatch(node.attr)
        return node.attr if dtype else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _fold(node.operand, known)
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, ast.BinOp):
        return _fold_binary(node, known)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        call = _CALLS.get(node.func.id)
        arguments = [_fold(a, known) for a in node.args]
        numbers = bool(arguments) and all(isinstance(a, (int, float)) for a in arguments)
        return call(*arguments) if call is not None and numbers else None
    return None


def _fold_binary(node: ast.BinOp, known: Mapping[str, Constant]) -> Any:
    left, right = _fold(node.left, known), _fold(node.right, known)
    function = _BINARY.get(type(node.op))
    if function is None or not all(isinstance(v, (int, float)) for v in (left, right)):
        return None
    if isinstance(node.op, ast.Pow) and abs(right) > _MAX_POWER:
        return None
    try:
        return function(left, right)
    except ArithmeticError:
        return None  # the judge runs the file and reports it with its line
