"""Narrow sums: products and reductions whose accumulators are kept in a 16-bit type.

What a kernel does that forgets to accumulate in float32. The counterpart of `sequential.py`, whose
running accumulators are wide; where sums are short both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.sequential import LOG2_E, reduced_count

DEPTH = 16
"""Terms that a tensor core adds before the accumulator is rounded."""
MAX_STEPS = 128
"""Roundings of one accumulator at most; longer sums get deeper steps."""

aten = torch.ops.aten
COMPOSITE = frozenset(
    {
        "native_layer_norm",
        "native_group_norm",
        "native_batch_norm",
        "cudnn_batch_norm",
        "_native_batch_norm_legit",
        "_batch_norm_with_update",
        "_fused_rms_norm",
        "logsumexp",
        "linalg_vector_norm",
        "norm",
        "mse_loss",
        "smooth_l1_loss",
        "huber_loss",
    }
)
"""Operations that are taken apart into sums and element-wise ones, as torch does it."""


class NarrowSums(TorchDispatchMode):
    """Runs products and sums on floating tensors with accumulators of type `narrow`."""

    def __init__(self, narrow: torch.dtype) -> None:
        super().__init__()
        self._narrow = narrow
        self.longest = 0
        """Roundings of the longest sum so far; 0: there was none."""
        self._rules: dict[Any, Callable[..., Any]] = {
            aten.mm.default: self._product,
            aten.bmm.default: self._product,
            aten.mv.default: lambda a, b: self._product(a, b[:, None])[:, 0],
            aten.addmm.default: self._add_product,
            aten.baddbmm.default: self._add_product,
            aten.sum.default: self._sum,
            aten.sum.dim_IntList: self._sum,
            aten.mean.default: self._mean,
            aten.mean.dim: self._mean,
            aten.var.correction: self._var,
            aten.var_mean.correction: self._var_mean,
            aten.var_mean.dim: self._var_mean_of_dims,
            aten._softmax.default: self._softmax,
            aten._log_softmax.default: self._log_softmax,
            aten.cumsum.default: self._cumsum,
            aten.convolution.default: self._convolution,
        }

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, or its narrow form."""
        kwargs = kwargs or {}
        floating = bool(args) and isinstance(args[0], Tensor) and args[0].dtype.is_floating_point
        if floating and func in self._rules:
            return self._rules[func](*args, **kwargs)
        name = func.overloadpacket.__name__
        if floating and name in COMPOSITE and func in decomposition_table:
            with self:
                return decomposition_table[func](*args, **kwargs)
        return func(*args, **kwargs)

    def _accumulate(self, parts: Iterable[Tensor]) -> Tensor:
        total: Tensor | None = None
        steps = 0
        for part in parts:
            total = part if total is None else total.float() + part
            total = total.to(self._narrow)
            steps += 1
        assert total is not None
        self.longest = max(self.longest, steps)
        return total

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        depth = a.shape[-1]
        step = max(DEPTH, math.ceil(depth / MAX_STEPS))
        parts = (
            a[..., k : k + step].float() @ b[..., k : k + step, :].float()
            for k in range(0, max(depth, 1), step)
        )
        return self._accumulate(parts).to(a.dtype)

    def _add_product(
        self, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        return (c.float() * beta + self._product(a, b).float() * alpha).to(a.dtype)

    def _sum(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        axes = sorted({d % max(x.dim(), 1) for d in dim or ()} or set(range(x.dim())))
        kept = [d for d in range(x.dim()) if d not in axes]
        count = math.prod(x.shape[d] for d in axes)
        rows = x.permute(*kept, *axes).reshape(*(x.shape[d] for d in kept), count)
        step = max(1, math.ceil(count / MAX_STEPS))
        parts = (
            rows[..., k : k + step].sum(-1, dtype=torch.float32)
            for k in range(0, max(count, 1), step)
        )
        out = self._accumulate(parts).to(dtype or x.dtype)
        return (
            out.reshape([1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdim else out
        )

    def _mean(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        return self._sum(x, dim, keepdim, dtype=dtype) / reduced_count(x, dim or [])

    def _var(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> Tensor:
        centred = x - self._mean(x, dim, True)
        freedom = reduced_count(x, dim or []) - (1 if correction is None else correction)
        return self._sum(centred.square(), dim, keepdim) / max(freedom, 0)

    def _var_mean(
        self, x: Tensor, dim: Sequence[int] | None = None, **options: Any
    ) -> tuple[Tensor, Tensor]:
        mean = self._mean(x, dim, options.get("keepdim", False))
        return self._var(x, dim, **options), mean

    def _var_mean_of_dims(
        self, x: Tensor, dim: Sequence[int], unbiased: bool = True, keepdim: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self._var_mean(x, dim, correction=float(unbiased), keepdim=keepdim)

    def _softmax(self, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        shifted = x.float() - x.float().amax(dim=dim, keepdim=True)
        weights = torch.exp2(shifted * LOG2_E)
        out = weights / self._sum(weights, [dim], True)
        return out if half_to_float else out.to(x.dtype)

    def _log_softmax(self, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        shifted = x.float() - x.float().amax(dim=dim, keepdim=True)
        out = shifted - self._sum(torch.exp2(shifted * LOG2_E), [dim], True).log()
        return out if half_to_float else out.to(x.dtype)

    def _cumsum(self, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        step = max(1, math.ceil(x.shape[dim] / MAX_STEPS))
        carry: Tensor | None = None
        parts = []
        for piece in x.split(step, dim):
            run = piece.float().cumsum(dim)
            run = (run if carry is None else run + carry.float()).to(self._narrow)
            carry = run.narrow(dim, run.shape[dim] - 1, 1)
            parts.append(run)
        self.longest = max(self.longest, len(parts))
        return torch.cat(parts, dim).to(dtype or x.dtype)

    def _convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
        plain = aten.convolution.default
        transposed, groups = rest[3], rest[5]
        if groups != 1:
            return plain(x, weight, bias, *rest)
        axis = 0 if transposed else 1
        step = max(1, math.ceil(x.shape[1] / MAX_STEPS))
        parts = (
            plain(
                x[:, c : c + step].float(),
                weight.narrow(axis, c, min(step, x.shape[1] - c)).float(),
                None,
                *rest,
            )
            for c in range(0, x.shape[1], step)
        )
        out = self._accumulate(parts).float()
        if bias is not None:
            out = out + bias.float().view(-1, *([1] * (x.dim() - 2)))
        return out.to(x.dtype)
