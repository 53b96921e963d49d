"""Addresses: strides, offsets, program numbers, the order of dimensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import ADDRESS, KERNEL, Site, language_call, memory_call
from benchmarks.mutation.writing import replaced, text

AT_ADDRESSES = frozenset({ADDRESS})


@BOOK.add("size_swapped", "addresses", ast.Name)
def size_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Use another size or stride of the kernel."""
    sizes = site.size_names()
    is_size = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in sizes
    if is_size and isinstance(site.parent, (ast.BinOp, ast.Call)):
        yield from (other for other in sizes if other != ast.unparse(node))


@BOOK.add("address_term_dropped", "addresses", ast.BinOp, roles=AT_ADDRESSES)
def address_term_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out one part of an offset."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield text(node.left)
        if "ptr" not in text(node.left):
            yield text(node.right)


@BOOK.add("stride_dropped", "addresses", ast.BinOp, roles=AT_ADDRESSES)
def stride_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out a factor of an offset."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield text(node.left)
        yield text(node.right)


@BOOK.add("stride_off_by_one", "addresses", ast.BinOp, roles=AT_ADDRESSES)
def stride_off_by_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Use a stride that is one too large."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield f"{text(node.left)} * ({text(node.right)} + 1)"


@BOOK.add("address_sign", "addresses", ast.BinOp, roles=AT_ADDRESSES)
def address_sign(node: ast.AST, site: Site) -> Iterator[str]:
    """Go in the wrong direction by one part of an offset."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        operator = "-" if isinstance(node.op, ast.Add) else "+"
        yield f"{text(node.left)} {operator} {text(node.right)}"


@BOOK.add("quotient_remainder", "addresses", ast.BinOp)
def quotient_remainder(node: ast.AST, site: Site) -> Iterator[str]:
    """Take the quotient for the remainder: head for batch, row for column."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        operator = "%" if isinstance(node.op, ast.FloorDiv) else "//"
        yield f"{text(node.left)} {operator} {text(node.right)}"


@BOOK.add("index_division_dropped", "addresses", ast.BinOp)
def index_division_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Take a flat index for a part of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        yield text(node.left)


@BOOK.add("tile_count_floored", "tiles", ast.Call)
def tile_count_floored(node: ast.AST, site: Site) -> Iterator[str]:
    """Round the number of tiles down."""
    if isinstance(node, ast.Call) and language_call(node) == "cdiv":
        yield f"{text(node.args[0])} // {text(node.args[1])}"


@BOOK.add("program_axis", "tiles", ast.Call)
def program_axis(node: ast.AST, site: Site) -> Iterator[str]:
    """Take another axis of the grid."""
    if isinstance(node, ast.Call) and language_call(node) == "program_id":
        axis = ast.unparse(node.args[0])
        yield from (f"tl.program_id({n})" for n in "01" if n != axis)


@BOOK.add("program_ignored", "tiles", ast.Call)
def program_ignored(node: ast.AST, site: Site) -> Iterator[str]:
    """Have every program do the first one's work."""
    if language_call(node) == "program_id":
        yield f"{text(node)} * 0"


@BOOK.add("program_shifted", "tiles", ast.Call)
def program_shifted(node: ast.AST, site: Site) -> Iterator[str]:
    """Have every program do the next one's work."""
    if language_call(node) == "program_id":
        yield f"({text(node)} + 1)"


@BOOK.add("lane_shifted", "tiles", ast.Call)
def lane_shifted(node: ast.AST, site: Site) -> Iterator[str]:
    """Start a block one element late."""
    if language_call(node) == "arange":
        yield f"({text(node)} + 1)"


@BOOK.add("block_misplaced", "tiles", ast.Name)
def block_misplaced(node: ast.AST, site: Site) -> Iterator[str]:
    """Place blocks one element too close."""
    if isinstance(node, ast.Name) and "BLOCK" in node.id and isinstance(site.parent, ast.BinOp):
        yield f"({node.id} - 1)"


def _moved(node: ast.AST, kind: str, by: str) -> Iterator[str]:
    if isinstance(node, ast.Call) and memory_call(node) == kind and node.args:
        yield replaced(node, 0, "pointer", f"{text(node.args[0])} + {by}")


@BOOK.add("load_shifted", "addresses", ast.Call)
def load_shifted(node: ast.AST, site: Site) -> Iterator[str]:
    """Read the neighbour."""
    yield from _moved(node, "load", "1")


@BOOK.add("store_shifted", "addresses", ast.Call)
def store_shifted(node: ast.AST, site: Site) -> Iterator[str]:
    """Write to the neighbour."""
    yield from _moved(node, "store", "1")


@BOOK.add("index_constant", "addresses", ast.Constant)
def index_constant(node: ast.AST, site: Site) -> Iterator[str]:
    """Be off by one in a whole number of index arithmetic."""
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) is int and isinstance(site.parent, (ast.BinOp, ast.Compare)):
        yield f"{value + 1}"
        yield f"({value - 1})"


@BOOK.add("parameter_off_by_one", "addresses", ast.Name, roles=KERNEL)
def parameter_off_by_one(node: ast.AST, site: Site) -> Iterator[str]:
    """Be off by one in a size, a stride or a padding."""
    annotated = {a.arg for a in site.function.args.args if a.annotation is not None}
    names = {n for n in (*site.size_names(), *annotated) if "BLOCK" not in n}
    if isinstance(node, ast.Name) and node.id in names and isinstance(site.parent, ast.BinOp):
        yield f"({node.id} + 1)"
        yield f"({node.id} - 1)"


@BOOK.add("broadcast_swapped", "addresses", ast.Subscript)
def broadcast_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Lay an index along the other dimension."""
    if isinstance(node, ast.Subscript):
        inside = ast.unparse(node.slice)
        for old, new in (("(:, None)", "None, :"), ("(None, :)", ":, None")):
            if inside in (old, old[1:-1]):
                yield f"{text(node.value)}[{new}]"
