"""Fingerprints: whether one tensor holds another's values, in whatever order they lie.

Two fingerprints are alike when the tensors hold the same bits in any order (a sum over the bits, as
integers, wraps and does not depend on the order), or nearly the same values at the same places.

A tensor is read in pieces: torch widens all of what it sums as integers, which for an input of
6 GB would take 12 GB more. Where values cannot be read (sparse tensors, types without arithmetic),
a fingerprint is unknown: like none, equal to none, so that nobody is refused for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

SAMPLES = 512
NEAR = 1e-4
"""Relative RMS difference of sampled values under which arithmetic has changed nothing."""
PIECE = 1 << 24
"""Elements that are summed at a time; each takes 8 bytes then."""

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_unknown = itertools.count(-1, -1)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A few numbers of one tensor."""

    bits: int
    samples: tuple[float, ...]
    unknown: int = 0
    """Not 0, and another number each time, where the values could not be read."""

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Fingerprint:
        """Take the fingerprint of a tensor; waits for the device."""
        try:
            return cls._of(tensor.detach())
        except (RuntimeError, TypeError, KeyError):  # also: no memory, no such operation
            return cls(0, (), next(_unknown))

    @classmethod
    def _of(cls, tensor: torch.Tensor) -> Fingerprint:
        if tensor.numel() == 0:
            return cls(0, ())
        word = _WORDS[tensor.element_size()]
        total = torch.zeros((), dtype=torch.int64, device=tensor.device)
        for piece in _pieces(tensor):
            total += piece.contiguous().view(word).sum(dtype=torch.int64)
        return cls(int(total), tuple(_samples(tensor)))

    def is_like(self, other: Fingerprint) -> bool:
        """Whether the tensors hold the same values; tensors that hold one value only never do."""
        if self.unknown or other.unknown:
            return False
        if len(self.samples) != len(other.samples) or self._is_constant():
            return False
        if self.bits == other.bits:
            return True
        # By the largest, whose square may be past the largest number there is.
        unit = max((abs(b) for b in other.samples if math.isfinite(b)), default=0.0) or 1.0
        pairs = [(a / unit, b / unit) for a, b in zip(self.samples, other.samples, strict=True)]
        differences = [abs(a - b) for a, b in pairs]
        if not all(d <= 1.0 for d in differences):  # NaN is not, either
            return False
        size = math.fsum(b * b for _, b in pairs)
        return math.fsum(d * d for d in differences) <= NEAR**2 * size

    def _is_constant(self) -> bool:
        return len(self.samples) > 1 and len(set(self.samples)) == 1


def _pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the tensor's elements, in any order and each stored one once, as flat pieces."""
    order = [d for d in range(tensor.dim()) if tensor.shape[d] > 1 and tensor.stride(d) != 0]
    order.sort(key=tensor.stride, reverse=True)
    for d in reversed(range(tensor.dim())):  # from behind: the numbers before it stay
        if d not in order:
            tensor = tensor.select(d, 0)
    if tensor.dim() == 0:
        yield tensor.reshape(1)
        return
    kept = sorted(order)
    tensor = tensor.permute([kept.index(d) for d in order])
    rows = max(1, PIECE // (tensor.numel() // tensor.shape[0]))
    for part in tensor.split(rows):
        yield from part.reshape(-1).split(PIECE)


def _samples(tensor: torch.Tensor) -> list[float]:
    n = tensor.numel()
    at = torch.linspace(0, n - 1, min(SAMPLES, n), dtype=torch.float64, device="cpu").long()
    places = []
    for extent in reversed(tensor.shape):
        places.append((at % extent).to(tensor.device))
        at = at // extent
    values = tensor[tuple(reversed(places))] if places else tensor.reshape(1)
    found: list[float] = values.double().tolist()
    return found


def bytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes that a look reads: those that are expanded lie there once."""
    nbytes = tensor.numel() * tensor.element_size()
    return (
        min(nbytes, tensor.untyped_storage().nbytes()) if tensor.layout is torch.strided else nbytes
    )
