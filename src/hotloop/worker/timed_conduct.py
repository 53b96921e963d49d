"""Timed conduct: whether a forward does in timed calls what it does under watch.

Modes would be seen by a forward, and their time measured, so timed calls have none. Between two of
them, drawn, come two on new values, as timed calls have: one under watch, held against all rules,
and one through the very same frames as a timed call, in which torch's profiler records; its time is
of no use. There torch must not work on more than under watch, nor may fewer kernels be launched.

Not covered: kernels that are not torch's; they differ by name (decision 008). For inputs and
outputs over 256 MiB together, where the outputs of the watched call come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch

from hotloop.core.verdict import Stage
from hotloop.worker.call_rules import (
    FEWER,
    UNWATCHED,
    CallRules,
    check_started,
    hack,
    launches_unwatched,
    works_unwatched,
)
from hotloop.worker.cases import Case
from hotloop.worker.evaluation import CALL_S, Evaluation, Failed
from hotloop.worker.known_case import Known
from hotloop.worker.timed import TimedInputs
from hotloop.worker.untimed import Untimed, WatchedCall

T = TypeVar("T")

TRIES = 2
"""What is wrong counts where it is wrong again, on other values: libraries tune, too."""


class OnNewValues(Protocol):
    """Puts new inputs into a set, makes a call on it, checks its output."""

    def __call__(self, call: Callable[[int], T]) -> T:
        """Return what the call returns."""


def check_timed_conduct(
    evaluation: Evaluation, inputs: TimedInputs, on_new_values: OnNewValues
) -> None:
    """Hold a call under watch against the rules, and one that looks timed against that.

    Args:
        evaluation: of the candidate.
        inputs: the timed inputs; `on_new_values` replaces them.
        on_new_values: makes a call.

    Raises:
        Failed: forward does not do the work by its kernels, or tells the calls apart, and again
            when both are repeated.
    """
    if not evaluation.candidate.entry.endswith(".py"):
        return
    rules = CallRules(evaluation, inputs.reference)
    known = _known(inputs, evaluation.board.outputs(0))  # of the sizes
    looks = rules.looks(known)
    fault: Failed | None = None
    for _ in range(TRIES):
        watched = on_new_values(
            lambda index: evaluation.watched_call(index, CALL_S, Untimed(looks=looks))
        )
        if looks:
            known = _known(inputs, inputs.trusted())
        fault = _fault(rules, known, watched, looks=looks)
        timed = on_new_values(evaluation.timed_work)
        fault = fault or _difference(known, watched, timed)
        if fault is None:
            return
    assert fault is not None
    raise Failed(fault.status, Stage.PERFORMANCE, fault.evidence)


def _known(inputs: TimedInputs, outputs: Sequence[torch.Tensor]) -> Known:
    """Return the case of the values that are in place now."""
    draw = inputs.draw
    case = Case("timed", draw.profile, draw.seed, inputs.bounds)
    return Known(inputs.reference, case, draw, tuple(outputs))


def _fault(rules: CallRules, known: Known, watched: WatchedCall, *, looks: bool) -> Failed | None:
    assert watched.seen is not None  # `.cu` files are not looked at here
    try:
        rules.check(known, watched.seen, looked=looks)
    except Failed as failed:
        return failed
    return None


def _difference(known: Known, watched: WatchedCall, timed: WatchedCall) -> Failed | None:
    try:
        check_started(timed.started)
    except Failed as failed:
        return failed
    if works_unwatched(known, [watched.work], [timed.work]):
        return hack("library_call", UNWATCHED)
    if launches_unwatched([watched.launches], [timed.launches]):
        return hack("library_call", FEWER)
    return None
