"""Judges of one GPU, of which one needs all of its memory."""

from __future__ import annotations

import threading
import time

from hotloop.verify.crowd import Crowd

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
