"""Static checks of a `score_mod` or `mask_mod`: Python that asks a tensor for its truth value.

`and`, `or`, `not`, `if`, `x if c else y`, chained comparisons and the like call `bool()` on a
tensor, which no tracer can follow. They are found in the syntax tree, so that the message has the
line and the remedy before anything runs. The judge's tracer finds what this does not (helpers that
a modification calls).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.errors import ConfigError

SCORE_MOD_ARITY = 5
MASK_MOD_ARITY = 4

# Attributes of a tensor that are plain Python values.
_STATIC_ATTRIBUTES = frozenset({"dtype", "device", "shape", "ndim"})
_CALLS = {
    "min": "torch.minimum",
    "max": "torch.maximum",
    "bool": "a comparison",
    "int": "`.to(torch.int32)`",
    "float": "`.to(torch.float32)`",
}


def check_traceable(tree: ast.AST, name: str) -> None:
    """Check every modification function in `tree`.

    Raises:
        ConfigError: one uses Python control flow on a tensor; the message has line and remedy.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and modification_kind(node) is not None:
            for line, what, remedy in _violations(node):
                raise ConfigError(
                    f"{name}: {node.name} line {line}: {what} cannot be traced; use {remedy}"
                )


def modification_kind(function: ast.FunctionDef) -> str | None:
    """Return `score_mod` or `mask_mod` by the function's name or signature; None for others."""
    arguments = function.args
    names = [a.arg.lower() for a in arguments.args]
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        return None
    if len(names) == SCORE_MOD_ARITY:
        named = function.name == "score_mod" or names[0] in ("score", "s", "scores", "qk")
        return "score_mod" if named and _are_indices(names[1:], function.name) else None
    if len(names) == MASK_MOD_ARITY:
        return "mask_mod" if _are_indices(names, function.name) else None
    return None


def _are_indices(names: list[str], function: str) -> bool:
    """Whether four parameter names are batch, head, query and key indices."""
    if function in ("score_mod", "mask_mod"):
        return True
    batch, head, query, key = names
    return (
        batch.startswith(("b", "z", "_"))
        and head.startswith(("h", "_"))
        and ("q" in query or query in ("i", "m"))
        and ("k" in key or key in ("j", "n"))
    )


def _violations(function: ast.FunctionDef) -> Iterator[tuple[int, str, str]]:
    tensors = {a.arg for a in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_tensor(node.value, tensors):
            tensors |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    found = [v for node in ast.walk(function) for v in _violation(node, tensors)]
    yield from sorted(found)


def _violation(node: ast.AST, tensors: set[str]) -> Iterator[tuple[int, str, str]]:
    if isinstance(node, ast.BoolOp) and any(_is_tensor(v, tensors) for v in node.values):
        word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
        yield node.lineno, f"`{word}`", f"`{sign}` with each side in parentheses"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if _is_tensor(node.operand, tensors):
            yield node.lineno, "`not`", "`~`"
    elif isinstance(node, ast.IfExp) and _is_tensor(node.test, tensors):
        yield node.lineno, "`x if condition else y`", "torch.where(condition, x, y)"
    elif isinstance(node, (ast.If, ast.While)) and _is_tensor(node.test, tensors):
        word = "if" if isinstance(node, ast.If) else "while"
        yield node.lineno, f"`{word}`", "torch.where(condition, x, y)"
    elif isinstance(node, ast.Compare) and len(node.ops) > 1 and _is_tensor(node, tensors):
        yield node.lineno, "a chained comparison", "`(a <= x) & (x < b)`"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _CALLS and any(_is_tensor(a, tensors) for a in node.args):
            yield node.lineno, f"`{name}()`", _CALLS[name]


def _is_tensor(node: ast.AST, tensors: set[str]) -> bool:
    """Whether an expression reads a tensor: an argument of the function or derived from one."""
    if isinstance(node, ast.Attribute) and node.attr in _STATIC_ATTRIBUTES:
        return False
    if isinstance(node, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
        return False
    if isinstance(node, ast.Name):
        return node.id in tensors
    return any(_is_tensor(child, tensors) for child in ast.iter_child_nodes(node))
