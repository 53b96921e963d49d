"""Reordered arithmetic: the same sums split and combined in another order.

What split-K products, two-stage reductions, online softmax and merged variances do: the terms are
cut into `PARTS` runs, each is summed by the vendor's library, and the partial sums are combined
from the last to the first in the accumulator dtype. Element-wise functions take another of their
usual forms. No form here is less accurate by construction than a library's.

The interface is that of `sequential.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from hotloop.worker.sequential import compute_dtype, reduced_count

PARTS = 4
"""Runs that a sum is cut into: a usual split-K factor."""


def _runs(length: int) -> Iterator[slice]:
    """Yield `PARTS` runs of 0 to `length`, the last one first."""
    step = max(1, math.ceil(length / PARTS))
    for start in reversed(range(0, length, step)):
        yield slice(start, min(length, start + step))


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b for `(..., M, K)` and `(..., K, N)`, K cut into runs."""
    wide = compute_dtype(a.dtype)
    out = torch.zeros((*a.shape[:-1], b.shape[-1]), dtype=wide, device=a.device)
    for run in _runs(a.shape[-1]):
        out += a[..., run].to(wide) @ b[..., run, :].to(wide)
    return out


def total(x: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Sum over `dims` (empty: all), the longest of them cut into runs."""
    wide = compute_dtype(x.dtype)
    if x.dim() == 0:
        return x.to(wide)
    axes = sorted({d % x.dim() for d in dims} or set(range(x.dim())))
    longest = max(axes, key=lambda d: x.shape[d])
    parts = [
        x.narrow(longest, run.start, run.stop - run.start).sum(axes, keepdim=keepdim, dtype=wide)
        for run in _runs(x.shape[longest])
    ]
    if not parts:
        return x.sum(axes, keepdim=keepdim, dtype=wide)
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


def mean(x: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Return the mean over `dims`: the sum times the reciprocal of the count."""
    return total(x, dims, keepdim=keepdim) * (1.0 / max(reduced_count(x, dims), 1))


def centre(x: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Return the mean that a variance over `dims` is about: as any mean."""
    return mean(x, dims, keepdim=keepdim)


def variance(x: Tensor, dims: Sequence[int], correction: float, *, keepdim: bool = False) -> Tensor:
    """Return the variance about a first element, corrected by its mean: the shifted one-pass form.

    The shift is that element itself: a few deviations off, however large the mean is, but for
    corners of padded or transposed convolutions, which hold sums of fewer terms.
    """
    axes = [d % max(x.dim(), 1) for d in dims] or list(range(x.dim()))
    wide = x.to(compute_dtype(x.dtype))
    shift = wide
    for d in axes:
        shift = shift.narrow(d, 0, min(1, x.shape[d]))
    moved = wide - shift
    count = reduced_count(x, dims)
    offset = mean(moved, axes, keepdim=keepdim)
    squares = total(moved.square_(), axes, keepdim=keepdim)
    return (squares - count * offset.square()) / max(count - correction, 0)


def scan(x: Tensor, dim: int, *, product: bool = False) -> Tensor:
    """Return the running sum (or product) along `dim` in blocks, each with the carry before it."""
    wide = compute_dtype(x.dtype)
    step = max(1, math.ceil(x.shape[dim] / (PARTS * PARTS)))
    blocks: list[Tensor] = []
    carry: Tensor | None = None
    for part in x.split(step, dim):
        inner = part.to(wide).cumprod(dim) if product else part.to(wide).cumsum(dim)
        if carry is not None:
            inner = inner * carry if product else inner + carry
        carry = inner.narrow(dim, inner.shape[dim] - 1, 1)
        blocks.append(inner)
    return torch.cat(blocks, dim)


def softmax(x: Tensor, dim: int, *, log: bool = False) -> Tensor:
    """Return the (log-)softmax over `dim` with an online normaliser (arXiv 1805.02867)."""
    wide = compute_dtype(x.dtype)
    top: Tensor | None = None
    norm: Tensor | None = None
    for run in _runs(x.shape[dim]):
        part = x.narrow(dim, run.start, run.stop - run.start).to(wide)
        higher = part.amax(dim=dim, keepdim=True)
        if top is not None:
            higher = torch.maximum(top, higher)
        base = torch.where(higher == -math.inf, 0, higher)  # where all so far are masked
        if top is not None and norm is not None:
            norm = norm * (top - base).exp()
        added = (part - base).exp().sum(dim=dim, keepdim=True)
        norm = added if norm is None else norm + added
        top = higher
    if top is None or norm is None:
        return x.to(wide)
    shifted = x.to(wide) - top
    return shifted - norm.log() if log else shifted.exp() * (1.0 / norm)


def exp(x: Tensor) -> Tensor:
    """Return the library's exponential in the accumulator dtype."""
    return x.to(compute_dtype(x.dtype)).exp()


def sigmoid(x: Tensor) -> Tensor:
    """Return the logistic function by the exponential of -|x|, which cannot overflow."""
    wide = x.to(compute_dtype(x.dtype))
    small = wide.abs().neg().exp()
    return torch.where(wide >= 0, 1 / (1 + small), small / (1 + small))


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *rest: object) -> Tensor:
    """Return `aten.convolution`, input channels cut into runs.

    `rest` is stride, padding, dilation, transposed, output padding, groups; grouped ones have short
    sums and run as they are. Operands keep their
    dtype where it is float32, so that they may go through the units that eager's may.
    """
    wide = compute_dtype(x.dtype)
    plain: Callable[..., Tensor] = torch.ops.aten.convolution.default
    if rest[5] != 1:
        return plain(x, weight, bias, *rest)
    axis = 0 if rest[3] else 1
    out: Tensor | None = None
    for run in _runs(x.shape[1]):
        size = run.stop - run.start
        part = plain(x[:, run].to(wide), weight.narrow(axis, run.start, size).to(wide), None, *rest)
        out = part if out is None else out.add_(part)
    assert out is not None
    if bias is not None:
        out = out + bias.to(wide).view(-1, *([1] * (x.dim() - 2)))
    return out.to(x.dtype)
