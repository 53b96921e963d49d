"""Cut operands: TF32 by tensor cores that get float32 registers and drop their last 13 bits.

`tl.dot` with `input_precision="tf32"` and most wgmma and mma kernels do so, where cuBLAS and cuDNN
round to nearest. Each operand shrinks by up to 2**-10, by a third of that in the mean: products of
N(0, 1) are 2.6 times as far off as rounded ones, sums over 1,024 terms of one sign 80 times. Where
a policy allows TF32, and eager takes it, that is legitimate.

As a member of the envelope it would let products in bfloat16 pass: twice its error is more than
theirs (8 times that of rounding) wherever values have one sign, and behind three layers on any
values, since shrinking adds up from layer to layer. But what cutting does is known, for it depends
on the operands alone. So `d`, the reference with cut operands less the expected values, is taken
off an output that did not pass, and what is left is held to the same limits.

    c' = c - d

with both operands of every product cut; else the first cut and the second rounded; else the other
way round. `d` is taken off whole. No factor is fitted: d is nearly a multiple of the result, as
values shrink by about 7e-4, and a factor would excuse any error of scale up to that. An error that
is as large as d itself still passes, say a scale that is off by just as much. No limit is widened,
and nothing is run unless an output did not pass.

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

How = Callable[[Tensor], Tensor]
Run = Callable[[How], Tensor]
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


BOTH_CUT: tuple[How, How] = (cut_to_tf32, cut_to_tf32)
WAYS = (BOTH_CUT, (cut_to_tf32, round_to_tf32), (round_to_tf32, cut_to_tf32))
"""What becomes of the first and of the second operand of every product, in the order of trial."""


class CutOperands(TorchDispatchMode):
    """Cuts the operands of the float32 products that round them to TF32.

    Args:
        rounds: whether an operation does, given it and what runs it on other operands.
        way: what becomes of its first and of its second operand.
    """

    def __init__(self, rounds: Callable[[Any, Run], bool], way: tuple[How, How] = BOTH_CUT) -> None:
        super().__init__()
        self._rounds = rounds
        self._way = way
        self.cut = 0
        """Operations whose operands were cut."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, on cut operands where eager would round them."""
        kwargs = kwargs or {}
        first = FIRST_OPERAND.get(func)
        if first is None or any(t.dtype != torch.float32 for t in args[first : first + 2]):
            return func(*args, **kwargs)

        def run(*way: How) -> Tensor:
            operands = (how(t) for how, t in zip(way, args[first : first + 2], strict=True))
            result: Tensor = func(*args[:first], *operands, *args[first + 2 :], **kwargs)
            return result

        if not self._rounds(func, lambda how: run(how, how)):
            return func(*args, **kwargs)
        self.cut += 1
        return run(*self._way)


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


class CutRuns:
    """What the reference gives for one draw with operands cut, each way run when it is wanted.

    All outputs of one run are kept where there are several.

    Args:
        reference: of the problem.
        draw: whose inputs the call had. Its values must not change while this is in use.
    """

    def __init__(self, reference: Reference, draw: Draw) -> None:
        self._reference = reference
        self._draw = draw
        self._made: dict[int, Outputs | None] = {}

    def excuses(
        self, i: int, output: Tensor, expected: Tensor, passes: Callable[[Tensor], bool]
    ) -> bool:
        """Whether an output passes without what cutting operands to TF32 did to it.

        Args:
            i: its position.
            output: a candidate's.
            expected: what it is held to, of the same shape.
            passes: the gate, of an output.
        """
        if not output.dtype.is_floating_point or not output.numel():
            return False
        for n in range(len(WAYS)):
            outputs = self._outputs(n)
            if outputs is None:
                return False  # nothing may be cut, or memory is short: nor is it another way
            if passes(less_cut(output, expected, outputs[i])):
                return True
            del outputs  # the next may need the room
        return False

    def _outputs(self, n: int) -> Outputs | None:
        if n in self._made:
            return self._made[n]
        outputs = cut_outputs(self._reference, self._draw, WAYS[n])
        if outputs is None or len(outputs) > 1:  # nobody asks again for the only one
            self._made[n] = outputs
        return outputs


def cut_outputs(
    reference: Reference, draw: Draw, way: tuple[How, How] = BOTH_CUT
) -> Outputs | None:
    """Run the reference with cut operands; None where it has none that may be.

    Args:
        reference: of the problem.
        draw: whose inputs it is run on.
        way: one of `WAYS`.

    Returns:
        The outputs, in the reference's dtypes; None also where memory is too short for them.
    """
    if not may_be_cut(reference):
        return None
    mode = CutOperands(measured if reference.device == "cuda" else taken_as_rounded, way)
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


def less_cut(output: Tensor, expected: Tensor, cut: Tensor) -> Tensor:
    """Return an output without what cutting operands did to it.

    Args:
        output: a candidate's, floating point.
        expected: what it is held to, of the same shape.
        cut: of `cut_outputs`, of the same shape.

    Returns:
        c' of the module's docstring, in float32, or in float64 for such outputs.
    """
    wide = torch.promote_types(output.dtype, torch.float32)
    made = torch.empty(output.shape, dtype=wide, device=output.device)
    flat = (t.reshape(-1).split(PIECE) for t in (made, output, expected, cut))
    for part, c, g, k in zip(*flat, strict=True):
        part.copy_(c.double() - (k.double() - g.double()).nan_to_num_(0, 0, 0))
    return made
