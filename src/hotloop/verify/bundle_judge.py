"""Judge a bundle on this machine: judges on each GPU, each with a thread that feeds it.

What was found is written every few seconds, so that a process that is killed leaves what it had.
What is unfinished when the time is over is left out of the file, and so stays pending. The order of
results means nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hotloop.core.verdict import Tier
from hotloop.errors import ConfigError
from hotloop.verify.bundle import Bundle
from hotloop.verify.bundle_board import Board, Judged
from hotloop.verify.bundle_diary import use_of
from hotloop.verify.bundle_plan import Plan
from hotloop.verify.bundle_seat import JudgeOptions, Place, Seat, Tell
from hotloop.verify.crowd import Crowd
from hotloop.verify.seat_use import SeatUse

WRITE_S = 3.0
"""At most so much work is lost when the process is killed."""
MAX_LANES = 8
"""Builds that run ahead of one judge; it runs no more at a time itself."""
MAX_JUDGES = 8
"""Of one GPU: more would only wait for each other's timing, and their memory adds up."""

__all__ = ["MAX_JUDGES", "JudgeOptions", "judge_bundle"]


def judge_bundle(
    bundle: Bundle, out: Path, options: JudgeOptions, tell: Tell = lambda line: None
) -> Judged:
    """Judge what fits into the time; `out` always holds what was found so far.

    Args:
        bundle: problems and candidates.
        out: the verdict file, written anew.
        options: judges and time.
        tell: takes one line on each thing that happened, from any thread.

    Raises:
        ConfigError: the file cannot be written, or the final tier is asked of a CPU.
        SandboxUnavailable: this machine cannot give the isolation.
    """
    if options.device == "cpu" and any(item.tier is Tier.FINAL for item in bundle.items):
        raise ConfigError("the bundle asks for the final tier: it times kernels and needs a GPU")
    began = time.monotonic()
    end = None if options.budget_s is None else began + options.budget_s
    board = Board(out)
    board.write()  # a path that cannot be written shows before any work
    plan = Plan(
        bundle,
        lambda: float("inf") if end is None else end - time.monotonic(),
        seats=len(options.gpus) * options.judges,
    )
    with TemporaryDirectory(prefix="hotloop-turns-") as folder:
        places = _places(options, folder)
        seats = [Seat(plan, board, options, place=place, tell=tell) for place in places]
        _run(plan, board, seats, end)
    return replace(board.judged(bundle), use=_use_of(seats, time.monotonic() - began))


def _places(options: JudgeOptions, folder: str) -> list[Place]:
    """Return where each judge sits; those of one GPU are not next to each other."""
    count = len(options.gpus) * options.judges
    lanes = max(1, min(MAX_LANES, (os.cpu_count() or 2) // (2 * count)))
    turns = folder if options.judges > 1 and options.device == "cuda" else None
    crowds = {gpu: Crowd() for gpu in options.gpus}
    return [
        Place(gpu=gpu, lanes=lanes, number=number, crowd=crowds[gpu], turns=turns)
        for number in range(1, options.judges + 1)
        for gpu in options.gpus
    ]


def _run(plan: Plan, board: Board, seats: Sequence[Seat], end: float | None) -> None:
    """Let all judges work until nothing is left, or until a time.monotonic()."""
    threads = [threading.Thread(target=seat.run, daemon=True) for seat in seats]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) and (
            end is None or time.monotonic() < end
        ):
            _join(threads, WRITE_S if end is None else min(WRITE_S, end - time.monotonic()))
            board.write()
    finally:
        plan.stop()
        for seat in seats:
            seat.stop()
        _join(threads, WRITE_S)
        board.write()


def _use_of(seats: Sequence[Seat], wall_s: float) -> dict[str, SeatUse]:
    keys = dict.fromkeys(seat.key for seat in seats)
    return {key: use_of([s.diary for s in seats if s.key == key], wall_s) for key in keys}


def _join(threads: Sequence[threading.Thread], seconds: float) -> None:
    """Wait until all have ended, or so long."""
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
