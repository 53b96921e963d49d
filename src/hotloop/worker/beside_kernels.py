"""What torch may do beside kernels, by the problem's policy and by what its reference executes.

Work is summed over the call, for each operation and for all that are barred together: an operation
that is applied to one piece after another is as much work as applied to the whole. Which operations
count depends on the reference:

attention (`none`)       no product and no whole layer; of the values of the call's tensors and of
                         kernels, moves and a little arithmetic of elements (`refused_on_values`)
with products            all of torch's; a library product may stand beside kernels
without products         moves, allocation and a little plain arithmetic of elements only, where all
                         that the reference does is known to hold no product; where it is not known,
                         no whole layer, reduction or function, no unknown operator, and nothing
                         that it does itself

Values may not go through host memory anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hotloop.worker.census import (
    ARITHMETIC,
    ELEMENTWISE,
    GATHERING,
    LIBRARY_PRODUCTS,
    NO_ARITHMETIC,
    PRODUCTS,
    REDUCTIONS,
    WHOLE_LAYERS,
    WITH_PRODUCTS,
)
from hotloop.worker.host_reads import DEVICE_READS, HOST_READS
from hotloop.worker.unknown_operators import (
    ACCUMULATING,
    MOVING,
    OF_PARTS,
    OF_WIDER,
    base_of,
    is_unknown,
)

LARGE_SHARE = 0.5
"""Operations on tensors of this share of the problem's largest, together, are work."""
ALL_SHARE = 1.0
"""The same for all barred operations together, each of which may be preparation."""
ELEMENTWISE_SHARE = 3.0
"""The same for plain arithmetic, which may scale, shift and mask: more of it is a function."""
ARITHMETIC_SHARE = 4.0
"""The same for reductions and functions beside attention: its scores are larger than its inputs."""
FEW = 4096
"""Elements of plain arithmetic that are free however small the problem is: tables."""
KNOWN_WITHOUT_PRODUCTS = (NO_ARITHMETIC | ELEMENTWISE | ARITHMETIC | WHOLE_LAYERS) - WITH_PRODUCTS
VALUES_SHARE = 4.0
"""Beside attention, arithmetic of elements, reductions and functions together, of what they are
applied to: scales, casts in parts and the joining of partial results stay under it."""
COMPLEX = frozenset(
    {
        "_conj", "_fft_c2c", "_fft_c2r", "_fft_r2c", "complex", "conj_physical", "imag", "istft",
        "polar", "real", "stft", "view_as_complex", "view_as_real",
    }
)  # fmt: skip
"""What shows that a reference uses complex numbers: then pairs of elements are numbers."""
CHECKS = frozenset({"all", "any"})
"""Reductions that may prepare a mask, unless they are what the problem asks for."""


def refused(
    operations: Mapping[str, int],
    policy: str,
    census: Collection[str],
    largest: int,
    answer: int = 0,
) -> str | None:
    """Return the first operation that may not stand beside a kernel, or None.

    Args:
        operations: operation -> elements that its calls touched.
        policy: `none` or `anchored`.
        census: the reference's operations; empty where nothing is known of them.
        largest: elements of the problem's largest tensor.
        answer: elements of its largest output.
    """
    reference = plain_names(census)
    at_least = max(2, int(largest * LARGE_SHARE))
    for names in (HOST_READS, DEVICE_READS):  # each read by two ways is seen by both
        read = _of(operations, names)
        if sum(read.values()) >= at_least:
            return _chief(read)
    others = {n: s for n, s in operations.items() if n not in HOST_READS | DEVICE_READS}
    others = _of_wider_elements(others, reference)
    barred = {n: s for n, s in others.items() if _is_barred(n, policy, reference)}
    found = next((n for n, size in barred.items() if size >= at_least), None)
    if found is not None:
        return found
    layers = _of(barred, WHOLE_LAYERS | REDUCTIONS)
    limits = [(layers, at_least), (barred, max(2, int(largest * ALL_SHARE)))]
    if policy == "none":
        limits.append((_of(others, ARITHMETIC), max(2, int(largest * ARITHMETIC_SHARE))))
    elif reference and reference <= KNOWN_WITHOUT_PRODUCTS:
        at_most = max(FEW, int(largest * ELEMENTWISE_SHARE))
        limits.append((_of(others, ELEMENTWISE), at_most))
        if reference & GATHERING and answer >= FEW:  # most of a table is not touched
            limits.append((_of(barred, WHOLE_LAYERS | ARITHMETIC), int(answer * LARGE_SHARE)))
    return next((_chief(some) for some, limit in limits if sum(some.values()) >= limit), None)


def refused_on_values(done: Mapping[str, int], applied: int, largest: int) -> str | None:
    """Return the first operation that may not stand beside a kernel where products are barred.

    A list of what may stand: products have too many names, and can be made of any arithmetic.

    Args:
        done: operation -> elements, of those on values of the call's tensors and of kernels.
        applied: elements of all those values.
        largest: elements of the problem's largest tensor.
    """
    strange = {n: s for n, s in done.items() if is_unknown(n) and n not in ACCUMULATING}
    work = {n: s for n, s in done.items() if n not in NO_ARITHMETIC | MOVING and n not in strange}
    at_least = max(2, int(largest * LARGE_SHARE))
    large = {n: s for n, s in strange.items() if s >= at_least}
    limits = [
        (large, 1),
        (strange, max(2, int(largest * ALL_SHARE))),
        (work, max(FEW, int(max(applied, largest) * VALUES_SHARE))),
    ]
    return next((_chief(some) for some, limit in limits if sum(some.values()) >= limit), None)


def _of_wider_elements(operations: Mapping[str, int], reference: Collection[str]) -> dict[str, int]:
    """Return operations, those on several elements as one as what they are to a reference."""
    found: dict[str, int] = {}
    for name, size in operations.items():
        plain = name
        if name.endswith(OF_WIDER):
            plain = base_of(name) + ("" if COMPLEX & set(reference) else OF_PARTS)
        found[plain] = found.get(plain, 0) + size
    return found


def _of(operations: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    return {n: size for n, size in operations.items() if n in names}


def _chief(operations: Mapping[str, int]) -> str:
    return max(operations, key=lambda n: operations[n])


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
    is_its_own = name in reference and name not in NO_ARITHMETIC | ELEMENTWISE
    return is_its_own or name in WHOLE_LAYERS | ARITHMETIC or is_unknown(name)
