"""hotloop's command line on a machine that is not there: the judge is a fake, all else is real.

    python -m benchmarks.fake_machine

reads orders, one JSON object a line, `{"args": [...], "cwd": DIR, "out": FILE, "env": {...}}`, and
forks a process for each, so that a command costs no imports. It answers `{"pid": N}`, and when the
process has ended `{"status": N}`, negative for a signal. `FakeMachine` is its client. The process's
stdout and stderr go to FILE. Verdicts come from the kernel's digest and measure nothing.

Faults are asked for in `env`: `HOTLOOP_CRASH_AT=NAME:N`, or `FAULT_AT=NAME:N` with `FAULT` one of
`FAULTS`. `FILE_SYSTEM` is a `statfs.f_type` that the run's folder is taken to have, `JUDGE_S` how
long a verification takes, `JUDGE=process` has it in processes of its own, `HEARTBEAT_S` and
`SNAPSHOT_S` are how often a judge is asked for a sign of life and the journal is copied, `REACHED`
is a file that gets the names of the points that were reached, and
`VERIFIED` one that gets what was verified.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fake_judge import digest_verdict
from hotloop import api
from hotloop.cli import main as cli
from hotloop.core import kill_points
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store, Verifier
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine import Parts
from hotloop.engine.evaluation import HEARTBEAT_S
from hotloop.plan import SearchPlan
from hotloop.sandbox.processes import become_subreaper
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import FakeVerifier
from hotloop.verify.local import LocalVerifier
from hotloop.verify.transport import JudgeProcess

ROOT = Path(__file__).parents[1]
HOUR_S = 3600.0
ORPHANS_S = 5.0
SNAPSHOT_S = 0.1
"""As often as a run of a second needs it."""


class DigestVerifier:
    """Judges a kernel by its digest, in this process: the same verdict in every process."""

    def __init__(self, device: str, environ: Mapping[str, str]) -> None:
        self._fake = FakeVerifier(device=device)
        self._seconds = float(environ.get("JUDGE_S", "0"))
        self._log = environ.get("VERIFIED")

    def load(self, problem: Problem) -> ProblemInfo:
        """Return facts about nothing."""
        return self._fake.load(problem)

    def build(self, candidate: Candidate) -> None:
        """Do nothing."""

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Return what the digest says."""
        if self._log:
            _append(self._log, f"{tier.value} {candidate.id}")
        time.sleep(self._seconds)
        return digest_verdict(candidate, tier, self._fake.device)

    def close(self) -> None:
        """Do nothing: there is no process to end."""


class ProcessVerifier(LocalVerifier):
    """The real coordinator's side of a judge; the process behind it is `benchmarks.fake_judge`."""

    def __init__(self, device: str, environ: Mapping[str, str]) -> None:
        super().__init__(device)
        self.silence_s, self._seconds = 3.0, environ.get("JUDGE_S", "0")

    def _choose_tier(self, min_isolation: str) -> str:
        return min_isolation  # nothing is run that would need a cage

    def _spawn(self) -> JudgeProcess:
        words = [sys.executable, "-m", "benchmarks.fake_judge", self._seconds]
        env = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
        return JudgeProcess(words, env, subprocess.DEVNULL)


def fill_disk() -> None:
    """Leave no free byte on the file system of the current folder."""
    with open("ballast", "ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass


def make_read_only() -> None:
    """Let nothing be written in the current folder; it has to be a mount of this name space."""
    subprocess.run(["mount", "-o", "remount,ro", "."], check=True)


def exhaust_descriptors() -> None:
    """Let no further file be opened."""
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, lowest_free))


def _jump(seconds: float) -> None:
    real = time.time
    time.time = lambda: real() + seconds


FAULTS: Mapping[str, Callable[[], None]] = {
    "full": fill_disk,
    "read-only": make_read_only,
    "no-descriptors": exhaust_descriptors,
    "an-hour-on": partial(_jump, HOUR_S),
    "an-hour-back": partial(_jump, -HOUR_S),
}


def run(args: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carry out one hotloop command with the fake judge; return its exit code."""

    def open_verifier(plan: SearchPlan, store: Store) -> Verifier:
        judge = ProcessVerifier if environ.get("JUDGE") == "process" else DigestVerifier
        return judge(plan.spec.device, environ)

    api.open_verifier = open_verifier
    api.Parts = partial(Parts, heartbeat_s=float(environ.get("HEARTBEAT_S", HEARTBEAT_S)))
    options: dict[str, Any] = {"snapshot_every_s": float(environ.get("SNAPSHOT_S", SNAPSHOT_S))}
    if magic := environ.get("FILE_SYSTEM"):
        options["probe"] = lambda folder: int(magic)
    api.SqliteStore = partial(SqliteStore, **options)
    acts: list[Callable[[str], None]] = []
    if reached := environ.get("REACHED"):
        acts.append(lambda name: _append(reached, name))
    if crash := environ.get(kill_points.VARIABLE):
        acts.append(kill_points.at(crash, kill_points.die))
    if wanted := environ.get("FAULT_AT"):
        acts.append(kill_points.at(wanted, FAULTS[environ["FAULT"]]))
    kill_points.act_with((lambda name: [act(name) for act in acts]) if acts else None)
    return cli.main(args)


def _append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


class FakeMachine:
    """Runs commands on the fake machine, one at a time; a context manager."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        """Start it behind a command such as `unshare`."""
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "benchmarks.fake_machine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    @property
    def pid(self) -> int:
        """Its process, the parent of all commands."""
        return self._process.pid

    @property
    def root(self) -> Path:
        """Where the files lie that it sees, mounts of its own included."""
        return Path(f"/proc/{self.pid}/root")

    def __enter__(self) -> FakeMachine:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()

    @contextmanager
    def started(self, *args: object, cwd: Path, **env: object) -> Iterator[Command]:
        """Start `hotloop ARGS` in a folder; it has ended after the block."""
        order = {
            "args": [str(arg) for arg in args],
            "cwd": str(cwd),
            "out": f"{cwd}.{self.pid}.out",
            "env": {name: str(value) for name, value in env.items()},
        }
        self._tell(order)
        command = Command(self._hear()["pid"])
        try:
            yield command
        finally:
            command.status = self._hear()["status"]
            command.close()
        command.output = Path(order["out"]).read_text(encoding="utf-8", errors="replace")

    def run(self, *args: object, cwd: Path, **env: object) -> Command:
        """Run `hotloop ARGS` to its end."""
        with self.started(*args, cwd=cwd, **env) as command:
            pass
        return command

    def _tell(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


class Command:
    """One command; `status` and `output` are known after its end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.output = ""
        # A descriptor of the process: its number may be another one's as soon as it has ended.
        self._handle = os.pidfd_open(pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end for so many seconds; return whether it has ended."""
        return bool(select.select([self._handle], [], [], timeout_s)[0])

    def close(self) -> None:
        """Let go of the process."""
        os.close(self._handle)


def main() -> None:
    import openai  # noqa: F401  the command imports it when it needs it: once here, not in each fork

    become_subreaper()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order)
        print(json.dumps({"pid": pid}), flush=True)
        _, status = os.waitpid(pid, 0)
        _reap_orphans()
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


def _reap_orphans() -> None:
    """Take back what the command left: its judge ends by itself, a moment after it."""
    deadline_s = time.monotonic() + ORPHANS_S
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while time.monotonic() < deadline_s:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                time.sleep(0.005)


def _become(order: Mapping[str, Any]) -> None:
    """Carry out an order in this forked process, and end it."""
    code = 70  # what an exception that nobody expected leaves
    try:
        out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(order["cwd"])
        os.environ.update(order["env"])
        code = run(order["args"], order["env"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  nothing may come back into the parent's loop
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
