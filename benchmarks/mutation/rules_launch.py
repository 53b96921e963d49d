"""The host's side: grids, the order of arguments, weights that are ignored, where results go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import HOST, Site
from benchmarks.mutation.writing import text

AT_HOST = frozenset({HOST})
_SIZE = re.compile(r"[A-Z][A-Z0-9]*|n|k|m|groups|per_group|size|steps")
ALLOCATIONS = ("torch.empty", "torch.empty_like", "torch.new_empty")


def _is_grid(node: ast.AST, site: Site) -> bool:
    if not isinstance(node, ast.Tuple) or isinstance(node.ctx, ast.Store):
        return False
    holder = site.parent
    if isinstance(holder, ast.Assign):
        return ast.unparse(holder.targets[0]) == "grid"
    return (
        isinstance(holder, ast.Subscript) and len(site.parents) > 1 and _launches(site.parents[-2])
    )


def _launches(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


@BOOK.add("grid_short", "launches", ast.Tuple, roles=AT_HOST)
def grid_short(node: ast.AST, site: Site) -> Iterator[str]:
    """Start one program too few along an axis."""
    if isinstance(node, ast.Tuple) and _is_grid(node, site):
        parts = [ast.unparse(e) for e in node.elts]
        for i in range(len(parts)):
            shorter = [f"max(1, {p} - 1)" if i == k else p for k, p in enumerate(parts)]
            yield f"({', '.join(shorter)},)"


@BOOK.add("grid_long", "launches", ast.Tuple, roles=AT_HOST)
def grid_long(node: ast.AST, site: Site) -> Iterator[str]:
    """Start one program too many along an axis."""
    if isinstance(node, ast.Tuple) and _is_grid(node, site):
        parts = [ast.unparse(e) for e in node.elts]
        for i in range(len(parts)):
            longer = [f"{p} + 1" if i == k else p for k, p in enumerate(parts)]
            yield f"({', '.join(longer)},)"


@BOOK.add("grid_swapped", "launches", ast.Tuple, roles=AT_HOST)
def grid_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Swap two axes of the grid."""
    if isinstance(node, ast.Tuple) and _is_grid(node, site) and len(node.elts) == 2:
        yield f"({ast.unparse(node.elts[1])}, {ast.unparse(node.elts[0])})"


@BOOK.add("grid_floored", "launches", ast.Call, roles=AT_HOST)
def grid_floored(node: ast.AST, site: Site) -> Iterator[str]:
    """Round the number of blocks down."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "triton.cdiv":
        yield f"max(1, {text(node.args[0])} // {text(node.args[1])})"


@BOOK.add("arguments_swapped", "launches", ast.Call, roles=AT_HOST)
def arguments_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Swap two neighbouring arguments of a launch."""
    if not isinstance(node, ast.Call) or not _launches(node):
        return
    args = [ast.unparse(a) for a in node.args]
    rest = [ast.unparse(k) for k in node.keywords]
    for i in range(len(args) - 1):
        swapped = [*args[:i], args[i + 1], args[i], *args[i + 2 :], *rest]
        yield f"{ast.unparse(node.func)}({', '.join(swapped)})"


@BOOK.add("argument_off_by_one", "launches", ast.Name, ast.Subscript, roles=AT_HOST)
def argument_off_by_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Give a launch a size, a stride or a padding that is one off."""
    holders = [p for p in site.parents[-2:] if _launches(p)]
    source = ast.unparse(node)
    is_size = bool(_SIZE.fullmatch(source)) or ".shape[" in source
    holder = site.parent
    if isinstance(holder, ast.keyword) and "BLOCK" in (holder.arg or ""):
        return
    if holders and is_size and isinstance(holder, (ast.Call, ast.keyword)):
        yield f"{source} - 1"
        yield f"{source} + 1"


@BOOK.add("option_off_by_one", "launches", ast.Name, ast.Attribute, roles=AT_HOST)
def option_off_by_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Give a launch a window, a padding or a dilation that is one off."""
    holder = site.parent
    if isinstance(holder, ast.keyword) and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
        name = holder.arg or ""
        if name.isupper() and "BLOCK" not in name:
            yield f"{ast.unparse(node)} + 1"


@BOOK.add("weight_ignored", "weights", ast.Attribute, roles=AT_HOST)
def weight_ignored(node: ast.AST, site: Site) -> Iterator[str]:
    """Take ones for a weight and zeros for a bias."""
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and _launches(site.parent)
    ):
        if "weight" in node.attr:
            yield f"torch.ones_like({ast.unparse(node)})"
        elif "bias" in node.attr:
            yield f"torch.zeros_like({ast.unparse(node)})"


@BOOK.add("weight_folded", "weights", ast.Attribute, roles=AT_HOST)
def weight_folded(node: ast.AST, site: Site) -> Iterator[str]:
    """Take the first element of a weight for all of it."""
    if isinstance(node, ast.Attribute) and _launches(site.parent):
        name = ast.unparse(node)
        if name.endswith(("weight", "bias")):
            yield f"{name}.flatten()[:1].expand({name}.numel()).contiguous()"


@BOOK.add("setting_folded", "weights", ast.Attribute, roles=AT_HOST)
def setting_folded(node: ast.AST, site: Site) -> Iterator[str]:
    """Take one for a scalar setting of the module."""
    if isinstance(node, ast.Attribute) and _launches(site.parent):
        name = ast.unparse(node)
        if name.startswith("self.") and name.count(".") == 1 and "weight" not in name:
            yield "1.0"


@BOOK.add("input_overwritten", "outputs", ast.Call, roles=AT_HOST)
def input_overwritten(node: ast.AST, site: Site) -> Iterator[str]:
    """Write the result over the input."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.empty_like":
        yield text(node.args[0])


@BOOK.add("kernel_left_out", "outputs", ast.Expr, roles=AT_HOST)
def kernel_left_out(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a launch."""
    if isinstance(node, ast.Expr) and _launches(node.value):
        yield ""


@BOOK.add("output_transposed", "outputs", ast.Return, roles=AT_HOST)
def output_transposed(node: ast.AST, site: Site) -> Iterator[str]:
    """Return the result with its last two dimensions swapped."""
    if isinstance(node, ast.Return) and node.value is not None:
        value = ast.unparse(node.value)
        yield f"return {value}.transpose(-1, -2).contiguous().view({value}.shape)"


@BOOK.add("output_scaled", "outputs", ast.Return, roles=AT_HOST)
def output_scaled(node: ast.AST, site: Site) -> Iterator[str]:
    """Be one part in ten thousand off, everywhere."""
    if isinstance(node, ast.Return) and node.value is not None:
        yield f"return {ast.unparse(node.value)} * 1.0001"
