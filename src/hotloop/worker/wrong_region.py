"""Where an output is wrong: which elements, their box, and patterns along each dimension.

An element is wrong when it is further from the golden than the gate lets any element be; where such
elements do not carry the error (the gate failed on the whole), the limit of the element's own tile
is taken; where it failed on tiles, only elements of these count, beyond what the tile's root mean
square may be; where it failed on a part (`part_rule.py`), the limit is that of the element's own
row. Everything here is counted over all elements on the device.

Not here: by how much (`error_law.py`) and where wrong values come from (`provenance.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotloop.worker.compare import CHUNK, TILE, Bound, tail_limit
from hotloop.worker.error_stats import tile_counts
from hotloop.worker.row_errors import PART

LOCAL_FACTOR = 8.0
"""Errors of a right kernel stay within 8 times the root mean square of their tile: 8 sigma."""
CARRIED_FRAC = 0.9
"""Share of the squared error that the elements beyond the tail limit must carry to be the story."""
MAX_PICKED = 1 << 16
MAX_LISTED = 1 << 22
"""Up to this many wrong elements are listed; of more, a random part is picked."""
BLOCKS = (512, 256, 128, 64, 32, 16, 8)
PERIODS = (2, 4, 8, 16, 32, 64, 128, 256)
MIN_DIAGONAL = 8


@dataclass(slots=True)
class Compared:
    """One output beside its golden, flat, and what each element may be off by."""

    got: Tensor
    golden: Tensor
    bound: Bound
    local: bool = False
    """Whether limits are those of each tile rather than the one of the whole output."""
    by_row: Tensor | None = None
    """What the elements of each row may be off by, where limits are those of rows."""
    by_tile: Tensor | None = None
    """The same of each tile, where limits are those of tiles of their own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output."""
        return self.bound.shape

    def limits(self, flat: Tensor) -> Tensor:
        """Return what the elements at these flat positions may be off by, float64."""
        if self.bound.exact:
            return torch.zeros(flat.shape, dtype=torch.float64, device=flat.device)
        if self.by_row is not None:
            return self.by_row[flat // (self.golden.numel() // self.by_row.numel())]
        whole = tail_limit(self.bound)
        if not self.local:
            return torch.full(flat.shape, whole, dtype=torch.float64, device=flat.device)
        by_tile = _tile_limits(self.bound) if self.by_tile is None else self.by_tile
        return by_tile[flat // TILE].clamp(max=whole)

    def wrong(self) -> Tensor:
        """Return a boolean per element: further off than its limit, or not finite."""
        mask = torch.empty(self.got.numel(), dtype=torch.bool, device=self.got.device)
        for start in range(0, mask.numel(), CHUNK):
            span = slice(start, start + CHUNK)
            error = self.got[span].to(torch.float64) - self.golden[span].to(torch.float64)
            if self.local:
                flat = torch.arange(start, start + error.numel(), device=mask.device)
                mask[span] = ~(error.abs_() <= self.limits(flat))
            else:
                limit = 0.0 if self.bound.exact else tail_limit(self.bound)
                mask[span] = ~(error.abs_() <= limit)
        return mask


def _tile_limits(bound: Bound) -> Tensor:
    count = tile_counts(bound.count, bound.envelope_tile)
    spread = (bound.envelope_tile / count).sqrt() + (bound.floor_tile / count).sqrt()
    return LOCAL_FACTOR * spread


def _bad_tile_limits(bound: Bound, beyond: Tensor) -> Tensor:
    """Return what elements of the tiles that failed may be off by; of the others, anything."""
    own = bound.tile_limit / tile_counts(bound.count, bound.envelope_tile).sqrt()
    return torch.where(beyond, own, torch.inf)


def _row_limits(golden: Tensor, bound: Bound, sum_sq: Tensor) -> Tensor:
    """Return limits of rows: by what the envelope is off there, and as a share of their size."""
    size = golden.reshape(sum_sq.numel(), -1).double().nan_to_num(0.0, 0.0, 0.0).square()
    share = (bound.envelope_rmse + bound.floor_rmse) / bound.golden_rms if bound.golden_rms else 0.0
    return LOCAL_FACTOR * ((sum_sq / size.shape[1]).sqrt() + share * size.mean(1).sqrt())


def compare_closely(
    output: Tensor,
    golden: Tensor,
    bound: Bound,
    *,
    rule: str | None = None,
    beyond: Tensor | None = None,
) -> tuple[Compared, Tensor]:
    """Return the comparison and its mask of wrong elements, by the limit that carries the error.

    Args:
        output: a candidate's.
        golden: of the same shape.
        bound: of the output.
        rule: that the gate failed on.
        beyond: bool, one a tile: those that failed, where it failed on tiles.
    """
    compared = Compared(output.reshape(-1), golden.reshape(-1), bound)
    if beyond is not None:
        compared.local = True
        compared.by_tile = _bad_tile_limits(bound, beyond)
        return compared, compared.wrong()
    if rule == PART and bound.rows is not None:
        compared.local = True
        compared.by_row = _row_limits(golden, bound, bound.rows.sum_sq)
        return compared, compared.wrong()
    mask = compared.wrong()
    if bound.exact or _carried_frac(compared, mask) >= CARRIED_FRAC:
        return compared, mask
    compared.local = True
    return compared, compared.wrong()


def _carried_frac(compared: Compared, mask: Tensor) -> float:
    """Share of the squared error in the masked elements; 1 where a value is not finite."""
    inside = total = 0.0
    for start in range(0, mask.numel(), CHUNK):
        span = slice(start, start + CHUNK)
        error = compared.got[span].to(torch.float64) - compared.golden[span].to(torch.float64)
        square = error.square_()
        total += float(square.sum().item())
        inside += float(torch.where(mask[span], square, 0.0).sum().item())
    if total != total or total == float("inf"):
        return 1.0
    return inside / total if total else 1.0


def pick(mask: Tensor, count: int = MAX_PICKED) -> Tensor:
    """Return up to `count` flat positions of a mask's true elements, sorted, spread at random."""
    gen = torch.Generator(device=mask.device).manual_seed(0)  # the judge's own stream stays as is
    if mask.numel() > 16 * MAX_LISTED and int(mask.sum().item()) > MAX_LISTED:
        probed = torch.randint(
            mask.numel(), (MAX_LISTED,), generator=gen, device=mask.device
        ).unique()
        found = probed[mask[probed]]
    else:
        found = mask.nonzero().reshape(-1)
    if found.numel() <= count:
        return found
    chosen = torch.randint(found.numel(), (count,), generator=gen, device=mask.device).unique()
    return found[chosen]


def unravelled(flat: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the indices of flat positions, one row each."""
    return torch.stack(torch.unravel_index(flat, shape), dim=-1) if shape else flat.reshape(-1, 0)


def _hit_along(mask: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """Return the indices of one dimension that have true elements, on the CPU.

    Of a dimension beyond `MAX_LISTED` only the first and the last are returned.
    """
    others = [other for other in range(len(shape)) if other != dim]
    hit = mask.view(shape).sum(dim=others) > 0 if others else mask
    if hit.numel() <= MAX_LISTED:
        return hit.nonzero().reshape(-1).cpu()
    first = int(hit.to(torch.uint8).argmax().item())
    last = hit.numel() - 1 - int(hit.flip(0).to(torch.uint8).argmax().item())
    return torch.tensor([first, last])


def describe_region(mask: Tensor, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return `box` (first and last index a dimension) and `patterns` of a mask that is not empty.

    A pattern is exact: the indices of that dimension which it names hold wrong elements, the others
    none. `one` {at}; `range` {from, to, block}: adjacent indices, with the largest usual block that
    both ends are aligned to; `every` {step, from}; `period` {period, from, to}: places within each
    period; `some` {count}.
    """
    if not shape:
        return {}
    hit = [_hit_along(mask, shape, dim) for dim in range(len(shape))]
    patterns = []
    for dim, (indices, size) in enumerate(zip(hit, shape, strict=True)):
        pattern = _pattern(indices, size) if size <= MAX_LISTED else None
        if pattern is not None:
            patterns.append({"dim": dim, "size": size, **pattern})
    region: dict[str, Any] = {
        "box": [[int(i[0].item()), int(i[-1].item())] for i in hit],
        "patterns": patterns,
    }
    if all(2 * i.numel() >= size for i, size in zip(hit[-2:], shape[-2:], strict=True)):
        side = _side_of_diagonal(mask, shape)
        region |= {"diagonal": side} if side else {}
    return region


def _pattern(indices: Tensor, size: int) -> dict[str, Any] | None:
    count, first, last = indices.numel(), int(indices[0].item()), int(indices[-1].item())
    if count == size:
        return None
    if count == 1:
        return {"kind": "one", "at": first}
    if last - first + 1 == count:
        block = next((b for b in BLOCKS if _aligned(b, first, last, size)), None)
        return {"kind": "range", "from": first, "to": last, "block": block}
    steps = indices.diff()
    step = int(steps[0].item())
    if count >= 3 and bool((steps == step).all()) and first < step and last + step >= size:
        return {"kind": "every", "step": step, "from": first}
    for period in PERIODS:
        if size < 2 * period:
            break
        places = (indices % period).unique()
        low, high = int(places[0].item()), int(places[-1].item())
        whole = torch.arange(size)
        expected = (whole % period >= low) & (whole % period <= high)
        if high - low + 1 < period and int(expected.sum().item()) == count:
            return {"kind": "period", "period": period, "from": low, "to": high}
    return {"kind": "some", "count": count}


def _aligned(block: int, first: int, last: int, size: int) -> bool:
    return size > block and first % block == 0 and (last == size - 1 or (last + 1) % block == 0)


def _side_of_diagonal(mask: Tensor, shape: tuple[int, ...]) -> str | None:
    """Say that all wrong elements of the last two dimensions lie on one side of the diagonal."""
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < MIN_DIAGONAL:
        return None
    plane = mask.view(-1, shape[-2], shape[-1]).any(dim=0)
    if not bool(torch.triu(plane).any()):
        return "below"
    if not bool(torch.tril(plane).any()):
        return "above"
    off = plane.clone()
    off.fill_diagonal_(False)
    return "on" if not bool(off.any()) else None
