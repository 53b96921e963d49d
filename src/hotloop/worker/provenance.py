"""Where wrong values come from: elements of the right result in another place, or of an input.

Wrong elements are compared with the golden shifted along a dimension, with two dimensions
transposed in memory, with slices of a dimension exchanged, and with the inputs. That needs no call
of the candidate. Something is told only if it explains 99 % of the wrong elements within the gate's
bounds, where values at random places explain few of them, and only if nothing else does as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from hotloop.worker.wrong_region import Compared, unravelled

EXPLAINED_FRAC = 0.99
MIN_ELEMENTS = 256
MAX_BY_CHANCE_FRAC = 0.2
TRIED = 1 << 11
"""Wrong elements that every shift is tried on; what explains them is tried on all."""
MAX_WRAPPED = 1024
"""Dimensions up to this size are tried with every cyclic shift."""
MAX_SLICES = 128
NEAR_SHIFTS = 128
Origin = dict[str, Any]


def find_origin(compared: Compared, wrong: Tensor, inputs: Sequence[Any]) -> Origin | None:
    """Return where the wrong elements come from, or None when that cannot be said.

    Args:
        compared: the output and its golden.
        wrong: flat positions of wrong elements, a random part or all.
        inputs: the arguments of forward.

    Returns:
        `shift` {dim, by}: element i holds what belongs at i + by. `transposed` {dims}. `slices`
        {dim, map}: slice i holds what belongs into slice map[i]. `input` {index}: a copy of it.
        `zero`: nothing but zeros.
    """
    finite = wrong[torch.isfinite(compared.got[wrong].to(torch.float64))]
    if finite.numel() < MIN_ELEMENTS or finite.numel() < 0.9 * wrong.numel():
        return None
    if not bool(compared.got[finite].any()):
        return {"kind": "zero"}
    if _by_chance(compared, finite) > MAX_BY_CHANCE_FRAC:
        return None
    found = [
        *_copied_input(compared, finite, inputs),
        *_shifts(compared, finite),
        *_transposes(compared, finite),
    ]
    found = found or list(_slice_maps(compared, finite))
    return found[0] if len(found) == 1 else None


def _explained(compared: Compared, at: Tensor, source: Tensor) -> float:
    """Return the share of elements `at` that hold the golden's values of `source`."""
    return _frac(_matches(compared, at, source))


def _matches(compared: Compared, at: Tensor, source: Tensor) -> Tensor:
    golden = compared.golden[source].to(torch.float64)
    error = (compared.got[at].to(torch.float64) - golden).abs()
    return error <= compared.limits(source)


def _by_chance(compared: Compared, wrong: Tensor) -> float:
    gen = torch.Generator(device=wrong.device).manual_seed(1)
    elsewhere = torch.randint(
        compared.golden.numel(), wrong.shape, generator=gen, device=wrong.device
    )
    neighbours = wrong[torch.randperm(wrong.numel(), generator=gen, device=wrong.device)]
    return max(_explained(compared, wrong, elsewhere), _explained(compared, wrong, neighbours))


def _copied_input(compared: Compared, wrong: Tensor, inputs: Sequence[Any]) -> Iterator[Origin]:
    got = compared.got[wrong]
    for index, value in enumerate(inputs):
        if not isinstance(value, Tensor) or value.numel() != compared.got.numel():
            continue
        if torch.equal(value.reshape(-1)[wrong].to(got.dtype), got):
            yield {"kind": "input", "index": index}
            return


def _shifts(compared: Compared, wrong: Tensor) -> Iterator[Origin]:
    shape = compared.shape
    tried = wrong[:: max(1, wrong.numel() // TRIED)]
    for dim, size in enumerate(shape):
        if size < 2:
            continue
        wraps = size <= MAX_WRAPPED
        by = _shift_candidates(size, wraps=wraps).to(wrong.device)
        good = _good_shifts(compared, tried, dim, by, wraps=wraps)
        for k in good:
            yield from _checked_shift(compared, wrong, dim, k)


def _checked_shift(compared: Compared, wrong: Tensor, dim: int, by: int) -> Iterator[Origin]:
    """Yield a shift if it explains all wrong elements, those past the end apart."""
    amount = torch.tensor([by], device=wrong.device)
    source, _ = _shifted(wrong, compared.shape, dim, amount, wraps=True)
    _, valid = _shifted(wrong, compared.shape, dim, amount)
    within = _matches(compared, wrong, source[:, 0])
    inside, past = within[valid[:, 0]], within[~valid[:, 0]]
    if past.numel() and _frac(past) > EXPLAINED_FRAC and _frac(within) > EXPLAINED_FRAC:
        yield {"kind": "shift", "dim": dim, "by": by, "wraps": True}
    elif 2 * inside.numel() >= wrong.numel() and _frac(inside) > EXPLAINED_FRAC:
        yield {"kind": "shift", "dim": dim, "by": by}


def _frac(flags: Tensor) -> float:
    return float(flags.to(torch.float64).mean().item())


def _shift_candidates(size: int, *, wraps: bool) -> Tensor:
    if wraps:  # each cyclic shift once, by its smaller amount
        return torch.tensor([k if k <= size // 2 else k - size for k in range(1, size)])
    steps = {*range(1, NEAR_SHIFTS + 1), *range(16, 1025, 16)}
    steps |= {1 << e for e in range(11, size.bit_length())} | {size // 2}
    return torch.tensor(sorted({s for k in steps if k < size for s in (k, -k)}))


def _good_shifts(
    compared: Compared, tried: Tensor, dim: int, by: Tensor, *, wraps: bool
) -> list[int]:
    source, valid = _shifted(tried, compared.shape, dim, by, wraps=wraps)
    match = _matches(compared, tried[:, None].expand_as(source), source) & valid
    enough = valid.sum(dim=0) * 2 >= tried.numel()
    share = match.sum(dim=0) / valid.sum(dim=0).clamp(min=1)
    # Without the wrap a shift by k leaves k places of the end to chance: they are left out later.
    floor = 0.5 if wraps else EXPLAINED_FRAC
    good = by[(share > floor) & enough]
    return [int(k) for k in good.tolist()]


def _shifted(
    flat: Tensor, shape: tuple[int, ...], dim: int, by: Tensor, *, wraps: bool = False
) -> tuple[Tensor, Tensor]:
    """Return flat positions shifted along a dimension, (elements, shifts), and which exist."""
    stride = math.prod(shape[dim + 1 :])
    place = (flat // stride) % shape[dim]
    moved = place[:, None] + by[None, :]
    valid = (moved >= 0) & (moved < shape[dim])
    if wraps:
        return flat[:, None] + (moved % shape[dim] - place[:, None]) * stride, torch.ones_like(
            valid
        )
    safe = moved.clamp(0, shape[dim] - 1)
    return flat[:, None] + (safe - place[:, None]) * stride, valid


def _transposes(compared: Compared, wrong: Tensor) -> Iterator[Origin]:
    shape = compared.shape
    for a, b in itertools.combinations(range(len(shape)), 2):
        if min(shape[a], shape[b]) < 2:
            continue
        swapped = list(shape)
        swapped[a], swapped[b] = swapped[b], swapped[a]
        index = unravelled(wrong, tuple(swapped))
        order = list(range(len(shape)))
        order[a], order[b] = order[b], order[a]
        source = ravelled(index[:, order], shape)
        if _explained(compared, wrong, source) > EXPLAINED_FRAC:
            yield {"kind": "transposed", "dims": [a, b]}


def ravelled(index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the flat positions of indices, one row each."""
    flat = torch.zeros(index.shape[0], dtype=torch.int64, device=index.device)
    for dim, size in enumerate(shape):
        flat = flat * size + index[:, dim]
    return flat


def _slice_maps(compared: Compared, wrong: Tensor) -> Iterator[Origin]:
    for dim, size in enumerate(compared.shape):
        if not 2 <= size <= MAX_SLICES:
            continue
        found = _slice_map(compared, wrong, dim)
        if found is not None:
            yield {"kind": "slices", "dim": dim, "map": found}


def _slice_map(compared: Compared, wrong: Tensor, dim: int) -> list[int] | None:
    """Return for each slice the one whose right values it holds; None unless all are known."""
    size = compared.shape[dim]
    stride = math.prod(compared.shape[dim + 1 :])
    place = (wrong // stride) % size
    by = torch.arange(size, device=wrong.device)
    origin = list(range(size))
    for here in place.unique().tolist():
        at = wrong[place == here]
        at = at[:: max(1, at.numel() // TRIED)]
        if at.numel() < 16:
            return None
        source = at[:, None] + (by[None, :] - here) * stride
        share = _matches(compared, at[:, None].expand_as(source), source).double().mean(dim=0)
        good = (share > EXPLAINED_FRAC).nonzero().reshape(-1).tolist()
        if len(good) != 1:
            return None
        origin[here] = good[0]
    return origin
