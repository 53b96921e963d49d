"""Judges of one GPU, of which one needs all of its memory."""

from __future__ import annotations

import dataclasses
import threading
import time

import pytest

from hotloop.core.verdict import Evidence, Status, Verdict
from hotloop.testing.fakes import fake_verdict
from hotloop.verify.crowd import NO_ROOM, Crowd, was_crowded

SHORT_S = 0.2


def started(work: object) -> threading.Thread:
    """Run something in a thread and give it the time to wait."""
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    time.sleep(SHORT_S)
    return thread


def test_one_judge_is_no_crowd() -> None:
    crowd = Crowd()
    crowd.join(lambda: None)
    assert not crowd.is_shared
    crowd.join(lambda: None)
    assert crowd.is_shared


def test_who_wants_it_whole_waits_for_the_others_ends_them_and_keeps_them_out() -> None:
    crowd, told = Crowd(), list[str]()
    crowd.join(lambda: told.append("first ended"))
    crowd.join(lambda: told.append("second ended"))

    def first() -> None:
        with crowd.work(), crowd.whole(lambda: None):
            told.append("whole")
            time.sleep(2 * SHORT_S)
            told.append("no longer")

    def next_group() -> None:
        with crowd.work():
            told.append("next")

    with crowd.work():
        wants = started(first)
        waits = started(next_group)
        told.append("second is done")
    wants.join(10.0)
    waits.join(10.0)
    assert told == [
        "second is done", "first ended", "second ended", "whole", "no longer", "next",
    ]  # fmt: skip


def test_two_that_want_it_get_it_one_after_the_other() -> None:
    crowd, inside, most = Crowd(), list[int](), list[int]()
    for _ in range(2):
        crowd.join(lambda: None)

    def work() -> None:
        with crowd.work(), crowd.whole(lambda: None):
            inside.append(1)
            most.append(len(inside))
            time.sleep(SHORT_S)
            inside.pop()

    for thread in [started(work), started(work)]:
        thread.join(10.0)
        assert not thread.is_alive()
    assert most == [1, 1]


def test_an_error_in_it_locks_nobody_out() -> None:
    crowd = Crowd()

    def fail() -> None:
        raise ValueError("lost")

    def wants() -> None:
        with crowd.work(), crowd.whole(fail):
            pass

    with pytest.raises(ValueError, match="lost"):
        wants()
    with crowd.work(), crowd.whole(lambda: None):
        pass


@pytest.mark.parametrize(
    ("text", "is_it"),
    [("CUDA out of memory", True), ("the inputs do not fit", True),
     ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", True),
     ("an illegal memory access was encountered", False),
     ("out of resource: shared memory, Required: 300000", False)],
)  # fmt: skip
def test_what_says_that_memory_ran_out(text: str, is_it: bool) -> None:
    assert (NO_ROOM.search(text) is not None) == is_it


def of(status: Status | float, **fields: object) -> Verdict:
    return dataclasses.replace(fake_verdict(status, "c"), **fields)  # type: ignore[arg-type]


CROWDED = (
    of(Status.TIMEOUT),
    of(Status.RUNTIME_ERROR, evidence=Evidence(kind="oom_gpu", message="it ran out")),
    of(Status.RUNTIME_ERROR, message="CUDA error: out of memory"),
    of(1.0, checks_skipped={"correctness:far": "no time was left for it after 20 s"}),
    of(
        Status.INCORRECT_NUMERICAL,
        checks_skipped={"correctness:another draw of far": "eager does not fit beside the golden"},
    ),
)
NOT_CROWDED = (
    of(1.0, checks_skipped={"sanitizer:racecheck": "the short final tier"}),
    of(Status.INCORRECT_NUMERICAL, message="out of memory of it"),
    of(Status.RUNTIME_ERROR, message="an illegal memory access was encountered"),
)


def test_what_neighbours_may_have_caused_is_judged_again() -> None:
    assert all(map(was_crowded, CROWDED))
    assert not any(map(was_crowded, NOT_CROWDED))
