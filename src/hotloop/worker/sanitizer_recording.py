"""One recorded forward, as the sanitizers' process wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.core.units import GIB
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.memory import leave_room
from hotloop.worker.replay import Forward, Refused, record_forward
from hotloop.worker.sanitizer_memory import separate
from hotloop.worker.sanitizer_tools import Outcome, Watch
from hotloop.worker.view import WorkloadView
from hotloop.worker.workroom import Workroom

MAX_BYTES = 16 * GIB
"""More is not copied: it would not end in time."""
TABLES = "tables"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The launches of one forward on one board, which must keep the inputs until they are used."""

    view: WorkloadView
    forward: Forward
    message: Mapping[str, Any]

    @classmethod
    def take(cls, view: WorkloadView, evaluation: Evaluation) -> Recorded:
        """Record a forward of a loaded, correct candidate on the view's first case.

        Raises:
            Refused: it cannot be replayed, or its tensors are too large.
            Failed: the candidate's process failed.
        """
        draw, board = view.book.draw_of(view.book.cases[0]), evaluation.board
        board.write_state(draw)
        board.hide_inputs()
        torch.cuda.synchronize()
        leave_room()
        evaluation.prepare()
        board.write_inputs(0, draw)
        torch.cuda.synchronize()
        kernels = evaluation.timed_call(0).kernels
        forward = record_forward(evaluation, kernels)
        try:
            text, tensors = separate(forward.message["recording"], board)
            total = sum(t["n_bytes"] for t in tensors)
            if total > MAX_BYTES:
                raise Refused(f"its tensors take {total / GIB:.1f} GiB")
        except BaseException:
            forward.close()
            raise
        handle, cubins = board.arena.token["handle"], forward.message["cubins"]
        message = {"handle": handle, "tensors": tensors, "recording": text, "cubins": cubins}
        return cls(view, forward, message)

    def watch(self, room: Workroom, tools: Sequence[str], *, all_s: float) -> Outcome:
        """Launch it again under tools, in a folder of its own.

        Raises:
            OSError: the folder cannot be written or the tool cannot be started.
        """
        folder = room.folder("sanitizer")
        try:
            message = dict(self.message)
            if self.forward.tables is not None:
                self.forward.tables.copy_to(folder / TABLES)
                message["tables"] = str(folder / TABLES)
            watch = Watch(
                message=message,
                kernels=kernels_of(message["recording"]),
                folder=folder,
                env=room.environment(folder),
                cage=room.candidate_cage(folder),
            )
            return watch.run(tools, all_s=all_s)
        finally:
            room.discard(folder)

    def close(self) -> None:
        """Let go of its files; once."""
        self.forward.close()


def kernels_of(recording: str) -> frozenset[str]:
    """Return the function names of a recording's launches."""
    return frozenset(launch["function"] for launch in json.loads(recording)["launches"])
