"""Ask a process that may be thrown away: one answer on its stdout, or the reason why there is none.

For questions that can hang or kill whoever asks them, such as NVML in a broken driver. A process
inside a driver can outlast SIGKILL, so nothing here waits for one without a limit: such a process
is left behind.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hotloop.core.units import KIB
from hotloop.sandbox.output import OutputCollector

REAP_S = 1.0
"""How long a killed process may take to end before it is left behind."""
MAX_ANSWER_BYTES = 128 * KIB
_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_DEVICE_ORDER",
)  # fmt: skip
"""Where tools are; no key passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one question."""

    text: str | None = None
    """Its stdout without control codes; None where there is no answer."""
    reason: str = ""
    """Why there is none; empty where there is one."""
    is_silent: bool = False
    """Whether the deadline passed, which is how a driver that hangs looks."""


def ask_process(
    command: Sequence[str], deadline_s: float, *, extra: Mapping[str, str] | None = None
) -> Answer:
    """Run a process in a session of its own, kill it at the deadline, and return what it said.

    Args:
        command: program and arguments.
        deadline_s: for the whole answer, in seconds.
        extra: environment variables beside those that say where tools are.
    """
    env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env | dict(extra or {}),
            start_new_session=True,
        )
    except FileNotFoundError:
        return Answer(reason=f"{command[0]} is not installed")
    except OSError as exc:
        return Answer(reason=f"{command[0]} cannot be started: {exc}")
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        said = OutputCollector(process.stdout.fileno(), limit_bytes=MAX_ANSWER_BYTES)
        errors = OutputCollector(process.stderr.fileno(), limit_bytes=MAX_ANSWER_BYTES)
        has_ended = _await_end(process.pid, (said, errors), deadline_s)
        code = _end(process)
        for collector in (said, errors):
            collector.drain()
    return _answer(command[0], code if has_ended else None, (said, errors), deadline_s)


def _answer(
    name: str, code: int | None, output: tuple[OutputCollector, OutputCollector], deadline_s: float
) -> Answer:
    said, errors = output
    if said.over_limit or errors.over_limit:
        return Answer(reason=f"{name} wrote over {MAX_ANSWER_BYTES // KIB} KiB")
    if code is None:
        return Answer(reason=f"{name} did not answer within {deadline_s:g} s", is_silent=True)
    if code != 0:
        lines = (errors.text() or said.text()).strip().splitlines()
        return Answer(reason=lines[-1] if lines else f"{name} ended with {code}")
    return Answer(text=said.text())


def _await_end(pid: int, output: Sequence[OutputCollector], deadline_s: float) -> bool:
    """Take in output until the process ends; return whether it did in time.

    Its end is what counts, not that of its pipes: a grandchild may hold them open.
    """
    deadline = time.monotonic() + deadline_s
    ended = os.pidfd_open(pid)
    try:
        poller = select.poll()
        for fd in (ended, *(collector.fileno() for collector in output)):
            poller.register(fd, select.POLLIN)
        while (left_s := deadline - time.monotonic()) > 0:
            ready = [fd for fd, _ in poller.poll(max(1.0, left_s * 1000))]
            for collector in output:
                if collector.fileno() in ready and collector.drain():
                    poller.unregister(collector.fileno())
            if any(collector.over_limit for collector in output):
                return False
            if ended in ready:
                return True
        return False
    finally:
        os.close(ended)


def _end(process: subprocess.Popen[bytes]) -> int | None:
    """Kill what is left of its session; return its exit code, None where it does not end."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    with suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=REAP_S)
    return None
