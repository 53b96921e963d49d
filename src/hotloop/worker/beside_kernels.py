"""What torch may do beside kernels, by the problem's policy and by what its reference executes.

Work is summed over the call, for each operation and for all that are barred together: an operation
that is applied to one piece after another is as much work as applied to the whole. Which operations
count depends on the reference:

attention (`none`)       no product and no whole layer
with products            all of torch's; a library product may stand beside kernels
without products         moves, allocation and plain arithmetic of elements only, products included,
                         where all that the reference does is known to hold no product; where it is
                         not known, no whole layer, reduction or function

Values may not go through host memory anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hotloop.worker.census import (
    ARITHMETIC,
    ELEMENTWISE,
    LIBRARY_PRODUCTS,
    NO_ARITHMETIC,
    PRODUCTS,
    WHOLE_LAYERS,
    WITH_PRODUCTS,
)
from hotloop.worker.host_reads import DEVICE_READS, HOST_READS

LARGE_SHARE = 0.5
"""Operations on tensors of this share of the problem's largest, together, are work."""
ALL_SHARE = 1.0
"""The same for all barred operations together, each of which may be preparation."""
KNOWN_WITHOUT_PRODUCTS = (NO_ARITHMETIC | ELEMENTWISE | ARITHMETIC | WHOLE_LAYERS) - WITH_PRODUCTS
CHECKS = frozenset({"all", "any"})
"""Reductions that may prepare a mask, unless they are what the problem asks for."""


def refused(
    operations: Mapping[str, int], policy: str, census: Collection[str], largest: int
) -> str | None:
    """Return the first operation that may not stand beside a kernel, or None.

    Args:
        operations: operation -> elements that its calls touched.
        policy: `none` or `anchored`.
        census: the reference's operations; empty where nothing is known of them.
        largest: elements of the problem's largest tensor.
    """
    reference = plain_names(census)
    at_least = max(2, int(largest * LARGE_SHARE))
    for names in (HOST_READS, DEVICE_READS):  # each read by two ways is seen by both
        read = {n: size for n, size in operations.items() if n in names}
        if sum(read.values()) >= at_least:
            return max(read, key=lambda n: read[n])
    others = {n: s for n, s in operations.items() if n not in HOST_READS | DEVICE_READS}
    barred = {n: s for n, s in others.items() if _is_barred(n, policy, reference)}
    found = next((n for n, size in barred.items() if size >= at_least), None)
    if found is None and sum(barred.values()) >= max(2, int(largest * ALL_SHARE)):
        found = max(barred, key=lambda n: barred[n])
    return found


def plain_names(census: Collection[str]) -> frozenset[str]:
    """Return names of operations without the underscore of those that write in place."""
    return frozenset(name.rstrip("_") or name for name in census)


def moves_only(census: Collection[str]) -> bool:
    """Whether a reference only moves values: then moving them is the work."""
    return bool(census) and plain_names(census) <= NO_ARITHMETIC


def _is_barred(name: str, policy: str, reference: frozenset[str]) -> bool:
    if policy == "none":
        return name in LIBRARY_PRODUCTS | WHOLE_LAYERS
    if reference & PRODUCTS:
        return False
    if name in CHECKS:
        return name in reference
    if reference and reference <= KNOWN_WITHOUT_PRODUCTS:
        return name not in NO_ARITHMETIC | ELEMENTWISE
    return name in WHOLE_LAYERS | ARITHMETIC
