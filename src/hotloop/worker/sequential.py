"""Sequential arithmetic: the sums that an honest, simple kernel forms, one term after another.

Vendor libraries add in trees or blocks, which is more accurate than the running accumulator of a
plain kernel. These functions form products and sums with running float32 accumulators (float64 for
float64 operands) and round to the output dtype once, so the gate does not reject a correct kernel
for being simple. They are slow and memory-bound, and fit for nothing but measuring an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MAX_STEPS = 8192
"""Longest chain of dependent additions of a sum; longer ones get more of them side by side."""
MAX_PRODUCT_STEPS = 1 << 17
"""That of a product, whose loop over k is one chain in the simplest kernel however long it is. Over
K = 65,536, chains of 8,192 steps eight deep refused it: with steps four deep, or one, it passes.
Longer products get `MAX_STEPS`: nobody has one thread do all of those, and steps cost time."""
LANES = 128
"""Partial sums that run side by side where one would be longer: a thread block's worth."""
WARP = 32
"""Those of a variance, and of the mean that it is about, over up to `MAX_STEPS` terms. One would be
as far off as E[x^2] - E[x]^2 is on values with a mean of five deviations, and excuse it."""
VOLUME = {"cuda": 1 << 36, "cpu": 1 << 28}
"""Multiply-adds up to which a product is formed one k at a time; about 0.2 s of memory traffic."""
LOG2_E = 1.4426950408889634
ABOVE = 0.5
"""By how much the bound of a softmax's scores is above them; e ** -0.5 has no short sums."""
TENSOR_CORE_K = 32
"""Depth of one step where operands go through tensor cores (16-bit operands, or TF32)."""


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the accumulator's dtype: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b for `(..., M, K)` and `(..., K, N)` of the same rank, in the accumulator dtype.

    The accumulator takes one k at a time, or a few where the product is too large for that.
    """
    wide = compute_dtype(a.dtype)
    a, b = operands(a, b)
    depth = a.shape[-1]
    out = torch.zeros((*a.shape[:-1], b.shape[-1]), dtype=wide, device=a.device)
    step = _step(a, out.numel() * depth, depth)
    for k in range(0, depth, step):
        left, right = a[..., k : k + step].to(wide), b[..., k : k + step, :].to(wide)
        if step == 1:
            out.addcmul_(left, right)
        else:
            out.add_(left @ right)
    return out


def operands(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return `a` and `b` as a GPU's product takes them: rounded where the policy allows TF32."""
    if _is_tf32(a) and not a.is_cuda:  # a GPU's own product rounds them, a CPU's does not
        return round_to_tf32(a), round_to_tf32(b)
    return a, b


def round_to_tf32(x: Tensor) -> Tensor:
    """Round float32 values to TF32's 10 mantissa bits, ties away from zero; NaN and Inf stay.

    This is the rounding of PTX `cvt.rna.tf32.f32`.
    """
    bits = x.contiguous().view(torch.int32)
    rounded = ((bits + (1 << 12)) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(x), rounded, x)


def _is_tf32(a: Tensor) -> bool:
    return a.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32


def _step(a: Tensor, volume: int, depth: int) -> int:
    longest = 1 if depth <= MAX_PRODUCT_STEPS else math.ceil(depth / MAX_STEPS)
    if a.dtype in (torch.float16, torch.bfloat16) or _is_tf32(a):
        return max(TENSOR_CORE_K, longest)
    excess = math.ceil(volume / VOLUME["cuda" if a.is_cuda else "cpu"])
    return max(longest, min(64, excess))


def total(
    x: Tensor, dims: Sequence[int], *, keepdim: bool = False, lanes: int | None = None
) -> Tensor:
    """Sum over `dims`, one term after another, in the accumulator dtype.

    One running sum is what a thread that has an output of its own forms. On equal values each of
    its additions is rounded to the same side, so that it is 10 to 50 times as far off as sums that
    are cut, at 2048 terms and more.

    Args:
        x: any shape, floating point.
        dims: what is summed over; empty means all dimensions, as in torch.
        keepdim: as in torch.
        lanes: running sums side by side, more where they would be over `MAX_STEPS` long; by
            default one, and `LANES` over more terms: nobody has one thread do all of those.
    """
    wide = compute_dtype(x.dtype)
    axes = sorted({d % max(x.dim(), 1) for d in dims} or set(range(x.dim())))
    kept = [d for d in range(x.dim()) if d not in axes]
    moved = x.permute(*kept, *axes)
    count = math.prod(x.shape[d] for d in axes)
    lanes = lanes or _lanes(count, 1)
    lanes *= max(1, math.ceil(count / (lanes * MAX_STEPS)))
    rows = moved.reshape(*(x.shape[d] for d in kept), count)
    first, *pieces = rows.split(lanes, dim=-1)
    sums = first.to(wide, copy=True)
    for piece in pieces:  # up to 8192 launches: one operation a step
        if piece.shape[-1] == lanes:
            sums.add_(piece)
        else:
            sums[..., : piece.shape[-1]].add_(piece)
    result = sums.sum(dim=-1)
    if keepdim:
        shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
        return result.reshape(shape)
    return result


def scan(x: Tensor, dim: int, *, product: bool = False) -> Tensor:
    """Return the running sum (or product) along `dim`, term by term, in the accumulator dtype."""
    wide = compute_dtype(x.dtype)
    # Contiguous, since each step reads one row; unbound, since indexing takes longer than a step.
    rows = x.movedim(dim, 0).to(wide).contiguous()
    out = torch.empty_like(rows)
    terms, sums = rows.unbind(), out.unbind()
    step = torch.mul if product else torch.add
    for i, term in enumerate(terms):
        if i == 0:
            sums[0].copy_(term)
        else:
            step(sums[i - 1], term, out=sums[i])
    return out.movedim(0, dim)


def mean(x: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Return the mean over `dims` in the accumulator dtype."""
    return total(x, dims, keepdim=keepdim) / reduced_count(x, dims)


def centre(
    x: Tensor, dims: Sequence[int], *, keepdim: bool = False, lanes: int | None = None
) -> Tensor:
    """Return the mean that a variance over `dims` is about, in the accumulator dtype.

    `lanes` as in `total`, by default `WARP` or `LANES`.
    """
    count = reduced_count(x, dims)
    return total(x, dims, keepdim=keepdim, lanes=lanes or _lanes(count, WARP)) / count


def variance(
    x: Tensor,
    dims: Sequence[int],
    correction: float,
    *,
    keepdim: bool = False,
    lanes: int | None = None,
) -> Tensor:
    """Return the two-pass variance over `dims` in the accumulator dtype; `lanes` as in `centre`."""
    count = reduced_count(x, dims)
    lanes = lanes or _lanes(count, WARP)
    centred = x.to(compute_dtype(x.dtype)) - centre(x, dims, keepdim=True, lanes=lanes)
    squares = total(centred.square_(), dims, keepdim=keepdim, lanes=lanes)
    return squares / max(count - correction, 0)


def _lanes(count: int, few: int) -> int:
    return few if count <= MAX_STEPS else LANES


def softmax(x: Tensor, dim: int, *, log: bool = False) -> Tensor:
    """Return the (log-)softmax over `dim` in the accumulator dtype; one score has a result of 1.

    What is subtracted is a bound of the scores, as kernels that know one do, not their maximum:
    where all scores are equal, exponentials of 0 would add up without an error in any order. The
    logarithm over a single score is 0 in every kernel, and has to be here.

    Without the logarithm the scores are scaled before that, so that one power of two follows, as
    FlashAttention and the tutorials of Triton do: each is rounded at its own size, not at that of
    its distance to the largest.
    """
    scores = x.to(compute_dtype(x.dtype))
    above = ABOVE if reduced_count(x, [dim]) > 1 else 0.0
    if log:
        shifted = scores - (scores.amax(dim=dim, keepdim=True) + above)
        return shifted - total(exp(shifted), [dim], keepdim=True).log()
    scores = scores * LOG2_E
    weights = torch.exp2(scores - (scores.amax(dim=dim, keepdim=True) + above * LOG2_E))
    return weights / total(weights, [dim], keepdim=True)


def exp(x: Tensor) -> Tensor:
    """Return the exponential of x as 2 to the power of x * log2(e), in the accumulator dtype.

    The hardware has the power of two only, and fast exponentials are built like this: rounding the
    product costs a relative error of |x| ulp, which libraries avoid by a longer reduction.
    """
    return torch.exp2(x.to(compute_dtype(x.dtype)) * LOG2_E)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)) in the accumulator dtype."""
    return 1 / (1 + exp(-x))


def reduced_count(x: Tensor, dims: Sequence[int]) -> int:
    """Return how many elements a reduction over `dims` combines."""
    axes = {d % max(x.dim(), 1) for d in dims} or set(range(x.dim()))
    return math.prod(x.shape[d] for d in axes)


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *rest: object) -> Tensor:
    """Return `aten.convolution` with input channels accumulated in turn.

    `rest` is stride, padding, dilation, transposed, output padding, groups. Grouped convolutions
    have short sums and run as they are.
    """
    wide = compute_dtype(x.dtype)
    transposed, groups = rest[3], rest[5]
    plain = torch.ops.aten.convolution.default
    if groups != 1:
        return plain(x, weight, bias, *rest)
    axis = 0 if transposed else 1
    out: Tensor | None = None
    for c in range(0, x.shape[1], _channel_step(x, weight)):
        stop = c + _channel_step(x, weight)
        part = plain(
            x[:, c:stop].to(wide),
            weight.narrow(axis, c, min(stop, x.shape[1]) - c).to(wide),
            None,
            *rest,
        )
        out = part if out is None else out.add_(part)
    assert out is not None
    if bias is not None:
        out = out + bias.to(wide).view(-1, *([1] * (x.dim() - 2)))
    return out.to(x.dtype)


def _channel_step(x: Tensor, weight: Tensor) -> int:
    taps = math.prod(weight.shape[2:])
    return max(1, math.ceil(x.shape[1] / 256), TENSOR_CORE_K // max(taps, 1))
