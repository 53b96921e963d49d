"""Numbers: constants, epsilons and counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import VALUE, Site, language_call
from benchmarks.mutation.writing import text

AT_VALUES = frozenset({VALUE})
EPSILON = 1e-3
"""A constant below this, other than 0, is taken for an epsilon."""


def _number(node: ast.AST) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) is float:
        return node.value
    return None


@BOOK.add("constant_dropped", "constants", ast.Constant, roles=AT_VALUES)
def constant_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Take one for a scale, or zero for a one."""
    value = _number(node)
    if value:
        yield "1.0" if value != 1.0 else "0.0"


@BOOK.add("constant_scaled", "constants", ast.Constant, roles=AT_VALUES)
def constant_scaled(node: ast.AST, site: Site) -> Iterator[str]:
    """Take half or twice a constant."""
    value = _number(node)
    if value:
        yield repr(value * 0.5)
        yield repr(value * 2.0)


@BOOK.add("constant_rounded", "constants", ast.Constant, roles=AT_VALUES)
def constant_rounded(node: ast.AST, site: Site) -> Iterator[str]:
    """Take a constant with three and with five digits."""
    value = _number(node)
    if value:
        yield from (repr(float(f"{value:.{n}g}")) for n in (3, 5))


@BOOK.add("constant_nudged", "constants", ast.Constant, roles=AT_VALUES)
def constant_nudged(node: ast.AST, site: Site) -> Iterator[str]:
    """Be a thousandth off; add a thousandth to a zero."""
    value = _number(node)
    if value is not None:
        yield repr(value * 1.001) if value else "0.001"


@BOOK.add("constant_negated", "constants", ast.Constant, roles=AT_VALUES)
def constant_negated(node: ast.AST, site: Site) -> Iterator[str]:
    """Take the negative of a constant."""
    if _number(node):
        yield f"-{text(node)}"


def _is_epsilon(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return "eps" in node.id.lower() and isinstance(node.ctx, ast.Load)
    value = _number(node)
    return value is not None and 0 < abs(value) < EPSILON


@BOOK.add("epsilon_dropped", "epsilons", ast.Name, ast.Constant, roles=AT_VALUES)
def epsilon_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out an epsilon."""
    if _is_epsilon(node):
        yield "0.0"


@BOOK.add("epsilon_wrong", "epsilons", ast.Name, ast.Constant, roles=AT_VALUES)
def epsilon_wrong(node: ast.AST, site: Site) -> Iterator[str]:
    """Take an epsilon ten times larger or smaller."""
    if _is_epsilon(node):
        yield f"({text(node)} * 10.0)"
        yield f"({text(node)} * 0.1)"


@BOOK.add("epsilon_moved", "epsilons", ast.Call)
def epsilon_moved(node: ast.AST, site: Site) -> Iterator[str]:
    """Add an epsilon after the root instead of before it."""
    if not isinstance(node, ast.Call) or language_call(node) not in ("sqrt", "rsqrt", "sqrt_rn"):
        return
    inside = node.args[0]
    if (
        isinstance(inside, ast.BinOp)
        and isinstance(inside.op, ast.Add)
        and _is_epsilon(inside.right)
    ):
        root = f"(tl.sqrt({text(inside.left)}) + {text(inside.right)})"
        yield f"(1.0 / {root})" if language_call(node) == "rsqrt" else root


def _counts(node: ast.AST) -> str | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return None
    count = node.right
    return count.id if isinstance(count, ast.Name) and "eps" not in count.id else None


@BOOK.add("count_off_by_one", "counts", ast.BinOp, roles=AT_VALUES)
def count_off_by_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Divide by one less: the unbiased variance for the biased one; or by one more."""
    if (count := _counts(node)) and isinstance(node, ast.BinOp):
        yield f"{text(node.left)} / ({count} - 1)"
        yield f"{text(node.left)} / ({count} + 1)"


@BOOK.add("count_is_block", "counts", ast.BinOp, roles=AT_VALUES)
def count_is_block(node: ast.AST, site: Site) -> Iterator[str]:
    """Divide by the size of the block, masked elements included."""
    if (count := _counts(node)) and isinstance(node, ast.BinOp):
        for block in site.block_names():
            if block != count:
                yield f"{text(node.left)} / {block}"


@BOOK.add("count_of_other_size", "counts", ast.BinOp, roles=AT_VALUES)
def count_of_other_size(node: ast.AST, site: Site) -> Iterator[str]:
    """Divide by another size."""
    if (count := _counts(node)) in site.size_names() and isinstance(node, ast.BinOp):
        for other in site.size_names():
            if other != count:
                yield f"{text(node.left)} / {other}"
