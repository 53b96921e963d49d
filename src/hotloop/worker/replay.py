"""Replay: time the kernels without the candidate's Python beside them.

The candidate records one forward; a fresh process launches the recorded machine code on the judge's
buffers. A recording is data from an untrusted process: it counts only if its outputs are right on
fresh inputs. Where a forward does more than launch recorded kernels, the reason is returned and the
result is `host_path`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.verdict import Stage
from hotloop.worker.board import Board, describe_set
from hotloop.worker.channel import refuse_constant
from hotloop.worker.evaluation import LOAD_S, Evaluation, Failed
from hotloop.worker.memory import leave_room
from hotloop.worker.patience import REPLAY_S, Patience
from hotloop.worker.tables import Tables, TablesRefused
from hotloop.worker.workroom import Workroom

MIN_SETS, MAX_SETS = 4, 16
SCRATCH_BYTES = 1 << 30
"""More sets than `MIN_SETS` only while the memory that replays take for themselves fits in this."""


class Refused(Exception):
    """This forward cannot be replayed; the message says why."""


@dataclass(frozen=True, slots=True)
class Forward:
    """What one forward launches, as a replaying process wants it; whoever holds it closes it."""

    message: dict[str, Any]
    """`recording` and `cubins`."""
    tables: Tables | None

    def close(self) -> None:
        """Close the file of tables."""
        if self.tables is not None:
            self.tables.close()


@dataclass(slots=True)
class Replay(Evaluation):
    """A replaying process on the same board as the evaluation it came from."""

    folder: Path | None = None
    room: Workroom | None = None

    def close(self) -> None:
        """End the process and remove its folder."""
        self.child.close()
        if self.room is not None and self.folder is not None:
            self.room.discard(self.folder)


def start_replay(
    room: Workroom, evaluation: Evaluation, expected_kernels: tuple[str, ...]
) -> tuple[Replay | None, str | None]:
    """Record the evaluation's forward and start a process that replays it.

    Args:
        room: where processes are started.
        evaluation: a loaded, correct evaluation.
        expected_kernels: names of the device activities of one call, as the clock saw them.

    Returns:
        The replay, or None and the reason.
    """
    try:
        forward = record_forward(evaluation, expected_kernels)
        try:
            return _start(room, evaluation, forward), None
        finally:
            forward.close()
    except Refused as exc:
        return None, str(exc)
    except Failed as exc:
        return None, exc.evidence.message[:300]


def record_forward(evaluation: Evaluation, expected_kernels: tuple[str, ...]) -> Forward:
    """Return the launches of one forward on set 0, as a replaying process wants them.

    Raises:
        Refused: it cannot be replayed, or more ran than was recorded.
        Failed: the candidate's process failed.
    """
    answer, came = evaluation.record()
    try:
        tables = Tables.take(came)
    except TablesRefused as exc:
        raise Refused(str(exc)) from None
    try:
        if "refused" in answer:
            raise Refused(str(answer["refused"])[:300])
        return Forward(read_recording(answer, evaluation.board, expected_kernels), tables)
    except BaseException:
        if tables is not None:
            tables.close()
        raise


def read_recording(
    answer: Mapping[str, Any], board: Board, expected_kernels: tuple[str, ...]
) -> dict[str, Any]:
    """Return a recording with the board's addresses told apart, as a replaying process wants it.

    Raises:
        Refused: it is malformed, or it is not all that the device ran.
    """
    try:
        recording = json.loads(answer["recording"], parse_constant=refuse_constant)
        cubins = answer["cubins"]
        check_types(recording, cubins)
        launches = len(recording["launches"])
        split_arena(recording, board)
        text = json.dumps(recording, allow_nan=False)
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError
    ) as exc:  # fmt: skip
        raise Refused(f"the recording is malformed ({type(exc).__name__})") from exc
    if expected_kernels and launches != len(expected_kernels):
        raise Refused(
            f"{launches} launches were recorded, the device ran {len(expected_kernels)}: "
            f"{', '.join(expected_kernels[:6])}"
        )
    return {"recording": text, "cubins": cubins}


def check_types(recording: Any, cubins: Any) -> None:
    """Check the types of what the judge itself reads; the replaying process checks the rest.

    Raises:
        ValueError: a field has another type.
        KeyError: one is missing.
    """
    if not isinstance(cubins, dict) or not all(isinstance(code, str) for code in cubins.values()):
        raise ValueError("expected `cubins` as text by name")
    _expect(recording, dict)
    for name in ("buffers", "launches", "outputs"):
        for row in _expect(recording[name], list):
            _expect(row, dict)
    for buffer in recording["buffers"]:
        _expect(buffer["name"], (str, type(None)))
        _expect(buffer["nbytes"], int)
        _expect(buffer["table"], (int, type(None)))
    places = [p for x in recording["launches"] for p in _expect(x["parameters"], list)]
    for place in (*(p for p in places if "buffer" in _expect(p, dict)), *recording["outputs"]):
        _expect(place["buffer"], int)
        _expect(place["offset"], int)


def _expect(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"expected {kind}, got {type(value).__name__}")
    return value


def split_arena(recording: dict[str, Any], board: Board) -> None:
    """Tell apart, in place, addresses of the state and of set 0 within the one arena buffer.

    Sets are laid out alike, so that an address in set 0 is the same distance into any other set.

    Raises:
        Refused: a launch touches another set than the one that was recorded.
    """
    starts = set_offsets(board)
    end = starts[1] if len(starts) > 1 else board.layout.size_bytes
    arena = next((i for i, b in enumerate(recording["buffers"]) if b["name"] == "arena"), None)
    if arena is None:
        raise Refused("no launch touches the judge's buffers")
    recording["buffers"][arena]["name"] = "state"
    recording["buffers"].append({"name": "set", "nbytes": end - starts[0], "table": None})
    number = len(recording["buffers"]) - 1
    places = [p for x in recording["launches"] for p in x["parameters"] if "buffer" in p]
    for place in (*places, *recording["outputs"]):
        if place["buffer"] != arena or place["offset"] < starts[0]:
            continue
        if place["offset"] >= end:
            raise Refused("a launch touches buffers of another call")
        place["buffer"] = number
        place["offset"] -= starts[0]


def set_offsets(board: Board) -> list[int]:
    """Return where each set of the board begins, in bytes."""
    starts = []
    for inputs, outputs in board.sets:
        slots = [s for s in (*inputs, *outputs) if hasattr(s, "offset")]
        starts.append(min(s.offset for s in slots))
    return starts


def replayed_sets(there: int, scratch_bytes: int) -> int:
    """Return how many sets to replay: short kernels need many distinct buffers.

    Args:
        there: sets of the board.
        scratch_bytes: what each takes besides the board, as the recording says.
    """
    room = SCRATCH_BYTES // max(scratch_bytes, 1)
    return min(there, max(MIN_SETS, min(MAX_SETS, room)))


def _start(room: Workroom, evaluation: Evaluation, forward: Forward) -> Replay:
    leave_room()
    board = evaluation.board
    buffers = json.loads(forward.message["recording"])["buffers"]
    scratch_bytes = sum(b["nbytes"] for b in buffers if b["name"] is None)
    sets = board.sets[: replayed_sets(len(board.sets), scratch_bytes)]
    small = Board(board.arena, board.layout, board.state, sets, 0)
    folder = room.folder("replay")
    child = room.start_replay(folder)
    replay = Replay(
        child, small, evaluation.candidate, evaluation.device, Patience(REPLAY_S),
        folder=folder, room=room,
    )  # fmt: skip
    message = {
        "op": "load",
        "sets": [describe_set(*s) for s in small.sets],
        "set_offsets": set_offsets(small),
        **forward.message,
    }
    fds = [forward.tables.fd] if forward.tables is not None else []
    try:
        replay.attach()
        replay.ask(message, LOAD_S, Stage.PERFORMANCE, fds=fds)
    except BaseException:
        replay.close()
        raise
    return replay
