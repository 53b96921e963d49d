"""When the final tier goes on, and what it says of a replay that does not count."""

from __future__ import annotations

import pytest

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.evaluation import Failed
from hotloop.worker.final import MIN_ROUNDS, ROUNDS_S, may_stop, why_not_replayed


@pytest.mark.parametrize(
    ("rounds_done", "spent_s", "expected"),
    [
        (MIN_ROUNDS, ROUNDS_S + 1, True),
        (MIN_ROUNDS, ROUNDS_S - 1, False),
        (MIN_ROUNDS + 1, ROUNDS_S + 1, False),  # one order would have a turn more
        (MIN_ROUNDS - 2, 60.0, False),
    ],
)
def test_a_long_session_ends_after_as_many_rounds_in_either_order(
    rounds_done: int, spent_s: float, expected: bool
) -> None:
    assert may_stop(rounds_done, spent_s) is expected


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (Status.TIMEOUT, "took too long"),
        (Status.INCORRECT_NUMERICAL, "not what the forward computes"),
        (Status.RUNTIME_ERROR, "not what the forward computes"),
    ],
)
def test_a_replay_that_does_not_count_is_named_for_what_it_was(status: Status, word: str) -> None:
    failed = Failed(status, Stage.PERFORMANCE, Evidence(kind="x", message="output0"))
    assert word in why_not_replayed(failed)
    assert "output0" in why_not_replayed(failed)
