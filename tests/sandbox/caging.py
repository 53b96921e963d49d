"""Run a function in a cage, or outside of one, always below a parent that may be lost.

Three processes: the test runner, a sacrificial parent, and its child that runs the function.
Attacks aim at the sacrificial parent, so whatever they achieve cannot reach the runner.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import pickle
import select
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.sandbox import (
    CageReport,
    CageSpec,
    Limits,
    default_paths,
    enter,
    kernel,
    kill_tree,
)

UNPRIVILEGED = 60001
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Refused:
    """The function ended in an OSError of this name."""

    errno_name: str


@dataclass(frozen=True)
class Outcome:
    """What came of a function: its value or its refusal, the cage it ran in, how it ended."""

    value: Any
    report: CageReport | None
    wait_status: int


@dataclass(frozen=True)
class Cage:
    """One policy to test; `start_uid` is what the sacrificial parent becomes first."""

    spec: CageSpec
    start_uid: int | None = None

    def run(self, function: Callable[[int], Any]) -> Any:
        return self.outcome(function).value

    def outcome(self, function: Callable[[int], Any]) -> Outcome:
        return run_below_parent(function, self.spec, self.start_uid)


def run_outside(function: Callable[[int], Any], start_uid: int | None = None) -> Any:
    """Run a function without a cage; it gets the pid of its sacrificial parent."""
    return run_below_parent(function, None, start_uid).value


def run_below_parent(
    function: Callable[[int], Any], spec: CageSpec | None, start_uid: int | None = None
) -> Outcome:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        gc.disable()  # a collection would copy every page of the runner
        os.close(reader)
        _be_the_parent(function, spec, start_uid, writer)
    os.close(writer)
    try:
        data = _read_all(reader)
    except AssertionError:
        kill_tree(parent)
        raise
    finally:
        os.close(reader)
        os.waitpid(parent, 0)
    kind, value, report, status = _decode(data)
    if kind == "error":
        raise AssertionError(f"the function failed inside:\n{value}")
    return Outcome(value, report, status)


def attempt(action: Callable[[], Any]) -> Any:
    """Return what an action returns, or how it was refused."""
    try:
        return action()
    except OSError as exc:
        return Refused(errno.errorcode.get(exc.errno or 0, str(exc)))


def attempts(actions: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Try every action; say 'ok' for those that raise nothing."""
    answers = {}
    for name, action in actions.items():
        value = attempt(action)
        answers[name] = value.errno_name if isinstance(value, Refused) else "ok"
    return answers


def open_folder() -> str:
    """Make a folder that every user can pass through and that pytest does not hide."""
    folder = tempfile.mkdtemp(prefix="hotloop-test-")
    os.chmod(folder, 0o755)
    return folder


def spec_for(
    tier: str, work_dir: str, *, drop_uid: int | None = None, limits: Limits | None = None
) -> CageSpec:
    """Return a cage with all default paths."""
    paths = default_paths(None)
    return CageSpec(tier, work_dir, paths.read, paths.write, None, drop_uid, limits or Limits())


def system_spec(
    tier: str, work_dir: str, *, drop_uid: int | None = None, limits: Limits | None = None
) -> CageSpec:
    """Return a cage without this interpreter's paths, which other users may be unable to read."""
    read = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/zero", "/dev/urandom")
    return CageSpec(tier, work_dir, read, ("/dev/null",), None, drop_uid, limits or Limits())


def _be_the_parent(
    function: Callable[[int], Any], spec: CageSpec | None, start_uid: int | None, writer: int
) -> None:
    try:
        if start_uid is not None:
            os.setgroups([])
            os.setresgid(start_uid, start_uid, start_uid)
            os.setresuid(start_uid, start_uid, start_uid)
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        pid = os.getpid()
        child = os.fork()
        if child == 0:
            _be_the_child(function, spec, pid, writer)
        _, status = os.waitpid(child, 0)
        os.write(writer, pickle.dumps(("status", None, None, status)))
    finally:
        os._exit(0)


def _be_the_child(
    function: Callable[[int], Any], spec: CageSpec | None, parent: int, writer: int
) -> None:
    code = 70
    try:
        report = None
        if spec is not None:
            report = enter(spec, keep_fds=(0, 1, 2, writer), parent_pid=parent)
        value = attempt(lambda: function(parent))
        os.write(writer, pickle.dumps(("value", value, report, 0)))
        code = 0
    except BaseException:  # noqa: BLE001  whatever it is, the runner must hear of it
        os.write(writer, pickle.dumps(("error", traceback.format_exc(), None, 0)))
    finally:
        os._exit(code)


def _read_all(reader: int) -> bytes:
    """Read until the end, or until nothing came for long."""
    data = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while poll.poll(TIMEOUT_S * 1000):
        part = os.read(reader, 1 << 16)
        if not part:
            return data
        data += part
    raise AssertionError(f"no answer within {TIMEOUT_S} s; got {data[:200]!r}")


def _decode(data: bytes) -> tuple[str, Any, Any, int]:
    """Join the child's answer and the parent's wait status."""
    answer: tuple[str, Any, Any] = ("value", None, None)
    status = -1
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        kind, value, report, number = pickle.load(stream)
        if kind == "status":
            status = number
        else:
            answer = (kind, value, report)
    return (*answer, status)
