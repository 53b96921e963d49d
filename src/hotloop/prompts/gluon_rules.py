"""Rules for what a Gluon author has to place and the compiler does not ask for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.core.python_source import dotted
from hotloop.prompts.findings import Finding
from hotloop.prompts.kernel_syntax import Kernel, calls

TMA_STORES = ("async_copy_shared_to_global", "async_store")


def unfenced_copies(kernel: Kernel) -> Iterator[Finding]:
    """Yield copies by TMA out of a tile that the same function wrote, without a fence."""
    if next(calls(kernel, "fence_async_shared"), None) is not None:
        return
    written = {
        dotted(call.func).removesuffix(".store"): call.lineno
        for call in calls(kernel, "store")
        if isinstance(call.func, ast.Attribute) and len(call.args) == 1
    }
    for call in calls(kernel, *TMA_STORES):
        tile = dotted(call.args[2]) if len(call.args) > 2 else ""
        if tile in written and written[tile] < call.lineno:
            text = (
                f"TMA reads `{tile}`, which line {written[tile]} wrote, without "
                "`fence_async_shared()` between them: it may read what was there before."
            )
            yield Finding("no_fence", call.lineno, text)


def low_warpgroup_products(kernel: Kernel, *, may_be_halves: bool) -> Iterator[Finding]:
    """Yield products on the tensor cores of float32 data that have to be full float32.

    `may_be_halves`: the file makes 16-bit values somewhere, and these may be the operands.
    """
    if may_be_halves:
        return
    for call in calls(kernel, "warpgroup_mma"):
        text = (
            "`warpgroup_mma` has no full float32 product: float32 operands are rounded to TF32. "
            "Split each operand into two parts and add up three products, or use `gl.dot_fma`."
        )
        yield Finding("dot_precision", call.lineno, text)
