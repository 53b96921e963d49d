"""Index pairs: which index of one input meets which of another, in a sum of products.

An input that is 1 at one index of a dimension and 0 at all others leaves of the sum one term: then
the other input is read at one index, and digits tell which. That is done for two indices, so that
one number can be said to hold for all; the reference must show the index that was chosen.

Not here: what a single input's indices tell (`index_probe.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hotloop.worker.probe_draws import Probed, neutral_draw, tensor_of
from hotloop.worker.reference import Draw, Reference

MIN_SIZE = 4
Law = dict[str, Any]
Meets = Callable[[Draw, Probed, int, int], tuple[int, float] | None]
"""(draw, tensor, dim, chosen) -> the index of `dim` that is read, and the share of wrong elements
that read it; None where that share is small, or the reference does not read the chosen one."""


def find_pairing(
    reference: Reference, draw: Draw, sums: Sequence[tuple[Probed, int]], meets: Meets
) -> Law | None:
    """Return how two inputs meet in a sum: `pair` {tensor, other, dims, by, share}; else None.

    Index i of dimension `dims[1]` of `other` meets index i + by of `dims[0]` of `tensor`, where i
    belongs.

    Args:
        reference: of the problem.
        draw: the failing call's.
        sums: inputs, each with a dimension that the output sums over.
        meets: asks the candidate.
    """
    for (first, dim), (second, other_dim) in _pairs(sums, draw):
        size = tensor_of(draw, first).shape[dim]
        found: list[tuple[int, float]] = []
        for chosen in (size // 3, size // 2 + 1):
            fresh = neutral_draw(reference, draw)
            tensor_of(fresh, second).zero_().select(other_dim, chosen).fill_(1.0)
            answer = meets(fresh, first, dim, chosen)
            if answer is None or answer[0] == chosen:
                break
            found.append((answer[0] - chosen, answer[1]))
        shifts = {by for by, _ in found}
        if len(found) == 2 and len(shifts) == 1:
            return {
                "kind": "pair",
                "tensor": first.name,
                "other": second.name,
                "shape": list(tensor_of(draw, first).shape),
                "other_shape": list(tensor_of(draw, second).shape),
                "dims": [dim, other_dim],
                "by": shifts.pop(),
                "share": min(share for _, share in found),
            }
    return None


def _pairs(
    sums: Sequence[tuple[Probed, int]], draw: Draw
) -> Iterator[tuple[tuple[Probed, int], tuple[Probed, int]]]:
    for place, (first, dim) in enumerate(sums):
        for second, other_dim in sums[place + 1 :]:
            sizes = tensor_of(draw, first).shape[dim], tensor_of(draw, second).shape[other_dim]
            if first.key != second.key and sizes[0] == sizes[1] >= MIN_SIZE:
                yield (first, dim), (second, other_dim)
