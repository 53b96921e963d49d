"""NaN and infinity among the inputs: does a kernel pass them on as PyTorch does?

Reported at the final tier, deciding nothing: the gate asks for finite inputs only, and maxima of
Triton and CUDA drop a NaN that torch's pass on. Whether that matters is for the user to say. Each
input has one such element, at a random place; a process of its own is called once for each value.

Not covered: parameters, several such elements in a row, outputs of integers.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import NonfiniteInputs, Verdict
from hotloop.errors import HotloopError
from hotloop.worker.builds import Build
from hotloop.worker.device import confirm_device
from hotloop.worker.evaluation import CALL_S, Evaluation, Failed
from hotloop.worker.inputs import generator
from hotloop.worker.memory import leave_room, ran_out
from hotloop.worker.module_runner import tensors_of
from hotloop.worker.patience import Patience
from hotloop.worker.reference import Draw
from hotloop.worker.session import Session
from hotloop.worker.timed import secret_seed
from hotloop.worker.untimed import Untimed
from hotloop.worker.workroom import Workroom

VALUES = {"nan": float("nan"), "inf": float("inf")}


@dataclasses.dataclass(frozen=True, slots=True)
class NonfiniteTrial:
    """Calls one candidate that passed on inputs that are not finite."""

    session: Session
    room: Workroom
    candidate: Candidate
    build: Build

    def report(self, verdict: Verdict) -> Verdict:
        """Return the verdict with what became of each value; unchanged where it cannot be told.

        Raises:
            InfraError: the device is gone.
        """
        assert verdict.correctness is not None
        try:
            found = tuple(self._found())
        except (HotloopError, RuntimeError) as exc:
            if self.session.device == "cuda" and not ran_out(exc):
                confirm_device()
            text = f"{type(exc).__name__}: {str(exc)[:300]}"
            print(f"hotloop judge: inputs that are not finite: {text}", file=sys.stderr, flush=True)
            return verdict
        correctness = dataclasses.replace(verdict.correctness, nonfinite_inputs=found)
        return dataclasses.replace(verdict, correctness=correctness)

    def _found(self) -> Iterator[NonfiniteInputs]:
        view = self.session.nominal
        board, reference = view.board, view.reference
        evaluation = Evaluation.start(
            self.room, board, self.candidate, folder=self.build.folder, patience=Patience()
        )
        try:
            is_loaded = False
            for name, value in VALUES.items():
                seed = secret_seed()
                draw = reference.draw(seed, view.book.cases[0].profile)
                if not spoil(draw, value, seed):
                    return
                expected = reference.eager(draw)
                try:
                    if not is_loaded:
                        self._load(evaluation, draw)
                        is_loaded = True
                    yield compared(name, expected, self._outputs(evaluation, draw))
                except Failed as failed:
                    yield NonfiniteInputs(value=name, status=failed.status)
                    return  # its process may be gone
        finally:
            evaluation.close()

    def _load(self, evaluation: Evaluation, draw: Draw) -> None:
        board, reference = self.session.nominal.board, self.session.reference
        board.write_state(draw)
        leave_room()
        evaluation.attach()
        evaluation.load(tuple(reference.loaded.init_args or ()))

    def _outputs(self, evaluation: Evaluation, draw: Draw) -> list[Tensor]:
        board = self.session.nominal.board
        board.write_state(draw)
        board.hide_inputs()
        if self.session.device == "cuda":
            torch.cuda.synchronize()
        evaluation.prepare()
        board.write_inputs(0, draw)
        if self.session.device == "cuda":
            torch.cuda.synchronize()
        leave_room()
        evaluation.watched_call(0, CALL_S, Untimed())
        return board.outputs(0)


def spoil(draw: Draw, value: float, seed: int) -> bool:
    """Put `value` at a random place of each floating-point input; return whether there is one."""
    tensors = [t for t in tensors_of(draw.inputs) if t.is_floating_point() and t.numel()]
    for i, tensor in enumerate(tensors):
        gen = generator(seed + i, "cpu")
        place = [int(torch.randint(n, (), generator=gen)) for n in tensor.shape]
        tensor[tuple(place)] = value
    return bool(tensors)


def compared(value: str, expected: Sequence[Tensor], outputs: Sequence[Tensor]) -> NonfiniteInputs:
    """Return what became of `value`, element by element of all floating-point outputs.

    Args:
        value: its name.
        expected: PyTorch's outputs.
        outputs: the candidate's, of the same shapes and dtypes.
    """
    expected_n = lost = spread = changed = 0
    for want, got in zip(expected, outputs, strict=True):
        if not want.is_floating_point():
            continue
        theirs, ours = ~want.isfinite(), ~got.isfinite()
        same = (want == got) | (want.isnan() & got.isnan())
        expected_n += int(theirs.sum())
        lost += int((theirs & ~ours).sum())
        spread += int((ours & ~theirs).sum())
        changed += int((theirs & ours & ~same).sum())
    return NonfiniteInputs(
        value=value, expected=expected_n, lost=lost, spread=spread, changed=changed
    )
