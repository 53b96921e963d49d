"""Writing a changed call as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def text(node: ast.AST) -> str:
    """Return the source of a node, in parentheses where it is an expression of parts."""
    source = ast.unparse(node)
    return f"({source})" if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)) else source


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return an argument given by position or by name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def without(call: ast.Call, names: Mapping[str, int]) -> str:
    """Return the call without the arguments of these names and positions."""
    args = [ast.unparse(a) for i, a in enumerate(call.args) if i not in names.values()]
    args += [ast.unparse(k) for k in call.keywords if k.arg not in names]
    return f"{ast.unparse(call.func)}({', '.join(args)})"


def replaced(call: ast.Call, position: int, name: str, value: str) -> str:
    """Return the call with another argument in that place; it must have one there."""
    args = [value if i == position else ast.unparse(a) for i, a in enumerate(call.args)]
    args += [f"{k.arg}={value}" if k.arg == name else ast.unparse(k) for k in call.keywords]
    return f"{ast.unparse(call.func)}({', '.join(args)})"


def renamed(call: ast.Call, function: str) -> str:
    """Return the call of another function with the same arguments."""
    args = [ast.unparse(a) for a in call.args] + [ast.unparse(k) for k in call.keywords]
    return f"{function}({', '.join(args)})"
