"""What a compiler's refusal of a Gluon kernel usually means: layouts that do not fit together.

The compiler names what it found, in its own words; these sentences say what to write instead. The
messages are those of Triton 3.6 and 3.9.
"""

from __future__ import annotations

import re

_HINTS: tuple[tuple[str, str], ...] = (  # the first that fits; a mismatch prints whole layouts
    (
        r"unexpected operand layout for NvidiaMmaEncodingAttr",
        "An operand of `warpgroup_mma` that is a tensor, not a tile, has to be in "
        "`gl.DotOperandLayout(0, ACC_LAYOUT, 32 // BITS)`: convert it with `gl.convert_layout` "
        "after its cast.",
    ),
    (
        r"WGMMA type or shape is not supported",
        "The third list of `gl.NVMMADistributedLayout` is `[16, N, 256 // BITS]`, with BITS of the "
        "operands and N a multiple of 8, at most 256.",
    ),
    (
        r"expected the last dimension of the first operand to be equal",
        "`warpgroup_mma` takes b as (K, N): a tile that is stored as (N, K) is "
        "`tile.permute((1, 0))`.",
    ),
    (
        r"[Ll]ayout mismatch|mismatched layouts?|requires the same encoding|same layout",
        "Two tensors in one operation are in different layouts. Make an index in the "
        "`gl.SliceLayout` of the layout that it is expanded into, or change one of them with "
        "`gl.convert_layout(x, LAYOUT)`: a row's maximum of one product belongs to that product's "
        "layout, and is converted to scale another.",
    ),
    (
        r"module 'triton\.experimental\.gluon[\w.]*' has no attribute",
        "Gluon has not all of Triton's functions, and its names differ between releases: use those "
        "in the rules above.",
    ),
    (
        r"Failed to find a valid layout|element_bitwidth|swizzle",
        "`gl.NVMMASharedLayout` has the bits of one element, and a swizzle of at most the bytes of "
        "a tile's row.",
    ),
)


def gluon_hint(message: str) -> str:
    """Return what a compiler's message about a Gluon kernel usually means; empty if not known."""
    return next((text for pattern, text in _HINTS if re.search(pattern, message)), "")
