"""Cut operands: TF32 by tensor cores that get float32 registers and drop their last 13 bits.

`tl.dot` with `input_precision="tf32"` and most wgmma and mma kernels do so, where cuBLAS and cuDNN
round to nearest. Each operand shrinks by up to 2**-10, by a third of that in the mean: products of
N(0, 1) are 2.6 times as far off as rounded ones, sums over 1,024 terms of one sign 80 times. Where
a policy allows TF32, and eager takes it, that is legitimate.

As a member of the envelope it would let products in bfloat16 pass: twice its error is more than
theirs (8 times that of rounding) wherever values have one sign, and behind three layers on any
values, since shrinking adds up from layer to layer. But what cutting does is known, for it depends
on the operands alone. So `d`, the reference with cut operands less the expected values, is taken
off an output that did not pass.

    c' = c - t d,    t = <c - g, d> / <d, d> between 0 and 1

and c' is held to the same limits. One number for a whole output can excuse nothing that does not
follow d element by element; t is about 1/2 where one operand is cut and the other rounded. No limit
is widened, and nothing is run unless an output did not pass.

Not here: the limits (`compare.py`), where TF32 is allowed (`precision.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.errors import InfraError
from hotloop.worker import attention_math
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.draw import Draw, Outputs, Reference
from hotloop.worker.envelope import recurrent_parts
from hotloop.worker.memory import ran_out, release_memory
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.pieces import PIECE
from hotloop.worker.precision import STRICT, applied
from hotloop.worker.sequential import round_to_tf32

Run = Callable[[Callable[[Tensor], Tensor]], Tensor]
aten = torch.ops.aten
FIRST_OPERAND = {
    aten.mm.default: 0,
    aten.bmm.default: 0,
    aten.mv.default: 0,
    aten.addmm.default: 1,
    aten.baddbmm.default: 1,
    aten.addmv.default: 1,
    aten.convolution.default: 0,
}
"""Where the first of two operands stands; what comes before it goes into the accumulator."""
SAME_FRAC = 0.25
"""Share of the error of rounding up to which an operation's results on rounded operands are those
on operands as they are: ties make a few per cent where it rounds by itself, all where not."""


def cut_to_tf32(x: Tensor) -> Tensor:
    """Set the 13 bits of float32 values that TF32 has no room for to 0; NaN and Inf stay."""
    cut = (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(x), cut, x)


class CutOperands(TorchDispatchMode):
    """Cuts the operands of the float32 products that round them to TF32.

    Args:
        rounds: whether an operation does, given it and what runs it on other operands.
    """

    def __init__(self, rounds: Callable[[Any, Run], bool]) -> None:
        super().__init__()
        self._rounds = rounds
        self.cut = 0
        """Operations whose operands were cut."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, on cut operands where eager would round them."""
        kwargs = kwargs or {}
        first = FIRST_OPERAND.get(func)
        if first is None or any(t.dtype != torch.float32 for t in args[first : first + 2]):
            return func(*args, **kwargs)

        def run(how: Callable[[Tensor], Tensor]) -> Tensor:
            operands = (how(t) for t in args[first : first + 2])
            result: Tensor = func(*args[:first], *operands, *args[first + 2 :], **kwargs)
            return result

        if not self._rounds(func, run):
            return func(*args, **kwargs)
        self.cut += 1
        return run(cut_to_tf32)


def measured(_: Any, run: Run) -> bool:
    """Whether an operation rounds its operands to TF32: then rounding them first changes nothing.

    Libraries choose by the sizes, so what is allowed is not what is done.

    Args:
        _: the operation.
        run: runs it on what its argument makes of its two operands.
    """
    with applied(STRICT):
        exact = run(_as_is)
    rounded = run(round_to_tf32)
    norm = torch.linalg.vector_norm
    change = float(norm(run(_as_is) - rounded))
    return change < SAME_FRAC * float(norm(rounded - exact))  # so that NaN is none


def taken_as_rounded(func: Any, _: Run) -> bool:
    """Whether the envelope of a CPU, whose own products round nothing, has such a member."""
    return func is not aten.convolution.default and torch.backends.cuda.matmul.allow_tf32


def _as_is(x: Tensor) -> Tensor:
    return x


def may_be_cut(reference: Reference) -> bool:
    """Whether the problem's policy allows TF32 in any product that this device would round."""
    policy = reference.precision
    if policy.matmul_tf32:
        return True
    convolves = isinstance(reference, ModelReference) and reference.census.convolves
    return convolves and reference.device == "cuda" and policy.conv_tf32


def passes_cut(
    reference: Reference,
    draw: Draw,
    i: int,
    pair: tuple[Tensor, Tensor],
    passes: Callable[[Tensor], bool],
) -> bool:
    """Whether an output passes without what cutting operands to TF32 did to it.

    Args:
        reference: of the problem.
        draw: whose inputs the call had.
        i: position of the output.
        pair: the output, and what it is held to.
        passes: the gate, of an output.
    """
    outputs = cut_outputs(reference, draw)
    if outputs is None:
        return False
    less = less_cut(*pair, outputs[i])
    return less is not None and passes(less)


def cut_outputs(reference: Reference, draw: Draw) -> Outputs | None:
    """Run the reference with cut operands; None where it has none that may be.

    Returns:
        The outputs, in the reference's dtypes; None also where memory is too short for them.
    """
    if not may_be_cut(reference):
        return None
    mode = CutOperands(measured if reference.device == "cuda" else taken_as_rounded)
    try:
        outputs = _run(reference, draw, mode)
    except InfraError:
        raise
    except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
        if not ran_out(exc):
            raise
        release_memory()
        reference.note("no operands cut to TF32: the reference with them does not fit in memory")
        return None
    return outputs if mode.cut else None


def _run(reference: Reference, draw: Draw, mode: CutOperands) -> Outputs:
    if isinstance(reference, AttentionReference):
        q, k, v = reference.in_order(draw)
        with applied(reference.precision), reference.bound(draw.state), mode:
            return (attention_math.unfused(q, k, v, reference.mods),)
    with ExitStack() as stack:
        if isinstance(reference, ModelReference):
            stack.enter_context(recurrent_parts(reference.census.names))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(mode)
        return reference.eager(draw)


def less_cut(output: Tensor, expected: Tensor, cut: Tensor) -> Tensor | None:
    """Return an output without what cutting operands did to it; None where it did nothing.

    Args:
        output: a candidate's, floating point.
        expected: what it is held to, of the same shape.
        cut: of `cut_outputs`, of the same shape.

    Returns:
        c' of the module's docstring, in float32, or in float64 for such outputs.
    """
    if not output.dtype.is_floating_point or not output.numel():
        return None
    flat = [t.reshape(-1) for t in (output, expected, cut)]
    along, size = 0.0, 0.0
    for c, g, k in zip(*(t.split(PIECE) for t in flat), strict=True):
        shift = _shift(k, g)
        along += float(((c.double() - g.double()).nan_to_num_(0, 0, 0) * shift).sum())
        size += float(shift.square().sum())
    share = min(along / size, 1.0) if size else 0.0
    if not share > 0:
        return None
    wide = torch.promote_types(output.dtype, torch.float32)
    made = torch.empty(output.shape, dtype=wide, device=output.device)
    pieces = (t.split(PIECE) for t in (made.reshape(-1), *flat))
    for part, c, g, k in zip(*pieces, strict=True):
        part.copy_(c.double() - share * _shift(k, g))
    return made


def _shift(cut: Tensor, expected: Tensor) -> Tensor:
    return (cut.double() - expected.double()).nan_to_num_(0, 0, 0)
