"""Envelope: legitimate implementations of one model reference, whose worst error is the yardstick.

Members are eager, eager with every product and reduction done by running accumulators and every
exponential through the hardware's power of two (what a simple kernel does), float32 convolutions
where eager's use TF32, and the compiled model on a GPU.

Not here: the comparison with the golden (`compare.py`), and attention (`attention_math.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker import sequential
from hotloop.worker.draw import Outputs, max_abs_difference

aten = torch.ops.aten


def _cast(value: Tensor, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return value.to(dtype or like.dtype)


def _mm(a: Tensor, b: Tensor) -> Tensor:
    return _cast(sequential.matmul(a, b), a)


def _addmm(c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = sequential.matmul(a, b)
    return _cast(c.to(product.dtype) * beta + product * alpha, a)


def _mv(a: Tensor, b: Tensor) -> Tensor:
    return _cast(sequential.matmul(a, b[:, None])[:, 0], a)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return _cast(sequential.total(a * b, []), a)


def _sum(
    x: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return _cast(sequential.total(x, dim or [], keepdim=keepdim), x, dtype)


def _mean(
    x: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return _cast(sequential.mean(x, dim or [], keepdim=keepdim), x, dtype)


def _var(
    x: Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    correction = 1 if correction is None else correction
    return _cast(sequential.variance(x, dim or [], correction, keepdim=keepdim), x)


def _std(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Tensor:
    return _var(x, dim, **options).sqrt()


def _var_mean(x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    return _var(x, dim, **options), _mean(x, dim, options.get("keepdim", False))


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return _cast(sequential.softmax(x, dim), x, torch.float32 if half_to_float else None)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return _cast(sequential.softmax(x, dim, log=True), x, torch.float32 if half_to_float else None)


def _cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return _cast(sequential.scan(x, dim), x, dtype)


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return _cast(sequential.scan(x, dim, product=True), x, dtype)


def _exp(x: Tensor) -> Tensor:
    return _cast(sequential.exp(x), x)


def _sigmoid(x: Tensor) -> Tensor:
    return _cast(sequential.sigmoid(x), x)


def _silu(x: Tensor) -> Tensor:
    return _cast(x.to(sequential.compute_dtype(x.dtype)) * sequential.sigmoid(x), x)


RULES: dict[Any, Callable[..., Any]] = {
    aten.mm.default: _mm,
    aten.bmm.default: _mm,
    aten.addmm.default: _addmm,
    aten.baddbmm.default: _addmm,
    aten.mv.default: _mv,
    aten.dot.default: _dot,
    aten.sum.default: _sum,
    aten.sum.dim_IntList: _sum,
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.var.correction: _var,
    aten.std.correction: _std,
    aten.var_mean.correction: _var_mean,
    aten._softmax.default: _softmax,
    aten._log_softmax.default: _log_softmax,
    aten.cumsum.default: _cumsum,
    aten.cumprod.default: _cumprod,
    aten.convolution.default: sequential.convolution,
    aten.exp.default: _exp,
    aten.sigmoid.default: _sigmoid,
    aten.silu.default: _silu,
}

_DECOMPOSED_NAMES = (
    "native_layer_norm.default",
    "native_group_norm.default",
    "native_batch_norm.default",
    "cudnn_batch_norm.default",
    "_native_batch_norm_legit.default",
    "_native_batch_norm_legit.no_stats",
    "_batch_norm_with_update.default",
    "_fused_rms_norm.default",
    "logsumexp.default",
    "linalg_vector_norm.default",
    "norm.ScalarOpt_dim",
    "norm.Scalar",
    "mse_loss.default",
    "smooth_l1_loss.default",
    "huber_loss.default",
)


def _decompositions() -> dict[Any, Callable[..., Any]]:
    table = {}
    for name in _DECOMPOSED_NAMES:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(aten, packet, None), overload, None)  # older torch lacks a few
        if op is not None and op in decomposition_table:
            table[op] = decomposition_table[op]
    return table


DECOMPOSED = _decompositions()


class BlockedSequential(TorchDispatchMode):
    """Runs products and reductions on floating tensors with running accumulators."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, or what a simple kernel does in its place."""
        kwargs = kwargs or {}
        floating = bool(args) and isinstance(args[0], Tensor) and args[0].dtype.is_floating_point
        if floating and func in RULES:
            self.replaced += 1
            return RULES[func](*args, **kwargs)
        if floating and func in DECOMPOSED:
            self.replaced += 1
            with self:
                return DECOMPOSED[func](*args, **kwargs)
        return func(*args, **kwargs)


def outlier_reason(member: Outputs, eager: Outputs, others: Sequence[Outputs]) -> str | None:
    """Return why a member that was compiled may not widen the envelope, or None.

    A miscompiled member would loosen the gate without anybody noticing. It may deviate from eager
    by 16 times what the other members do, plus 16 units in the last place of the largest value.
    """
    for i, reference in enumerate(eager):
        if not reference.dtype.is_floating_point or reference.numel() == 0:
            continue
        usual = max((max_abs_difference(o[i], reference) for o in others), default=0.0)
        ulps = torch.finfo(reference.dtype).eps * float(reference.abs().max())
        limit = 16 * (usual + ulps)
        deviation = max_abs_difference(member[i], reference)
        if not deviation <= limit:
            return f"output {i} is {deviation:.3g} off eager, expected at most {limit:.3g}"
    return None
