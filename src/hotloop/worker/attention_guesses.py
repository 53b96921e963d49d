"""Usual mistakes in attention kernels, tried on a few wrong rows of an output.

For a few (batch, head, query row) places with wrong elements, attention is computed again in
float64 with one deliberate mistake each: no mask, no scale, natural and binary exponents mixed up,
indices off by one or counted within a block. A mistake is told only if what comes out equals the
candidate's output there within the gate's bounds, on every group of rows looked at, and if no other
mistake does as well. No call of the candidate is needed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotloop.worker.attention_math import Grid, Mods, over_grid
from hotloop.worker.compare import Bound
from hotloop.worker.wrong_region import Compared, unravelled

LOG2E = math.log2(math.e)
MAX_ROWS = 24
GROUPS = 3
"""(batch, head) pairs looked at."""
EXPLAINED_FRAC = 0.99
ROW_FACTOR = 2.0
"""A few rows may be off by more than the whole output is."""
MIN_WRONG = 64
"""Wrong elements in a group of rows, under which nothing is told."""
KEY_BLOCKS = (16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Rows:
    """Some query rows of one (batch, head), in float64."""

    q: Tensor
    k: Tensor
    v: Tensor
    grid: Grid
    mods: Mods
    batch: int
    """Batches of the problem."""
    heads: int

    def dots(self) -> Tensor:
        """Return q k^T, unscaled, (1, 1, rows, keys)."""
        return self.q @ self.k.mT

    def biased(self, scores: Tensor, grid: Grid | None = None) -> Tensor:
        """Apply the score_mod, if there is one."""
        if self.mods.score_mod is None:
            return scores
        return over_grid(self.mods.score_mod, grid or self.grid, scores).to(scores.dtype)

    def kept(self, grid: Grid | None = None) -> Tensor:
        """Return where the mask keeps a score."""
        if self.mods.mask_mod is None:
            return torch.ones((1, 1, 1, 1), dtype=torch.bool, device=self.q.device)
        return over_grid(self.mods.mask_mod, grid or self.grid)

    def scores(self, grid: Grid | None = None) -> Tensor:
        """Return right scores, on other indices if given; masked ones are -inf."""
        scores = self.biased(self.dots() * self.mods.scale, grid)
        return scores.masked_fill(~self.kept(grid), float("-inf"))

    def attend(self, scores: Tensor, v: Tensor | None = None) -> Tensor:
        """Return the rows' outputs for these scores."""
        values = self.v if v is None else v
        if self.mods.sigmoid:
            return scores.sigmoid() @ values
        return torch.nan_to_num(scores.softmax(dim=-1), nan=0.0) @ values


def guess_mistake(reference: Any, draw: Any, compared: Compared, wrong: Tensor) -> str | None:
    """Return the name of the mistake that explains the output, see `mistakes`, or None.

    Args:
        reference: an `AttentionReference`; its captured tensors must be bound by the caller, wide.
        draw: the inputs of the call.
        compared: the output and its golden.
        wrong: flat positions of wrong elements, a random part or all.
    """
    alive: set[str] | None = None
    for batch, head, picked in _groups(compared, wrong):
        rows = _rows(reference, draw, batch, head, picked)
        found = _outputs(compared, batch, head, picked)
        alive = {
            name
            for name, mistaken in mistakes(rows)
            if (alive is None or name in alive) and _explains(mistaken, found, compared.bound)
        }
        if not alive:
            return None
    return alive.pop() if alive and len(alive) == 1 else None


def mistakes(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    """Yield the outputs of each mistake that this problem leaves room for, by name."""
    yield from _wrong_scale(rows)
    yield from _wrong_mods(rows)
    yield from _wrong_indices(rows)
    yield from _wrong_weights(rows)
    yield from _missing_keys(rows)


def _wrong_scale(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    mods, dots = rows.mods, rows.dots()
    masked = ~rows.kept()

    def attend(scores: Tensor) -> Tensor:
        return rows.attend(scores.masked_fill(masked, float("-inf")))

    yield "no_scale", attend(rows.biased(dots))
    yield "scale_twice", attend(rows.biased(dots * mods.scale**2))
    if mods.score_mod is not None:
        yield "score_mod_before_scale", attend(rows.biased(dots) * mods.scale)
        binary = rows.biased(dots * (mods.scale * LOG2E)) / LOG2E
        yield "score_mod_on_log2_scores", attend(binary)
    if not mods.sigmoid:
        yield "exp2_without_log2e", rows.attend(rows.scores() / LOG2E)
        yield "log2e_twice", rows.attend(rows.scores() * LOG2E)


def _wrong_mods(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    mods = rows.mods
    if mods.score_mod is not None:
        bare = dataclasses.replace(rows, mods=dataclasses.replace(mods, score_mod=None))
        yield "no_score_mod", bare.attend(bare.scores())
    if mods.mask_mod is None:
        return
    bare = dataclasses.replace(rows, mods=dataclasses.replace(mods, mask_mod=None))
    scores, kept = bare.scores(), rows.kept()
    yield "no_mask", rows.attend(scores)
    yield "mask_inverted", rows.attend(scores.masked_fill(kept, float("-inf")))
    yield "masked_scores_zero", rows.attend(torch.where(kept, scores, 0.0))
    if not mods.sigmoid:
        weights = scores.softmax(dim=-1)
        yield "mask_after_softmax", torch.where(kept, weights, 0.0) @ rows.v


def _wrong_indices(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    if rows.mods.score_mod is None and rows.mods.mask_mod is None:
        return
    grid = rows.grid
    # Only indices that the problem has: a captured tensor read past its end kills this process.
    changed = {
        "query_index_plus_1": {"q": grid.q + 1},
        "query_index_minus_1": {"q": grid.q - 1},
        "head_index_0": {"h": grid.h * 0},
        "batch_index_0": {"b": grid.b * 0},
    }
    if int(grid.h) + 1 < rows.heads:
        changed["head_index_plus_1"] = {"h": grid.h + 1}
    if int(grid.h) < rows.batch and int(grid.b) < rows.heads:
        changed["batch_and_head_exchanged"] = {"b": grid.h, "h": grid.b}
    for block in KEY_BLOCKS:
        if block < int(grid.kv.numel()):
            changed[f"key_index_within_block_{block}"] = {"kv": grid.kv % block}
            changed[f"query_index_within_block_{block}"] = {"q": grid.q % block}
    for name, fields in changed.items():
        yield name, rows.attend(rows.scores(dataclasses.replace(grid, **fields)))


def _wrong_weights(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    scores = rows.scores()
    if not rows.mods.sigmoid:
        top = scores.amax(dim=-1, keepdim=True)
        yield "no_division", (scores - torch.where(torch.isneginf(top), 0.0, top)).exp() @ rows.v
    if rows.k.shape == rows.v.shape:
        swapped = dataclasses.replace(rows, k=rows.v, v=rows.k)
        yield "k_and_v_exchanged", swapped.attend(swapped.scores())


def _missing_keys(rows: Rows) -> Iterator[tuple[str, Tensor]]:
    scores, keys = rows.scores(), rows.k.shape[2]
    blocks = [block for block in KEY_BLOCKS if block < keys]
    # Blocks of several sizes may leave out the same keys: each number of keys is one mistake.
    last = {keys % b or b for b in blocks} | {keys - b for b in blocks}
    for count in sorted(last):
        yield (
            f"last_{count}_keys_left_out",
            rows.attend(scores[..., :-count], rows.v[:, :, :-count]),
        )
    for count in blocks:
        yield f"first_{count}_keys_left_out", rows.attend(scores[..., count:], rows.v[:, :, count:])
    for count in sorted({b - keys % b for b in KEY_BLOCKS if keys % b}):
        padding = scores.new_zeros((*scores.shape[:-1], count))
        zeros = rows.v.new_zeros((1, 1, count, rows.v.shape[-1]))
        yield (
            f"padded_by_{count}_keys",
            rows.attend(torch.cat([scores, padding], dim=-1), torch.cat([rows.v, zeros], dim=2)),
        )


def _groups(compared: Compared, wrong: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    """Yield up to `GROUPS` (batch, head, rows): the pairs with the most wrong elements."""
    index = unravelled(wrong, compared.shape)
    pairs, counts = index[:, :2].unique(dim=0, return_counts=True)
    for at in _apart(pairs[counts.argsort(descending=True)].tolist()):
        here = (index[:, 0] == at[0]) & (index[:, 1] == at[1])
        rows = index[here][:, 2].unique()
        rows = rows[(rows > 0) & (rows < compared.shape[2] - 1)]  # both neighbours exist
        if rows.numel():
            yield at[0], at[1], rows[:: -(-rows.numel() // MAX_ROWS)]


def _apart(pairs: list[list[int]]) -> list[list[int]]:
    """Return the first pair and the first that differ from it: in both, in the head, in either."""
    first = pairs[0]
    both = [p for p in pairs if p[0] != first[0] and p[1] != first[1]]
    head = [p for p in pairs if p[1] != first[1]]
    chosen = [first, *both[:1], *head[:1], *pairs[1:2]]
    return [pair for i, pair in enumerate(chosen) if pair not in chosen[:i]][:GROUPS]


def _rows(reference: Any, draw: Any, batch: int, head: int, picked: Tensor) -> Rows:
    q, k, v = reference.in_order(draw)
    shared = head // (q.shape[1] // k.shape[1])
    at = torch.tensor([batch], device=q.device)
    grid = Grid(
        at, torch.tensor([head], device=q.device), picked, torch.arange(k.shape[2], device=q.device)
    )
    return Rows(
        q[batch, head, picked].double()[None, None],
        k[batch, shared].double()[None, None],
        v[batch, shared].double()[None, None],
        grid,
        reference.mods,
        q.shape[0],
        q.shape[1],
    )


def _outputs(
    compared: Compared, batch: int, head: int, picked: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    shape = compared.shape
    got = compared.got.view(shape)[batch, head, picked].double()
    right = compared.golden.view(shape)[batch, head, picked].double()
    first = ((batch * shape[1] + head) * shape[2] + picked) * shape[3]
    flat = first[:, None] + torch.arange(shape[3], device=picked.device)
    return got, right, compared.limits(flat)


def _explains(mistaken: Tensor, found: tuple[Tensor, Tensor, Tensor], bound: Bound) -> bool:
    got, right, limits = found
    told = mistaken[0, 0]
    size = right.square().mean().sqrt()
    larger = max(1.0, float((told.square().mean().sqrt() / size).item())) if float(size) else 1.0
    wrong = (got - right).abs() > limits
    if not math.isfinite(larger) or int(wrong.sum().item()) < MIN_WRONG:
        return False
    left = (told - got).abs()
    same = left <= limits * larger  # rounding grows with the values
    share = min(float(same.double().mean().item()), float(same[wrong].double().mean().item()))
    rmse = bound.bulk_factor * bound.envelope_rmse + bound.floor_rmse
    is_close = float(left.square().mean().sqrt().item()) <= ROW_FACTOR * rmse * larger
    return share > EXPLAINED_FRAC and is_close


def masked_rows(reference: Any, compared: Compared, nonfinite: Tensor) -> bool:
    """Whether every key is masked in all query rows of these elements (a part of at most 64)."""
    if reference.mods.mask_mod is None:
        return False
    rows = unravelled(nonfinite, compared.shape)[:, :3].unique(dim=0)
    keys = torch.arange(reference.sizes.Skv, device=rows.device)
    for row in rows[:: -(-rows.shape[0] // 64)]:
        grid = Grid(row[0:1], row[1:2], row[2:3], keys)
        if bool(over_grid(reference.mods.mask_mod, grid).any()):
            return False
    return True
