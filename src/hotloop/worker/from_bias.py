"""Sums from the bias: products and convolutions whose accumulators begin at the bias.

What many kernels do to save an addition. Each partial sum is then rounded at the size of the bias:
where that is hundreds of times the sum, results are tens of times as far off as with the bias added
last, and as right. The profiles `biased`, and `small` whose products are a thousandth of a bias,
have this member in their envelopes, which are otherwise those of `sequential.py`; one multiply-add
follows another, tap by tap.

The variance behind them is formed by one warp however long it is: sums of nearly equal values grow
fast, and a one-warp norm is slow but right.

The interface is that of `sequential.py`, and `addmm`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from hotloop.worker import sequential
from hotloop.worker.sequential import (
    WARP,
    compute_dtype,
    exp,
    matmul,
    mean,
    scan,
    sigmoid,
    softmax,
    total,
)

__all__ = [
    "addmm", "centre", "convolution", "exp", "matmul", "mean", "scan", "sigmoid", "softmax",
    "total", "variance",
]  # fmt: skip

VOLUME = {"cuda": 1 << 38, "cpu": 1 << 28}
"""Multiply-adds up to which this can be done: half a second of memory traffic on a GPU."""


def addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta c + alpha a @ b for `(M, K)` and `(K, N)`, the accumulator beginning at c."""
    if beta != 1 or alpha != 1:
        product = matmul(a, b)
        return (c.to(product.dtype) * beta + product * alpha).to(a.dtype)
    wide = compute_dtype(a.dtype)
    out = c.to(wide).expand(a.shape[0], b.shape[1]).clone()
    for k in range(a.shape[1]):
        out.addcmul_(a[:, k : k + 1].to(wide), b[k : k + 1].to(wide))
    return out.to(a.dtype)


def centre(x: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Return the mean that a variance over `dims` is about, by one warp."""
    return sequential.centre(x, dims, keepdim=keepdim, lanes=WARP)


def variance(x: Tensor, dims: Sequence[int], correction: float, *, keepdim: bool = False) -> Tensor:
    """Return the two-pass variance over `dims`, by one warp."""
    return sequential.variance(x, dims, correction, keepdim=keepdim, lanes=WARP)


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    """Return `aten.convolution`, taps and input channels accumulated in turn on top of the bias.

    `rest` is stride, padding, dilation, transposed, output padding, groups.
    """
    if bias is None:
        return sequential.convolution(x, weight, bias, *rest)
    transposed = rest[3]
    return (_transposed if transposed else _plain)(x, weight, bias, *rest).to(x.dtype)


def _plain(x: Tensor, weight: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    stride, padding, dilation, _, _, groups = rest
    wide, spatial = compute_dtype(x.dtype), x.dim() - 2
    stride, padding, dilation = (_each(v, spatial) for v in (stride, padding, dilation))
    x = pad(x.to(wide), [p for size in reversed(padding) for p in (size, size)])
    kernel = weight.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    x = x.unflatten(1, (groups, -1))
    weight = weight.to(wide).unflatten(0, (groups, -1))  # G, Co / G, Ci / G, taps
    out = _begun(x, bias, groups, sizes)
    for c, tap in _terms(weight.shape[2], kernel):
        part = x[:, :, c : c + 1]
        for d, (at, n) in enumerate(zip(tap, sizes, strict=True)):
            first = at * dilation[d]
            end = first + stride[d] * (n - 1) + 1
            part = part[(slice(None),) * (3 + d) + (slice(first, end, stride[d]),)]
        out.addcmul_(part, _factors(weight[(slice(None), slice(None), c, *tap)], spatial))
    return out.flatten(1, 2)


def _transposed(x: Tensor, weight: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    stride, padding, dilation, _, more, groups = rest
    wide, spatial = compute_dtype(x.dtype), x.dim() - 2
    stride, padding, dilation, more = (_each(v, spatial) for v in (stride, padding, dilation, more))
    kernel = weight.shape[2:]
    sizes = [
        s * (n - 1) + d * (k - 1) + 1 + m
        for n, k, s, d, m in zip(x.shape[2:], kernel, stride, dilation, more, strict=True)
    ]
    x = x.to(wide).unflatten(1, (groups, -1))
    weight = weight.to(wide).unflatten(0, (groups, -1))  # G, Ci / G, Co / G, taps
    out = _begun(x, bias, groups, sizes)
    for c, tap in _terms(weight.shape[1], kernel):
        part = out
        for d, (at, n) in enumerate(zip(tap, x.shape[3:], strict=True)):
            first = at * dilation[d]
            end = first + stride[d] * (n - 1) + 1
            part = part[(slice(None),) * (3 + d) + (slice(first, end, stride[d]),)]
        factors = _factors(weight[(slice(None), c, slice(None), *tap)], spatial)
        part.addcmul_(x[:, :, c : c + 1], factors)
    out = out.flatten(1, 2)
    for d, p in enumerate(padding):
        out = out.narrow(2 + d, p, sizes[d] - 2 * p)
    return out.contiguous()


def _begun(x: Tensor, bias: Tensor, groups: int, sizes: Sequence[int]) -> Tensor:
    """Return accumulators of shape (batch, groups, channels of a group, *sizes) at the bias."""
    start = bias.to(x.dtype).view(1, groups, -1, *([1] * len(sizes)))
    return start.expand(x.shape[0], groups, bias.numel() // groups, *sizes).clone()


def _factors(taps: Tensor, spatial: int) -> Tensor:
    return taps.reshape(1, *taps.shape, *([1] * spatial))


def _terms(channels: int, kernel: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for c in range(channels):
        for tap in itertools.product(*(range(k) for k in kernel)):
            yield c, tap


def _each(value: Sequence[int], spatial: int) -> list[int]:
    return list(value) * spatial if len(value) == 1 else list(value)


def unknown(eager: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return outputs that void a case: without this member it would refuse honest kernels."""
    return tuple(
        t.new_full((), math.nan).expand_as(t) if t.is_floating_point() else t for t in eager
    )


def fits(flops: float | None, device: str) -> bool:
    """Whether a reference of so many operations, two a multiply-add, can be run like this."""
    return flops is not None and flops <= 2 * VOLUME[device]
