"""Index probes: a failed candidate is called again, on inputs whose values say where they lie.

Every value is set to 1; then one input at a time holds digits of its own indices, a few calls each
(`index_digits.py`). The reference is probed in the same way, and the two are compared where the
candidate was wrong.

Nothing is said where the reference's own output does not show the index (a softmax of equal values
is the same wherever they come from), where the candidate is wrong on all-equal values too (then it
is not an index), or when the time is over.

In attention `v` is probed like any input, and then, with rows of q and k that match in pairs, which
row of k each row of q meets. Of sums of products, at last, which indices meet (`index_pairs.py`).

Not here: which law wrong indices follow (`index_laws.py`), when to probe (`follow_up.py`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.core.verdict import Stage
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.index_digits import (
    CLEAR,
    RADIX_BENT,
    RADIX_SHORT,
    RADIX_WIDE,
    ROUNDINGS_SHORT,
    ROUNDINGS_WIDE,
    Dims,
    Scale,
    digits_of,
    encode,
    single_dims,
    size_along,
    split,
)
from hotloop.worker.index_laws import FOLLOWED_FRAC, Law, Sources, find_law
from hotloop.worker.index_pairs import find_pairing
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.probe_draws import (
    Probed,
    neutral_draw,
    paired_draw,
    probed_tensors,
    tensor_of,
)
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.wrong_region import unravelled

PROBE_S = {"cuda": 1.0, "cpu": 5.0}
"""For all probes of one candidate together, by device: interpreted kernels are slow. A call that
lasts longer is given up."""
MAX_ELEMENTS = 1 << 26
"""Larger problems are not probed: a copy of their inputs is needed."""
SAMPLED = 1 << 12
NOWHERE = -1e9
"""Index of an element that reads nothing that is known."""


class OutOfTime(Exception):
    """The time for probes is over."""


def probe_indices(evaluation: Evaluation, wrong: Wrong, positions: Tensor) -> Law | None:
    """Return the law of the indices that a wrong output was made from, or None.

    The law has `tensor` and `shape`, the input's name and sizes, and for attention's rows of k
    `meets`: True; for the rest see `index_laws.find_law` and `index_pairs.find_pairing`.

    Args:
        evaluation: the candidate, whose sets are those of its board.
        wrong: the output that failed; its values are not read.
        positions: flat positions of wrong elements.

    Raises:
        Failed: the candidate failed otherwise, or took too long.
        RuntimeError: memory ran out.
    """
    reference, draw = wrong.reference, wrong.draw
    if reference is None or draw is None or not positions.numel() or not _applies(reference, draw):
        return None
    probe = _Probe(evaluation, reference, wrong, positions)
    try:
        return probe.run()
    except OutOfTime:
        return None


def _applies(reference: Reference, draw: Draw) -> bool:
    if isinstance(reference, ModelReference) and reference.census.asserts:
        return False  # a function of it accepts only a range of values
    tensors = [*draw.inputs, *draw.state.values()]
    return sum(t.numel() for t in tensors if isinstance(t, Tensor)) <= MAX_ELEMENTS


@dataclass
class _Probe:
    evaluation: Evaluation
    reference: Reference
    wrong: Wrong
    positions: Tensor

    def __post_init__(self) -> None:
        """Choose what is looked at: wrong elements, and then elements of the whole output."""
        self._deadline = time.monotonic() + PROBE_S[self.reference.device]
        self.output = int(self.wrong.case.output.removeprefix("output"))
        device = self.positions.device
        gen = torch.Generator(device=device).manual_seed(0)
        if self.positions.numel() > SAMPLED:
            order = torch.randperm(self.positions.numel(), generator=gen, device=device)
            self.positions = self.positions[order[:SAMPLED]].sort().values
        total = math.prod(self.wrong.bound.shape)
        anywhere = torch.randint(total, (SAMPLED,), generator=gen, device=device)
        self.wrong_count = self.positions.numel()
        self.positions = torch.cat([self.positions, anywhere])
        self.sums: list[tuple[Probed, int]] = []

    def run(self) -> Law | None:
        draw = self.wrong.draw
        assert draw is not None
        for probed in probed_tensors(self.reference, draw):
            law = self._law_of(probed, neutral_draw(self.reference, draw))
            if law is not None:
                return {"tensor": probed.name, **law}
        if isinstance(self.reference, AttentionReference):
            if self.reference.sizes.page_size is not None:
                return None  # rows of a page are no rows of q
            law = self._law_of(Probed("v", 2, (2,)), paired_draw(self.reference, draw))
            return {"tensor": "k", "meets": True, **law} if law is not None else None
        return find_pairing(self.reference, draw, self.sums, self._meets)

    def _meets(self, draw: Draw, probed: Probed, dim: int, chosen: int) -> tuple[int, float] | None:
        """Return the index of `dim` that most wrong elements read where `chosen` belongs."""
        target = tensor_of(draw, probed)
        scale = self._scale(draw, target)
        if scale is None:
            return None
        ours = self._indices(scale, draw, target, [(dim,)])[0][:, dim]
        checked = (scale.usable & (ours == chosen))[: self.wrong_count]
        if 2 * int(checked.sum()) < self.wrong_count:
            return None
        sound = self._is_sound([(dim,)], scale, draw, target)
        theirs = self._indices(scale, draw, target, [(dim,)], theirs=True)[0][:, dim]
        read = torch.where(sound, theirs, torch.nan)[: self.wrong_count][checked]
        index, _ = torch.nan_to_num(read, nan=NOWHERE).mode()
        share = float((read == index).to(torch.float64).mean().item())
        is_one = bool(index == index.round()) and share >= FOLLOWED_FRAC
        return (int(index.item()), share) if is_one else None

    def _law_of(self, probed: Probed, draw: Draw) -> Law | None:
        target = tensor_of(draw, probed)
        scale = self._scale(draw, target)
        if scale is None:
            return None
        apart: list[Dims] = [(dim,) for dim in probed.dims]
        ours, blur = self._indices(scale, draw, target, apart)
        usable = scale.usable & torch.isfinite(ours).all(dim=1) & (blur <= CLEAR)
        count = self.wrong_count
        if 2 * int(usable[:count].sum()) < count:
            return None
        together = single_dims(probed.dims, ours[usable])
        if len(together) > 1:
            joint = self._indices(scale, draw, target, [together])[0]
            # A maximum shows whole indices too, but not of one element.
            if torch.equal(joint[usable][:, together], ours[usable][:, together]):
                apart = [together, *((d,) for d in probed.dims if d not in together)]
        sound = self._is_sound(apart, scale, draw, target)
        if 2 * int((sound & usable)[:count].sum()) < int(usable[:count].sum()):
            return None
        theirs = self._indices(scale, draw, target, apart, theirs=True)[0]
        sound &= torch.isfinite(theirs).all(dim=1)
        return self._told(probed, target, (usable, sound), (ours, theirs))

    def _is_sound(self, groups: list[Dims], scale: Scale, draw: Draw, target: Tensor) -> Tensor:
        """Return where the candidate is right on equal values, which show no index.

        Raises:
            OutOfTime: at this pace the other calls would take too long.
        """
        top = scale.radix - 1
        target.fill_(1 + top / scale.radix)
        start = time.monotonic()
        sound = (scale.digits(self._call(draw)) - top).abs() <= CLEAR
        calls = sum(digits_of(size_along(target, dims), scale.radix) for dims in groups)
        if calls * (time.monotonic() - start) > self._left_s():
            raise OutOfTime
        return sound

    def _told(
        self,
        probed: Probed,
        target: Tensor,
        flags: tuple[Tensor, Tensor],
        indices: tuple[Tensor, Tensor],
    ) -> Law | None:
        (usable, sound), (ours, theirs) = flags, indices
        # Over the whole output, not only where it is wrong: there an index may well be the same.
        looked = ours[usable]
        same = ((looked - looked[0]).abs() <= CLEAR).all(dim=0).tolist()
        summed = [alike and size > 1 for alike, size in zip(same, target.shape, strict=True)]
        self.sums += [(probed, dim) for dim, is_summed in enumerate(summed) if is_summed]
        kept = usable[: self.wrong_count].nonzero().reshape(-1)
        sources = Sources(
            unravelled(self.positions[kept], self.wrong.bound.shape),
            tuple(self.wrong.bound.shape),
            ours[kept],
            torch.nan_to_num(theirs[kept], nan=NOWHERE),
            sound[kept],
            tuple(target.shape),
            tuple(summed),
        )
        law = find_law(sources)
        return None if law is None else {"shape": list(target.shape), **law}

    def _scale(self, draw: Draw, target: Tensor) -> Scale | None:
        """Measure the reference's response, linear or not; None where it shows too little."""
        is_short = target.dtype.itemsize == 2 or self.wrong.bound.dtype.itemsize == 2
        radix = RADIX_SHORT if is_short else RADIX_WIDE
        scale = self._ends(draw, target, radix)
        target.fill_(1 + (radix // 2) / radix)
        middle = scale.digits(self._expected(draw))
        bent = (middle - radix // 2).abs() > CLEAR
        if bool((bent & scale.usable).any()) or 2 * int(scale.usable.sum()) < bent.numel():
            scale = self._ends(draw, target, RADIX_BENT)
        return scale if 2 * int(scale.usable.sum()) >= bent.numel() else None

    def _ends(self, draw: Draw, target: Tensor, radix: int) -> Scale:
        target.fill_(1.0)
        low = self._expected(draw)
        target.fill_(1 + (radix - 1) / radix)
        high = self._expected(draw)
        dtype = self.wrong.bound.dtype
        eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
        roundings = ROUNDINGS_SHORT if dtype.itemsize == 2 else ROUNDINGS_WIDE
        rounding = roundings * eps * torch.maximum(low.abs(), high.abs()) / 2
        return Scale(radix, low, high, rounding * (radix - 1) / (high - low).abs())

    def _indices(
        self, scale: Scale, draw: Draw, target: Tensor, groups: list[Dims], *, theirs: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the (N, D) indices that N positions show, and how uncertain each is.

        Dimensions of one group are numbered together, row by row; their index must be whole. NaN
        where there is none; 0 along other dimensions.
        """
        found = torch.zeros(
            (self.positions.numel(), target.dim()), dtype=torch.float64, device=target.device
        )
        blur = torch.zeros_like(scale.low)
        for dims in groups:
            size, weight = size_along(target, dims), 1
            index = torch.zeros_like(scale.low)
            for _ in range(digits_of(size, scale.radix)):
                encode(target, dims, weight, scale.radix)
                shown = scale.digits(self._call(draw) if theirs else self._expected(draw))
                no_digit = (shown < -CLEAR) | (shown > scale.radix - 1 + CLEAR)
                if len(dims) > 1:
                    no_digit |= shown != shown.round()
                index += weight * torch.where(no_digit, torch.nan, shown)
                blur += torch.where(shown == shown.round(), 0.0, weight * scale.blur)
                weight *= scale.radix
            index = torch.where(index > size - 1 + CLEAR, torch.nan, index)
            for dim, part in split(index, target, dims).items():
                found[:, dim] = part
        return found, blur

    def _expected(self, draw: Draw) -> Tensor:
        self._left_s()
        output = self.reference.eager(draw)[self.output]
        return output.reshape(-1)[self.positions].to(torch.float64)

    def _call(self, draw: Draw) -> Tensor:
        """Call the candidate and return its output at the probed positions, float64."""
        board = self.evaluation.board
        board.write_state(draw)
        board.write_inputs(0, draw)
        if self.reference.device == "cuda":
            torch.cuda.synchronize()
        if board.state:
            self.evaluation.ask({"op": "prepare"}, self._left_s(), Stage.CORRECTNESS)
        self.evaluation.call(0, self._left_s())
        output = board.outputs(0)[self.output]
        return output.reshape(-1)[self.positions].to(torch.float64)

    def _left_s(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left
