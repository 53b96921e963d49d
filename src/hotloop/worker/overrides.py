"""Put settings in force in a problem's source: replace the values of its module-level constants.

The syntax tree is rewritten before the module runs, so whatever is derived from a constant follows,
and the lines stay those of the user's file. Constants set inside `if`, `for` or functions are not
replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from hotloop.core.python_source import parse_python

Setting = int | float | str


def override_constants(tree: ast.Module, settings: Mapping[str, Setting]) -> set[str]:
    """Replace, in place, the top-level assignments of the names in `settings`.

    Returns:
        The names that the module assigns; the others must be put in its namespace.
    """
    replaced: set[str] = set()
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.append(statement)
        if isinstance(statement, ast.AnnAssign):
            _override_target(statement, statement.target, settings, replaced)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                body += _override_assign(statement, target, settings, replaced)
    tree.body = body
    ast.fix_missing_locations(tree)
    return replaced


def settable_sizes(source: str, namespace: Mapping[str, Any]) -> dict[str, int]:
    """Return the constants that are whole numbers written out, with the values in force.

    Args:
        source: text of the problem's file.
        namespace: the executed module.
    """
    return _whole_numbers(source, namespace, _is_whole_number)


def stated_sizes(source: str, namespace: Mapping[str, Any]) -> dict[str, int]:
    """Return the constants of `settable_sizes` and those like `1024 * 2`, without other names."""
    return _whole_numbers(source, namespace, _is_arithmetic)


def _is_whole_number(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _is_arithmetic(value: ast.expr | None) -> bool:
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return value is not None and all(isinstance(node, allowed) for node in ast.walk(value))


def _whole_numbers(
    source: str, namespace: Mapping[str, Any], is_wanted: Callable[[ast.expr | None], bool]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for statement in parse_python(source).body:
        if isinstance(statement, ast.AnnAssign):
            pairs = _pairs(statement.target, statement.value)
        elif isinstance(statement, ast.Assign):
            pairs = [pair for t in statement.targets for pair in _pairs(t, statement.value)]
        else:
            continue
        for target, value in pairs:
            name = target.id if isinstance(target, ast.Name) else ""
            if is_wanted(value):
                now = namespace.get(name)
                found |= {name: now} if type(now) is int else {}
    return found


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.expr, ast.expr | None]]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _override_target(
    statement: ast.Assign | ast.AnnAssign,
    target: ast.expr,
    settings: Mapping[str, Setting],
    replaced: set[str],
) -> None:
    if isinstance(target, ast.Name) and target.id in settings and statement.value is not None:
        statement.value = _expression(settings[target.id], statement.value)
        replaced.add(target.id)


def _override_assign(
    statement: ast.Assign,
    target: ast.expr,
    settings: Mapping[str, Setting],
    replaced: set[str],
) -> list[ast.stmt]:
    """Override one target of an assignment; return statements to run right after it."""
    if isinstance(target, ast.Name) and len(statement.targets) == 1:
        _override_target(statement, target, settings, replaced)
        return []
    # `B, H = 4, 16` and `B = H = 4`: assign again, so that the other names keep their values.
    after: list[ast.stmt] = []
    for item in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
        if isinstance(item, ast.Name) and item.id in settings:
            name = ast.Name(id=item.id, ctx=ast.Store())
            again = ast.Assign(targets=[name], value=_expression(settings[item.id], None))
            after.append(ast.copy_location(again, statement))
            replaced.add(item.id)
    return after


def _expression(setting: Setting, own: ast.expr | None) -> ast.expr:
    """Return the setting as an expression; text replaces `torch.float32` as `torch.<text>`.

    Text in parentheses or brackets is a tuple, `(3, 7)`; a list where the file has one, and text
    where it has text.
    """
    is_text = isinstance(own, ast.Constant)
    if isinstance(setting, str) and isinstance(own, ast.Attribute):
        new: ast.expr = ast.Attribute(value=own.value, attr=setting, ctx=ast.Load())
    elif isinstance(setting, str) and setting.startswith(("(", "[")) and not is_text:
        numbers: list[ast.expr] = [ast.Constant(value=n) for n in ast.literal_eval(setting)]
        kind = ast.List if isinstance(own, ast.List) else ast.Tuple
        new = kind(elts=numbers, ctx=ast.Load())
    else:
        new = ast.Constant(value=setting)
    return ast.copy_location(new, own) if own is not None else new
