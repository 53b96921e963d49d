"""Envelope: legitimate implementations of one model reference, whose worst error is the yardstick.

Members
    eager         the module as it is
    sequential    products and reductions by running accumulators, exponentials through the
                  hardware's power of two: what a simple kernel does (`sequential.py`)
    reordered     sums cut into runs and combined in another order: split-K, two-stage reductions,
                  online softmax (`reordered.py`)
    from_bias     accumulators that begin at the bias, where it is large beside the products: the
                  profiles `biased` and `small` (`from_bias.py`)
    conv_float32  float32 convolutions, where eager's may use TF32 (a GPU)
    compiled      the compiled model (a GPU)

At least three wherever an operation has more than one order. Where each operation is rounded
correctly (maxima, comparisons, data movement, one addition), all of them give eager's values, and
eager stands for them.

Not here: the comparison with the golden (`compare.py`), attention (`attention_math.py`), and TF32
that is cut instead of rounded, which would widen the envelope too far (`tf32_cut.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker import from_bias, plain_forms, reordered, sequential
from hotloop.worker.centres import Centres
from hotloop.worker.decomposed import DECOMPOSED
from hotloop.worker.draw import Outputs, max_abs_difference
from hotloop.worker.module_runner import quiet

aten = torch.ops.aten
REDUCTIONS = frozenset(
    {
        aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim,
        aten.var.correction, aten.std.correction, aten.var_mean.correction, aten.var_mean.dim,
        aten._softmax.default, aten._log_softmax.default, aten.cumsum.default,
        aten.cumprod.default, aten.prod.dim_int,
    }
)  # fmt: skip
"""Operations along dimensions."""
GELU_TANH = math.sqrt(2 / math.pi)
HALF_SQRT = math.sqrt(0.5)


def _cast(value: Tensor, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return value.to(dtype or like.dtype)


class Rules:
    """ATen operations in terms of one arithmetic, a module such as `sequential`."""

    def __init__(self, arithmetic: Any, centres: Centres) -> None:
        self._math = arithmetic
        self._centres = centres

    def table(self) -> dict[Any, Callable[..., Any]]:
        """Return what runs in place of each operation."""
        return {
            aten.mm.default: self._mm,
            aten.bmm.default: self._mm,
            aten.addmm.default: getattr(self._math, "addmm", self._addmm),
            aten.baddbmm.default: self._addmm,
            aten.mv.default: self._mv,
            aten.dot.default: self._dot,
            aten.sum.default: self._sum,
            aten.sum.dim_IntList: self._sum,
            aten.mean.default: self._mean,
            aten.mean.dim: self._mean,
            aten.var.correction: self._var,
            aten.std.correction: self._std,
            aten.var_mean.correction: self._var_mean,
            aten.var_mean.dim: self._var_mean_of_dims,
            aten._softmax.default: self._softmax,
            aten._log_softmax.default: self._log_softmax,
            aten.cumsum.default: self._cumsum,
            aten.cumprod.default: self._cumprod,
            aten.convolution.default: self._math.convolution,
            aten.prod.dim_int: self._prod,
            aten.exp.default: self._exp,
            aten.sigmoid.default: self._sigmoid,
            aten.silu.default: self._silu,
            aten.tanh.default: plain_forms.tanh,
            aten.elu.default: plain_forms.elu,
            aten.softplus.default: plain_forms.softplus,
            aten.mish.default: plain_forms.mish,
            aten.expm1.default: plain_forms.expm1,
            aten.log1p.default: plain_forms.log1p,
            aten.gelu.default: self._gelu,
            aten.div.Tensor: self._div,
        }

    def _mm(self, a: Tensor, b: Tensor) -> Tensor:
        return _cast(self._math.matmul(a, b), a)

    def _addmm(
        self, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        product = self._math.matmul(a, b)
        return _cast(c.to(product.dtype) * beta + product * alpha, a)

    def _mv(self, a: Tensor, b: Tensor) -> Tensor:
        return _cast(self._math.matmul(a, b[:, None])[:, 0], a)

    def _dot(self, a: Tensor, b: Tensor) -> Tensor:
        return _cast(self._math.total(a * b, []), a)

    def _sum(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        return _cast(self._math.total(x, dim or [], keepdim=keepdim), x, dtype)

    def _mean(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        is_centre = keepdim and self._centres.is_centre(x)
        mean = self._math.centre if is_centre else self._math.mean
        return _cast(mean(x, dim or [], keepdim=keepdim), x, dtype)

    def _var(
        self,
        x: Tensor,
        dim: Sequence[int] | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> Tensor:
        correction = 1 if correction is None else correction
        return _cast(self._math.variance(x, dim or [], correction, keepdim=keepdim), x)

    def _std(self, x: Tensor, dim: Sequence[int] | None = None, **options: Any) -> Tensor:
        return self._var(x, dim, **options).sqrt()

    def _var_mean(
        self, x: Tensor, dim: Sequence[int] | None = None, **options: Any
    ) -> tuple[Tensor, Tensor]:
        centre = self._math.centre(x, dim or [], keepdim=options.get("keepdim", False))
        return self._var(x, dim, **options), _cast(centre, x)

    def _var_mean_of_dims(
        self, x: Tensor, dim: Sequence[int], unbiased: bool = True, keepdim: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self._var_mean(x, dim, correction=float(unbiased), keepdim=keepdim)

    def _softmax(self, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return _cast(self._math.softmax(x, dim), x, torch.float32 if half_to_float else None)

    def _log_softmax(self, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return _cast(
            self._math.softmax(x, dim, log=True), x, torch.float32 if half_to_float else None
        )

    def _cumsum(self, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        return _cast(self._math.scan(x, dim), x, dtype)

    def _cumprod(self, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        return _cast(self._math.scan(x, dim, product=True), x, dtype)

    def _prod(
        self, x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
    ) -> Tensor:
        last = self._math.scan(x, dim, product=True).narrow(dim, x.shape[dim] - 1, 1)
        return _cast(last if keepdim else last.squeeze(dim), x, dtype)

    def _exp(self, x: Tensor) -> Tensor:
        return _cast(self._math.exp(x), x)

    def _sigmoid(self, x: Tensor) -> Tensor:
        return _cast(self._math.sigmoid(x), x)

    def _silu(self, x: Tensor) -> Tensor:
        return _cast(x.to(sequential.compute_dtype(x.dtype)) * self._math.sigmoid(x), x)

    def _gelu(self, x: Tensor, *, approximate: str = "none") -> Tensor:
        wide = x.to(sequential.compute_dtype(x.dtype))
        if approximate == "tanh":
            inner = GELU_TANH * (wide + 0.044715 * wide * wide * wide)
            return _cast(wide * self._math.sigmoid(2 * inner), x)
        return _cast(wide * (0.5 * torch.erfc(-wide * HALF_SQRT)), x)

    def _div(self, x: Tensor, y: Tensor | float) -> Tensor:
        dtype = torch.result_type(x, y)
        wide = sequential.compute_dtype(dtype)
        divisor = y if isinstance(y, Tensor) else torch.tensor(y, dtype=torch.float64)
        if dtype.is_complex or divisor.is_complex():
            return x / y
        return (x.to(wide) * (1 / divisor.to(wide))).to(dtype)


class OtherOrder(TorchDispatchMode):
    """Runs products, reductions and a few functions on floating tensors in another arithmetic.

    Args:
        arithmetic: the module that has it, such as `sequential`.
    """

    def __init__(self, arithmetic: Any) -> None:
        super().__init__()
        self._centres = Centres()
        self._rules = Rules(arithmetic, self._centres).table()
        self.replaced = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, or what another kernel does in its place."""
        kwargs = kwargs or {}
        floating = bool(args) and isinstance(args[0], Tensor) and args[0].dtype.is_floating_point
        if floating and func in REDUCTIONS and args[0].dim() == 0:  # one term has one order
            return func(*args, **kwargs)
        if floating and func in self._rules:
            self.replaced += 1
            return self._rules[func](*args, **kwargs)
        if floating and func in DECOMPOSED:
            self.replaced += 1
            with self:
                return DECOMPOSED[func](*args, **kwargs)
        result = func(*args, **kwargs)
        self._centres.follow(func, args, result)
        return result


@contextmanager
def recurrent_parts(names: Collection[str]) -> Iterator[None]:
    """Let fused recurrent layers run as products and cells, which have another order.

    Args:
        names: ATen operations that the reference runs.
    """
    with quiet(), ExitStack() as stack:
        if "_cudnn_rnn" in names:
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        if "mkldnn_rnn_layer" in names:
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        yield


class BlockedSequential(OtherOrder):
    """Runs products and reductions on floating tensors with running accumulators."""

    def __init__(self) -> None:
        super().__init__(sequential)


def orders(profile: str, *, has_biases: bool) -> dict[str, Any]:
    """Return the arithmetic of the members beside eager that need no compiler, by name.

    Args:
        profile: the value profile.
        has_biases: products have biases, and sums that begin there can be run.
    """
    usual = {"sequential": sequential, "reordered": reordered}
    begins = has_biases and profile in ("biased", "small")
    return {**usual, "from_bias": from_bias} if begins else usual


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
