"""Children of the oracle: a mutant may crash or hang, and takes nobody with it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from typing import Any

WALL_FACTOR = 20.0
"""The machine may be shared: a child that waits is not a child that hangs."""
Answer = dict[str, Any]
Send = Callable[[Answer], object]


def in_child(work: Callable[[Send], object], limit_s: float) -> Answer:
    """Run `work(send)` in a forked child and return what it sent.

    Args:
        work: gets a function that takes the answer.
        limit_s: processor time that it may take; `WALL_FACTOR` times that on the clock.
    """

    def limited(_: int, send: Send) -> bool:
        cpu_s = max(1, int(limit_s))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        work(send)
        return False

    wall_s = WALL_FACTOR * limit_s
    return in_children(1, limited, start_s=0.0, limit_s=wall_s, left_s=2 * wall_s)[0]


def in_children(
    count: int,
    work: Callable[[int, Send], bool],
    *,
    start_s: float,
    limit_s: float,
    left_s: float,
) -> list[Answer]:
    """Run `work(i, send)` for each i in forked children, one after the other.

    A child goes on with the next i as long as `work` returns True; where it crashes or hangs,
    another one goes on after the mutant that did it. So most mutants share one start of CUDA.

    Args:
        count: how often.
        work: sends one answer; returns whether this process is fit for the next one.
        start_s: what a child may take to start, on top of its first limit.
        limit_s: for each answer, on the clock.
        left_s: for all of them; those that are not done by then have no answer.
    """
    answers: list[Answer] = []
    end = time.monotonic() + left_s
    while len(answers) < count and time.monotonic() < end:
        first = len(answers)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _serve(writer, range(first, count), work)
        os.close(writer)
        try:
            answers += _answers(reader, child, (start_s, limit_s, end))
        finally:
            os.close(reader)
    return answers[:count]


def _serve(writer: int, numbers: range, work: Callable[[int, Send], bool]) -> None:
    """Be the child."""

    def send(answer: Answer) -> None:
        os.write(writer, json.dumps(answer).encode() + b"\n")

    code = 1
    try:
        for number in numbers:
            if not work(number, send):
                break
        code = 0
    except BaseException as exc:  # noqa: BLE001  the child says what it can and is gone
        send({"outcome": "fault", "message": repr(exc)[:300]})
    finally:
        os._exit(code)


def _answers(reader: int, child: int, limits: tuple[float, float, float]) -> list[Answer]:
    """Read a child's answers until it ends; the last one says so where it ended badly."""
    start_s, limit_s, end = limits
    data, found, hung = b"", [], False
    due = time.monotonic() + start_s + limit_s
    while True:
        wait_s = min(due, end) - time.monotonic()
        if not select.select([reader], [], [], max(0.0, wait_s))[0]:
            hung = True
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reader, 65536)
        if not part:
            break
        data += part
        *lines, data = data.split(b"\n")
        found += [json.loads(line) for line in lines]
        if lines:
            due = time.monotonic() + limit_s
    _, status = os.waitpid(child, 0)
    if hung and time.monotonic() >= end:
        return found  # stopped by the clock of all, which says nothing of the mutant
    if hung or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        found.append({"outcome": "hangs"})
    elif not found or (status != 0 and found[-1]["outcome"] != "fault"):
        found.append({"outcome": "crashes"})
    return found
