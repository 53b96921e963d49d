"""Rules on how a Triton kernel computes: accumulators, products, and what its tiles take."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from hotloop.core.python_source import dotted
from hotloop.prompts.findings import Finding
from hotloop.prompts.kernel_syntax import Kernel, calls, is_call, is_tl, keyword
from hotloop.prompts.occupancy import BLOCK_SHARED_BYTES

ELEMENT_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
FULL_PRECISION = ("as_shipped", "strict")
"""Policies under which a float32 matrix product must be one."""


def low_accumulators(kernel: Kernel) -> Iterator[Finding]:
    """Yield sums that are kept in 16 bits."""
    grown = {dotted(n.target) for n in ast.walk(kernel.function) if isinstance(n, ast.AugAssign)}
    for name, expressions in kernel.defined_by.items():
        dots = [e for e in expressions if is_call(e, "dot") and name in _names(e)]
        sums = [e for e in expressions if isinstance(e, ast.BinOp) and name in _names(e)]
        if name not in grown and not dots and not sums:
            continue
        for expression in expressions:
            if isinstance(expression, ast.Call) and is_call(expression, "zeros", "full"):
                dtype = keyword(expression, "dtype", 2 if is_call(expression, "full") else 1)
                if dtype is not None and _is_half(dtype):
                    text = (
                        f"`{name}` adds up in {ast.unparse(dtype)}: accumulate in tl.float32 "
                        "and convert once at the end."
                    )
                    yield Finding("accumulator", expression.lineno, text)
    for call in calls(kernel, "dot"):
        dtype = keyword(call, "out_dtype")
        if dtype is not None and _is_half(dtype):
            text = f"tl.dot accumulates in {ast.unparse(dtype)} here: use tl.float32."
            yield Finding("accumulator", call.lineno, text)


def low_products(kernel: Kernel, *, may_be_halves: bool) -> Iterator[Finding]:
    """Yield products of float32 data in less than float32.

    `may_be_halves`: the file makes 16-bit values somewhere, and these may be the operands.
    """
    for call in calls(kernel, "dot"):
        if not is_tl(call):
            continue
        casts = [n for a in call.args[:2] for n in ast.walk(a) if _is_half_cast(n)]
        if casts:
            text = "tl.dot gets float32 data cast to 16 bits, which loses most of its digits."
            yield Finding("dot_precision", call.lineno, text)
            continue
        stated = keyword(call, "input_precision")
        tf32 = keyword(call, "allow_tf32")
        chosen = stated.value if isinstance(stated, ast.Constant) else None
        is_full = stated is not None and chosen not in ("tf32", "bf16x3")
        if tf32 is not None and isinstance(tf32, ast.Constant) and tf32.value is False:
            is_full = True
        if not is_full and not may_be_halves:
            text = (
                "tl.dot on float32 uses TF32 here (10 bits of mantissa): pass "
                'input_precision="ieee", or "tf32x3" for speed.'
            )
            yield Finding("dot_precision", call.lineno, text)


def large_tiles(kernel: Kernel, dtypes: Collection[str]) -> Iterator[Finding]:
    """Yield loops whose tiles for `tl.dot`, times the stages, do not fit into shared memory."""
    width = max((ELEMENT_BYTES.get(d, 4) for d in dtypes if "float" in d), default=0)
    if not width:
        return
    for loop in ast.walk(kernel.function):
        if not isinstance(loop, (ast.For, ast.While)):
            continue
        inside = [n for part in loop.body for n in ast.walk(part)]
        dots = [n for n in inside if isinstance(n, ast.Call) and is_call(n, "dot") and is_tl(n)]
        tiles = {}
        for load in {
            id(n): n for d in dots for a in d.args[:2] for n in _loads(kernel, a)
        }.values():
            elements = _tile_elements(kernel, load)
            if elements and load in inside:
                tiles[load.lineno, load.col_offset] = elements
        stages = min(kernel.stages)
        needed = sum(tiles.values()) * width * stages
        if needed > BLOCK_SHARED_BYTES:
            parts = " + ".join(str(n) for n in tiles.values())
            text = (
                f"the tiles of this loop need about ({parts}) x {width} bytes x {stages} stages "
                f"= {needed} bytes of shared memory, a block has {BLOCK_SHARED_BYTES}."
            )
            yield Finding("shared_memory", loop.lineno, text)


def _loads(kernel: Kernel, operand: ast.expr) -> Iterator[ast.Call]:
    for node in kernel.sources(operand):
        if isinstance(node, ast.Call) and is_call(node, "load") and is_tl(node):
            yield node


def _tile_elements(kernel: Kernel, load: ast.Call) -> int | None:
    """Return the elements of a two-dimensional tile, at its smallest tuned sizes."""
    blocks = kernel.blocks(load.args[0]) if load.args else {}
    if len(blocks) != 2 or not all(blocks.values()):
        return None
    first, second = (min(values) for values in blocks.values())
    return first * second


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_half(node: ast.expr) -> bool:
    return dotted(node).split(".")[-1] in ("float16", "bfloat16")


def _is_half_cast(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and is_call(node, "to")
        and bool(node.args)
        and _is_half(node.args[0])
    )
