"""Other shapes, reported: is a kernel right beyond the sizes that it must work on?

For problems of the scope `nominal`, after a final tier that passed. Each shape has a process of its
own, and no outcome changes the verdict. Of held-out shapes only their outcome is written down.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from dataclasses import dataclass

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Role
from hotloop.core.verdict import OtherShape, Status, Verdict
from hotloop.errors import HotloopError
from hotloop.worker.builds import Build
from hotloop.worker.correctness import CorrectnessStage
from hotloop.worker.device import confirm_device
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.memory import leave_room
from hotloop.worker.patience import Patience
from hotloop.worker.session import Session
from hotloop.worker.view import WorkloadView
from hotloop.worker.workroom import Workroom

REPORT_S = {"cuda": 20.0, "cpu": 60.0}
"""No further shape is tried after this."""
CALL_S = {"cuda": 10.0, "cpu": 60.0}
"""One call, with the compilation for new sizes that it may need."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Runs one candidate on the shapes that decide nothing."""

    session: Session
    room: Workroom
    candidate: Candidate
    build: Build

    def report(self, verdict: Verdict) -> Verdict:
        """Return the verdict with what was found on other shapes.

        Raises:
            InfraError: the device is gone.
        """
        assert verdict.correctness is not None
        start, device = time.monotonic(), self.session.device
        found: list[OtherShape] = []
        try:
            for view in self.session.reported_views():
                status = self._status(view)
                found.append(_described(view, status))
                if time.monotonic() - start > REPORT_S[device]:
                    break
        except (HotloopError, RuntimeError) as exc:
            if device == "cuda":
                confirm_device()
            text = f"{type(exc).__name__}: {str(exc)[:300]}"
            print(f"hotloop judge: no further shapes: {text}", file=sys.stderr, flush=True)
        correctness = dataclasses.replace(verdict.correctness, other_shapes=tuple(found))
        return dataclasses.replace(verdict, correctness=correctness)

    def _status(self, view: WorkloadView) -> Status:
        evaluation = Evaluation.start(
            self.room, view.board, self.candidate, folder=self.build.folder, patience=Patience()
        )
        try:
            view.board.arena.fill_gaps(view.board.layout)
            view.board.write_state(view.book.draw_of(view.book.cases[0]))
            leave_room()
            evaluation.attach()
            evaluation.load(tuple(view.reference.loaded.init_args or ()))
            books = self.session.fresh_books(view, {})
            CorrectnessStage(evaluation).run(books, CALL_S[self.session.device])
        except Failed as failed:
            return failed.status
        finally:
            evaluation.close()
        return Status.PASSED


def _described(view: WorkloadView, status: Status) -> OtherShape:
    role = view.workload.role
    own = view.reference.loaded.problem.settings
    settings = {} if role is Role.HELD_OUT else {**own, **view.shape.told.settings}
    return OtherShape(role=str(role), settings=settings, status=status)
