"""Discrimination: would the gate refuse the next lower precision?

The reference is run once more with operands rounded to the mantissa of the next lower format: what
a candidate computes that silently takes the cheaper unit. At least one configured input must refuse
it, else the gate is too loose on this problem (the criterion is Tensara's: a submission in the next
lower precision must not pass).

    allowed          next lower     mantissa bits kept
    float64          float32        23
    float32          TF32           10    products, and every operation where there is none
    TF32, float16    bfloat16        7
    bfloat16         FP8 (e4m3)      3

Only mantissas are rounded: exponents keep their range, as scaled FP8 does, so this is the kindest
form of that precision. Where a policy allows TF32, one step lower is bfloat16. Data of 16 bits in
wider operations is 16-bit data, and so is wide data that the reference itself casts to 16 bits: the
widest dtype among inputs and parameters counts, or the operation's own where that is narrower.

Not here: what is done about a gate that is too loose (the problem's audit).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from hotloop.core.problem import ProblemKind
from hotloop.worker import attention_math
from hotloop.worker.module_runner import tensors_of
from hotloop.worker.precision import applied
from hotloop.worker.reference import Draw, Outputs, Reference

LOWER = {
    torch.float64: ("float32", 23),
    torch.float32: ("tf32", 10),
    torch.float16: ("bf16", 7),
    torch.bfloat16: ("fp8", 3),
}
"""Name and mantissa bits of the precision below each dtype."""
BELOW_TF32 = 7
NAMES = {bits: name for name, bits in LOWER.values()}
CONVOLUTIONS = frozenset({"convolution", "_convolution", "cudnn_convolution"})
PRODUCTS = CONVOLUTIONS | frozenset(
    {
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "mv",
        "dot",
        "linear",
        "_cudnn_rnn",
        "mkldnn_rnn_layer",
        "_thnn_fused_lstm_cell",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
    }
)


def lowered(reference: Reference, draw: Draw) -> tuple[str, Outputs] | None:
    """Run the reference in the next lower precision; None where its data is not floating point.

    Operands of products are rounded. Where there is no product, the operands of every operation
    that computes something are.

    Returns:
        The precision's name and the outputs, in the reference's dtypes.
    """
    widest = _widest(draw)
    if widest is None:
        return None
    name, bits = LOWER[widest]
    wide = widest is torch.float32
    conv = BELOW_TF32 if wide and reference.precision.conv_tf32 and _is_cuda(draw) else bits
    product = BELOW_TF32 if wide and reference.precision.matmul_tf32 else bits
    mode = Lowered(product, conv, other_bits=None)
    outputs = _run(reference, draw, mode)
    if mode.fewest is None:
        mode = Lowered(bits, bits, other_bits=bits)
        outputs = _run(reference, draw, mode)
    return NAMES.get(mode.fewest or bits, name), outputs


def _run(reference: Reference, draw: Draw, mode: TorchDispatchMode) -> Outputs:
    if reference.loaded.problem.kind is not ProblemKind.ATTENTION:
        with mode:
            return reference.eager(draw)
    attention: Any = reference
    q, k, v = attention.in_order(draw)
    with applied(reference.precision), attention.bound(draw.state), mode:
        return (attention_math.unfused(q, k, v, attention.mods),)


def _is_cuda(draw: Draw) -> bool:
    return any(t.is_cuda for t in tensors_of(draw.inputs))


def _widest(draw: Draw) -> torch.dtype | None:
    dtypes = {t.dtype for t in (*tensors_of(draw.inputs), *draw.state.values())}
    known = [d for d in LOWER if d in dtypes]  # in order of width
    return known[0] if known else None


class Lowered(TorchDispatchMode):
    """Rounds the operands of operations to fewer bits of mantissa.

    Args:
        product_bits: kept in operands of matrix products.
        conv_bits: kept in operands of convolutions.
        other_bits: kept in operands of all other operations that compute; None leaves them.
    """

    def __init__(self, product_bits: int, conv_bits: int, *, other_bits: int | None) -> None:
        super().__init__()
        self._product_bits = product_bits
        self._conv_bits = conv_bits
        self._other_bits = other_bits
        self.fewest: int | None = None
        """Fewest bits that operands were rounded to; None before any was."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` on rounded operands."""
        kwargs = kwargs or {}
        bits = self._bits(func, args)
        if bits is None:
            return func(*args, **kwargs)
        self.fewest = bits if self.fewest is None else min(bits, self.fewest)
        kept: Iterable[Any] = ()
        if func._schema.is_mutable:  # the tensor written to must stay the caller's own
            kept, args = args[:1], args[1:]
        rounded = tree_map(lambda x: rounded_to(x, bits) if isinstance(x, Tensor) else x, args)
        return func(*kept, *rounded, **kwargs)

    def _bits(self, func: Any, args: Any) -> int | None:
        name = func.overloadpacket.__name__
        bits = self._other_bits
        if name in CONVOLUTIONS:
            bits = self._conv_bits
        elif name in PRODUCTS:
            bits = self._product_bits
        elif getattr(func, "is_view", False):
            return None
        own = [t.dtype for t in tensors_of(args) if t.dtype in LOWER]
        if bits is None or not own:
            return None
        return min(bits, max(LOWER[dtype][1] for dtype in own))


def rounded_to(x: Tensor, bits: int) -> Tensor:
    """Round floating values to `bits` of mantissa, ties to even; other tensors as they are."""
    if not x.dtype.is_floating_point:
        return x
    if x.dtype is torch.float64:
        return x.to(torch.float32).to(torch.float64) if bits == 23 else _rounded(x.float(), bits, x)
    return _rounded(x.float(), bits, x)


def _rounded(wide: Tensor, bits: int, like: Tensor) -> Tensor:
    drop = 23 - bits
    raw = wide.contiguous().view(torch.int32)
    nearest = raw + ((1 << (drop - 1)) - 1) + ((raw >> drop) & 1)
    cut = (nearest & ~((1 << drop) - 1)).view(torch.float32)
    return torch.where(torch.isfinite(wide), cut, wide).to(like.dtype)
