"""Masks and bounds: dropped, off by one, negated, with other values for what they hide."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import MASK, Site, memory_call
from benchmarks.mutation.writing import argument, replaced, text, without

LOOSER = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
OPPOSITE = {
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip
SIGN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@BOOK.add("load_mask_dropped", "masks", ast.Call)
def load_mask_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Read without a mask."""
    if memory_call(node) == "load" and isinstance(node, ast.Call) and argument(node, 1, "mask"):
        yield without(node, {"mask": 1, "other": 2})


@BOOK.add("store_mask_dropped", "masks", ast.Call)
def store_mask_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Write without a mask."""
    if memory_call(node) == "store" and isinstance(node, ast.Call) and argument(node, 2, "mask"):
        yield without(node, {"mask": 2})


@BOOK.add("mask_term_dropped", "masks", ast.BinOp)
def mask_term_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out one of two conditions."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield text(node.left)
        yield text(node.right)


@BOOK.add("mask_and_to_or", "masks", ast.BinOp)
def mask_and_to_or(node: ast.AST, site: Site) -> Iterator[str]:
    """Take either condition for both, or both for either."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        operator = "|" if isinstance(node.op, ast.BitAnd) else "&"
        yield f"{text(node.left)} {operator} {text(node.right)}"


def _compared(node: ast.AST) -> tuple[str, type[ast.cmpop], str] | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return text(node.left), type(node.ops[0]), text(node.comparators[0])
    return None


@BOOK.add("comparison_edge", "masks", ast.Compare)
def comparison_edge(node: ast.AST, site: Site) -> Iterator[str]:
    """Take `<` for `<=` and the like."""
    parts = _compared(node)
    if parts and parts[1] in LOOSER:
        yield f"{parts[0]} {LOOSER[parts[1]]} {parts[2]}"


@BOOK.add("comparison_negated", "masks", ast.Compare)
def comparison_negated(node: ast.AST, site: Site) -> Iterator[str]:
    """Negate a condition."""
    parts = _compared(node)
    if parts and parts[1] in OPPOSITE:
        yield f"{parts[0]} {OPPOSITE[parts[1]]} {parts[2]}"


@BOOK.add("bound_short", "masks", ast.Compare)
def bound_short(node: ast.AST, site: Site) -> Iterator[str]:
    """Stop one before the bound."""
    parts = _compared(node)
    if parts and parts[1] in (ast.Lt, ast.LtE):
        yield f"{parts[0]} {SIGN[parts[1]]} {parts[2]} - 1"


@BOOK.add("bound_long", "masks", ast.Compare)
def bound_long(node: ast.AST, site: Site) -> Iterator[str]:
    """Go one further than the bound, or start one too early."""
    parts = _compared(node)
    if parts and parts[1] in (ast.Lt, ast.LtE):
        yield f"{parts[0]} {SIGN[parts[1]]} {parts[2]} + 1"
    elif parts and parts[1] in (ast.Gt, ast.GtE):
        yield f"{parts[0]} {SIGN[parts[1]]} {parts[2]} - 1"


@BOOK.add("bound_swapped", "masks", ast.Compare)
def bound_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Hold an index against the size of another dimension."""
    parts = _compared(node)
    sizes = site.size_names()
    if parts and isinstance(node, ast.Compare) and site.role == MASK and parts[2] in sizes:
        for other in sizes:
            if other != parts[2] and len(other) == len(parts[2]):
                yield f"{parts[0]} {SIGN[parts[1]]} {other}"


def _other(node: ast.AST) -> tuple[ast.Call, str] | None:
    if memory_call(node) == "load" and isinstance(node, ast.Call):
        value = argument(node, 2, "other")
        if value is not None:
            return node, ast.unparse(value)
    return None


@BOOK.add("other_dropped", "other_values", ast.Call)
def other_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave masked elements undefined."""
    if found := _other(node):
        yield without(found[0], {"other": 2})


@BOOK.add("other_zero", "other_values", ast.Call)
def other_zero(node: ast.AST, site: Site) -> Iterator[str]:
    """Give zero to masked elements of a maximum or an exponential."""
    found = _other(node)
    if found and "inf" in found[1]:
        yield replaced(found[0], 2, "other", "0.0")


@BOOK.add("other_one", "other_values", ast.Call)
def other_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Give one to masked elements of a sum."""
    found = _other(node)
    if found and found[1] in ("0", "0.0"):
        yield replaced(found[0], 2, "other", "1" if found[1] == "0" else "1.0")


@BOOK.add("other_infinite", "other_values", ast.Call)
def other_infinite(node: ast.AST, site: Site) -> Iterator[str]:
    """Give minus infinity to masked elements of a sum."""
    found = _other(node)
    if found and found[1] == "0.0":
        yield replaced(found[0], 2, "other", "float('-inf')")


@BOOK.add("other_finite", "other_values", ast.Call)
def other_finite(node: ast.AST, site: Site) -> Iterator[str]:
    """Give a finite number to masked elements where infinity is meant."""
    found = _other(node)
    if found and "inf" in found[1]:
        sign = "-" if "-" in found[1] else ""
        yield replaced(found[0], 2, "other", f"{sign}10.0")
