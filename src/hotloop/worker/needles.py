"""Needles: attention inputs in which far keys matter although the bias makes them vanish.

With a bias like `score + (q_idx - kv_idx)` all but a few keys weigh nothing, and a kernel that
reads only those passes a plain check. Here one random key in each block of 64, the needle, gets a
score that wins against ordinary keys; where the bias is additive and depends on the key alone (up
to a term that is constant along the row), the needle's score cancels it.

The last four dimensions of q and k are reserved for that. A wanted score r(h) * f(key) + boost is a
sum of products of 16-bit numbers: r and f are split into a high and a low part, so what remains is
below 1 even for biases of ten thousands.

    q: r_high  r_high  r_low   c          k at a needle: f_high  f_low  f_high  boost
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.worker.attention_math import Grid, Mods, modified, over_grid

Shape = tuple[int, int, int, int, int]
"""B, H, Hkv, S, Skv."""
RESERVED = 4
"""Dimensions of q and k that carry the needles' scores."""
BLOCK = 64
BOOST = 6.0
"""A needle's score above ordinary ones: exp(6) = 403 outweighs the 63 others of its block."""
BIAS_RANGE = 10.0
"""A bias that spans more than this along the keys makes some of them vanish."""
MAX_SPREAD = 20.0
"""Largest spread of the needles' scores in a row, in units of the random part's deviation (1). The
random part alone spans 8 to 9 over thousands of needles; a bias that stays spans far more."""
SAMPLED_HEADS = 4
MATTERS_EPS = 4.0
"""Dropping a tile must move some row by this many epsilons of its dtype, times the row's RMS."""


@dataclass(frozen=True, slots=True)
class NeedlePlan:
    """Which keys are needles and which score each is given, per key-value head.

    `row_factor` is (B, H), `key_target` (B, Hkv, needles); their product plus `BOOST` is the score.
    """

    keys: Tensor
    row_factor: Tensor
    key_target: Tensor


def plan_needles(shape: Shape, mods: Mods, gen: torch.Generator) -> NeedlePlan:
    """Choose needles and the scores that cancel the bias at them."""
    batch, heads, kv_heads, _, keys = shape
    starts = torch.arange(0, keys, BLOCK, device=gen.device)
    widths = (keys - starts).clamp(max=BLOCK)
    chance = torch.rand(starts.shape, generator=gen, device=gen.device, dtype=torch.float64)
    needles = starts + (chance * widths).long().clamp(max=BLOCK - 1)
    bias = key_bias(shape, mods, gen.device)
    if bias is None:
        factor = torch.ones(batch, heads, dtype=torch.float64, device=gen.device)
        target = factor.new_zeros(batch, kv_heads, len(needles))
        return NeedlePlan(needles, factor, target)
    wanted = -bias[..., needles]  # (B, H, needles)
    grouped = wanted.reshape(batch, kv_heads, heads // kv_heads, -1)
    widest = grouped.abs().sum(dim=-1).argmax(dim=2)  # the head of each group with most bias
    index = widest[:, :, None, None].expand(-1, -1, 1, grouped.shape[-1])
    target = grouped.gather(2, index)  # (B, Hkv, 1, needles)
    ratio = (grouped * target).sum(-1) / target.square().sum(-1).clamp(min=1e-30)
    return NeedlePlan(needles, ratio.reshape(batch, heads), target[:, :, 0])


def key_bias(shape: Shape, mods: Mods, device: torch.device) -> Tensor | None:
    """Return the bias (B, H, Skv), 0 at its maximum, or None if there is none to cancel.

    There is none when it is not finite, spans little, or depends on query and key together.
    """
    if mods.score_mod is None:
        return None
    batch, heads, _, rows, keys = shape
    grid = Grid.ranges(device, (0, batch), (0, heads), (0, 1), (0, keys))
    grid = Grid(grid.b, grid.h, torch.tensor([0, rows // 3, rows - 1], device=device), grid.kv)
    zero = torch.zeros(batch, heads, 3, keys, dtype=torch.float64, device=device)
    bias = over_grid(mods.score_mod, grid, zero)
    if not bool(torch.isfinite(bias).all()):
        return None
    bias = bias - bias[..., :1]
    span = float((bias.amax(-1) - bias.amin(-1)).max())
    mixed = float((bias - bias[:, :, :1]).abs().max())
    if span <= BIAS_RANGE or mixed > 1e-3 * (1 + span):
        return None
    along = bias[:, :, 0]
    return along - along.amax(dim=-1, keepdim=True)


def write_needles(q: Tensor, k: Tensor, plan: NeedlePlan, scale: float) -> None:
    """Write the reserved dimensions of q (B, H, S, D) and k (B, Hkv, Skv, D) in place."""
    unit = 2.0 ** round(-torch.log2(torch.tensor(abs(scale) or 1.0)).item())
    gain = unit * scale  # within a factor of sqrt(2) of 1, so neither side over- nor underflows
    r_high, r_low = _split(plan.row_factor * unit, q.dtype)
    f_high, f_low = _split(plan.key_target / gain, k.dtype)
    q[..., -RESERVED:] = 0
    for d, value in enumerate((r_high, r_high, r_low, torch.full_like(r_high, unit))):
        q[..., d - RESERVED] = value.to(q.dtype)[..., None]
    k[..., -RESERVED:] = 0
    # half of the random part, so that no needle is drowned by luckier ones
    k[:, :, plan.keys] *= 0.5
    boost = torch.full_like(f_high, BOOST / gain)
    for d, values in enumerate((f_high, f_low, f_high, boost)):
        k[:, :, plan.keys, d - RESERVED] = values.to(k.dtype)


def needles_fault(q: Tensor, k: Tensor, v: Tensor, mods: Mods, plan: NeedlePlan) -> str | None:
    """Return why these inputs do not make every key tile matter, or None.

    For a sample of heads, rows and all tiles: recompute the output without one tile. It must differ
    from the full output by much more than the dtype can hide, wherever the tile's needle is visible
    at all. Call it with float64 as the default dtype.
    """
    rows, keys = q.shape[2], k.shape[2]
    at = torch.cat([plan.keys[plan.keys < rows], torch.tensor([rows - 1], device=q.device)])
    group = q.shape[1] // k.shape[1]
    smallest = float("inf")
    for b, h in _sampled_heads(q.shape[0], q.shape[1]):
        one = torch.tensor([0], device=q.device)
        grid = Grid(one + b, one + h, at, torch.arange(keys, device=q.device))
        qh, kh, vh = q[b, h, at], k[b, h // group], v[b, h // group].double()
        scores = modified((qh.double() @ kh.double().T)[None, None], grid, mods)[0, 0]
        unit = max(1.0, abs(mods.scale) * q.shape[-1] ** 0.5)
        if not mods.sigmoid and _needle_spread(scores, plan) > MAX_SPREAD * unit:
            return "the bias at far keys cannot be cancelled"
        smallest = min(smallest, _tile_effects(scores, vh, plan, sigmoid=mods.sigmoid))
    limit = MATTERS_EPS * torch.finfo(q.dtype).eps
    if smallest < limit:
        return f"leaving out a key tile moves the output by only {smallest:.2g} of its size"
    return None


def _tile_effects(scores: Tensor, v: Tensor, plan: NeedlePlan, *, sigmoid: bool) -> float:
    """Return the smallest effect of leaving out a tile, as a share of a row's size.

    The effect of a tile is that on the row that moves most; the smallest is over the tiles whose
    needle a sampled row sees.
    """
    tiles = torch.arange(scores.shape[-1], device=scores.device) // BLOCK
    count = int(tiles[-1]) + 1
    if sigmoid:
        weights = scores.sigmoid()
    else:
        weights = torch.softmax(scores, dim=-1).nan_to_num()  # rows without keys weigh nothing
    shares = scores.new_zeros(scores.shape[0], count).index_add_(1, tiles, weights)
    full = weights @ v
    # a row's own size counts: under a causal mask the first rows are far larger than the last
    sizes = full.square().mean(dim=-1).sqrt().clamp(min=1e-30)
    smallest = float("inf")
    for t in range(count):
        seen = torch.isfinite(scores[:, plan.keys[t]]) & (weights.sum(-1) > 0)
        if not bool(seen.any()):
            continue
        inside = weights[seen, t * BLOCK : (t + 1) * BLOCK] @ v[t * BLOCK : (t + 1) * BLOCK]
        rest = full[seen] - inside
        if not sigmoid:
            rest = rest / (1 - shares[seen, t : t + 1]).clamp(min=1e-12)
        effect = (rest - full[seen]).square().mean(dim=-1).sqrt() / sizes[seen]
        smallest = min(smallest, float(effect.max()))
    return smallest


def _needle_spread(scores: Tensor, plan: NeedlePlan) -> float:
    at = scores[:, plan.keys]
    finite = torch.isfinite(at)
    high = at.masked_fill(~finite, float("-inf")).amax(-1)
    low = at.masked_fill(~finite, float("inf")).amin(-1)
    spread = (high - low)[finite.any(-1)]
    return float(spread.max()) if spread.numel() else 0.0


def _sampled_heads(batch: int, heads: int) -> list[tuple[int, int]]:
    picks = {0, heads // 3, 2 * heads // 3, heads - 1}
    return [(i % batch, h) for i, h in enumerate(sorted(picks))][:SAMPLED_HEADS]


def _split(value: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    high = value.to(dtype).double()
    return high, (value - high).to(dtype).double()
