"""Read a candidate's declared `TUNABLES` from its syntax tree, as a space to sweep.

`TUNABLES = {"BLOCK": [64, 128], "num_warps": [4, 8]}` at module level names constants of the module
and the values that may replace them. It must be a literal: nothing is run. What is wrong with a
declaration is told, not raised: the kernel itself can still be judged.
"""

from __future__ import annotations

import ast
import keyword
from typing import NamedTuple

from hotloop.core.space import Dimension, Scalar, Space
from hotloop.prompts.programs import parse

NAME = "TUNABLES"
MAX_POINTS = 4096
"""A larger product is no list of choices to sweep but a mistake."""


class Tunables(NamedTuple):
    """What a source declares."""

    space: Space | None
    """None when nothing usable is declared. The first choice of each is the module's own value."""
    problem: str | None
    """Why a declaration is not usable; None when it is, or when there is none."""


def read_tunables(source: str) -> Tunables:
    """Return the space that a Python source declares."""
    tree = parse(source)
    value = None if tree is None else _assigned(tree).get(NAME)
    if tree is None or value is None:
        return Tunables(None, None)
    try:
        declared = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Tunables(None, f"expected {NAME} to be a literal dict of lists; it is not run")
    if not isinstance(declared, dict) or not declared:
        return Tunables(None, f"expected {NAME} to map names to lists of values")
    return _space(declared, _constants(tree))


def _space(declared: dict[object, object], own: dict[str, Scalar]) -> Tunables:
    dimensions: list[Dimension] = []
    points = 1
    for name, values in declared.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            return Tunables(None, f"{NAME}: {str(name)[:40]!r} is no name of a constant")
        if not isinstance(values, (list, tuple)) or not values:
            return Tunables(None, f"{NAME}: expected a list of values for {name}")
        if not all(_is_scalar(v) for v in values):
            return Tunables(None, f"{NAME}: {name} may hold numbers, text and booleans")
        if name not in own:
            text = f"{NAME}: the module sets no constant {name}; add `{name} = {values[0]!r}`"
            return Tunables(None, text[:300])
        choices = _unique([own[name], *values])
        points *= len(choices)
        dimensions.append(Dimension(name=name, choices=choices, ordered=_are_numbers(choices)))
    if points > MAX_POINTS:
        return Tunables(None, f"{NAME}: {points} combinations, at most {MAX_POINTS} are swept")
    return Tunables(Space(dimensions=tuple(dimensions)), None)


def _unique(values: list[Scalar]) -> tuple[Scalar, ...]:
    own, rest = values[0], values[1:]
    kept = {(type(v), v): v for v in rest}
    kept.pop((type(own), own), None)
    return (own, *kept.values())


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")  # JSON has no others
    return isinstance(value, (int, str, bool))


def _are_numbers(values: tuple[Scalar, ...]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the module's top-level assignments to single names; the last one counts."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [_pairs(target, node.value) for target in node.targets]
            found.update(pair for some in pairs for pair in some)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            found.update(_pairs(node.target, node.value))
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        both = zip(target.elts, value.elts, strict=False)
        return [(t.id, v) for t, v in both if isinstance(t, ast.Name)]
    return []


def _constants(tree: ast.Module) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, node in _assigned(tree).items():
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        if _is_scalar(value):
            values[name] = value
    return values
