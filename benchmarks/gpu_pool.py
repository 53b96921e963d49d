"""Spread independent jobs over the GPUs of this machine: one thread a GPU takes the next job.

A job is a command of its own with one GPU to see. What a failure means is the caller's business;
nothing here raises for one.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.results_file import ROOT
from hotloop.verify.devices import find_device, gpu_names

INTERRUPT_S = 20.0
"""A command drains at the first Ctrl-C; after this it is killed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    code: int | None
    """None when it was stopped at its deadline."""
    stdout: str
    stderr: str
    wall_s: float

    @property
    def last_words(self) -> str:
        """The last line on stderr."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][-500:] if lines else "it said nothing on stderr"


def visible_gpus(limit: int | None = None) -> list[str]:
    """Return the indices of the GPUs to use, as `CUDA_VISIBLE_DEVICES` takes them.

    Raises:
        DeviceLost: there is no NVIDIA GPU.
    """
    find_device("cuda")
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = told.split(",") if told else [str(i) for i in range(len(gpu_names()))]
    return gpus[:limit]


def seats(gpus: Sequence[str], judges: int | None) -> list[str]:
    """Return the GPU of each judge; judges of one GPU are not next to each other.

    Args:
        gpus: as `visible_gpus` returns them.
        judges: how many in all; None: one a GPU.
    """
    return [gpus[i % len(gpus)] for i in range(judges or len(gpus))]


def gpu_slug() -> str:
    """Return `h200` for `NVIDIA H200`."""
    return gpu_names()[0].lower().replace("nvidia", "").strip().replace(" ", "-")


def run_jobs(
    jobs: Sequence[T], gpus: Sequence[str], work: Callable[[T, str], None], *, start_until: float
) -> list[T]:
    """Call `work(job, gpu)` for each job, one at a time for each GPU.

    Args:
        jobs: in the order they are taken.
        gpus: one thread each.
        work: runs on that thread.
        start_until: time.monotonic() after which no job is started.

    Returns:
        The jobs that were not started.
    """
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)

    def serve(gpu: str) -> None:
        while time.monotonic() < start_until:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            work(job, gpu)

    threads = [threading.Thread(target=serve, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = []
    while not waiting.empty():
        left.append(waiting.get_nowait())
    return left


def run_command(command: Sequence[str], *, env: Mapping[str, str], deadline: float) -> Finished:
    """Run a command at the project's root until it ends, or until a time.monotonic().

    Then it is interrupted, and killed when it does not drain.
    """
    start = time.monotonic()
    process = subprocess.Popen(
        list(command), env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    code: int | None
    try:
        out, err = process.communicate(timeout=max(deadline - start, 1.0))
        code = process.returncode
    except subprocess.TimeoutExpired:
        out, err = _stop(process)
        code = None
    return Finished(code, out, err, time.monotonic() - start)


def _stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=INTERRUPT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()
