"""SshVerifier: a judge on another machine, behind the user's own ssh.

The same frames as for a local judge travel on the standard streams of `ssh HOST python -m
hotloop.worker.judge`. Nothing of this machine's environment and no agent goes along. The static
stage stays here; the cage is the other machine's to give, so its judge refuses a tier that it
cannot give. How a connection failed is told from exit codes: 255 is ssh's own, 126 and 127 are the
shell's.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.wire import PROTOCOL_VERSION
from hotloop.errors import ConfigError, InfraError, ToolMissing, WorkerDied
from hotloop.verify.isolation_choice import check_tier_name
from hotloop.verify.local import LocalVerifier
from hotloop.verify.transport import JudgeProcess

DEFAULT_PYTHON = "python3"
CONNECT_S = 10
ALIVE_S = 15
"""A connection that is silent for four times as long is dead, although no end of it came."""
_SSH_FAILED = 255
_SHELL_FAILED = (126, 127)
_SAID_CHARACTERS = 300
_SAID_BYTES = 8192

_KEPT_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "SSH_AUTH_SOCK")
"""What the ssh client gets of our environment: where the user's keys are; no API key passes."""

_OPTIONS = (
    "-a", "-x", "-T",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={CONNECT_S}",
    "-o", f"ServerAliveInterval={ALIVE_S}",
    "-o", "ServerAliveCountMax=4",
    "-o", "ClearAllForwardings=yes",
    "-o", "PermitLocalCommand=no",
)  # fmt: skip

_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<python>/[^\x00-\x1f]*)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlace:
    """Where kernels are verified."""

    kind: str
    """`local`, `bundle` or `ssh`."""
    host: str | None = None
    user: str | None = None
    port: int | None = None
    """None: what the user's ssh configuration says, or 22."""
    python: str = DEFAULT_PYTHON
    """The Python there that has hotloop installed."""

    @property
    def is_local(self) -> bool:
        """Whether the judge runs on this machine."""
        return self.kind == "local"

    @property
    def is_bundle(self) -> bool:
        """Whether files are carried to the judge."""
        return self.kind == "bundle"

    @property
    def target(self) -> str:
        """`user@host`, as ssh takes it."""
        host = (self.host or "").strip("[]")
        return host if self.user is None else f"{self.user}@{host}"

    def __str__(self) -> str:
        """The text that `parse_judge` reads."""
        if self.host is None:
            return self.kind
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        python = "" if self.python == DEFAULT_PYTHON else self.python
        return f"ssh://{user}{self.host}{port}{python}"


def parse_judge(text: str) -> JudgePlace:
    """Read `local`, `bundle`, or `ssh://[user@]host[:port][/path/to/python]`.

    Raises:
        ConfigError: it is none of them.
    """
    if text in ("local", "bundle"):
        return JudgePlace(kind=text)
    found = _ADDRESS.fullmatch(text)
    port = None if found is None or found["port"] is None else int(found["port"])
    if found is None or not (port is None or 1 <= port <= 65535):
        raise ConfigError(
            "--judge: expected local, bundle or ssh://[user@]host[:port][/path/to/python], "
            f"got {text!r}"
        )
    python = found["python"] if found["python"] not in (None, "/") else DEFAULT_PYTHON
    return JudgePlace(kind="ssh", host=found["host"], user=found["user"], port=port, python=python)


class SshVerifier(LocalVerifier):
    """Implements `core.protocols.Verifier` with a judge on another machine."""

    def __init__(
        self,
        place: JudgePlace,
        device: str,
        *,
        min_isolation: str = "T1",
        log_path: Path | None = None,
        profile: bool = False,
        config: Path | None = None,
    ) -> None:
        """Connect with the first `load`, not before.

        Args:
            place: host and Python.
            device: `cuda` or `cpu`, there.
            min_isolation: `T0`, `T1` or `T2`; the judge there refuses to give less.
            log_path: file that ssh's and the judge's standard error is appended to.
            profile: see `LocalVerifier`.
            config: configuration file for ssh instead of the user's own.

        Raises:
            ConfigError: the tier's name is unknown.
        """
        super().__init__(device, min_isolation=min_isolation, profile=profile)
        self._place = place
        self._config = config
        self._stderr = _open_stderr(log_path)
        self._log = self._stderr  # closed by `close`
        self._stderr_start = 0
        self._process: JudgeProcess | None = None
        self._is_greeted = False

    def load(
        self,
        problem: Problem,
        *,
        incumbent_ms: float | None = None,
        ahead: Sequence[Candidate] = (),
    ) -> ProblemInfo:
        """Connect, start a judge there, and load the problem.

        Raises:
            InfraError: there is no connection, or no fitting hotloop there.
        """
        try:
            return super().load(problem, incumbent_ms=incumbent_ms, ahead=ahead)
        except ValueError as exc:
            raise self._other_version(f"it answered what is no ProblemInfo here ({exc})") from exc

    def _choose_tier(self, min_isolation: str) -> str:
        check_tier_name(min_isolation)  # what can be had is the other machine's to say
        return min_isolation

    def _spawn(self) -> JudgeProcess:
        self._stderr_start = os.fstat(self._stderr.fileno()).st_size
        self._is_greeted = False
        env = {k: os.environ[k] for k in _KEPT_VARIABLES if k in os.environ}
        try:
            self._process = JudgeProcess(self._command(), env, self._log)
        except FileNotFoundError:
            raise ToolMissing(
                f"{self._place}: expected the program ssh on this machine, it is not installed; "
                "install OpenSSH's client"
            ) from None
        return self._process

    def _command(self) -> list[str]:
        command = ["ssh", *_OPTIONS]
        if self._config is not None:
            command += ["-F", str(self._config)]
        if self._place.port is not None:
            command += ["-p", str(self._place.port)]
        there = [self._place.python, "-P", "-m", "hotloop.worker.judge"]
        return [*command, "--", self._place.target, shlex.join(there)]

    def _start(self) -> None:
        try:
            super()._start()
        except WorkerDied as exc:
            if self._is_greeted or self._process is None or self._is_aborted:
                raise
            raise self._why_not(self._process.exit_code()) from exc

    def _greeted(self, hello: Mapping[str, Any]) -> None:
        if hello.get("protocol") != PROTOCOL_VERSION:
            told = f"it speaks protocol {hello.get('protocol')}, this one {PROTOCOL_VERSION}"
            raise self._other_version(told)
        self._is_greeted = True
        super()._greeted(hello)

    def _other_version(self, told: str) -> InfraError:
        return InfraError(
            f"{self._place}: another hotloop is installed there: {told}; install the same version "
            "on both machines"
        )

    def _why_not(self, code: int | None) -> InfraError:
        """Return what to say of a connection that ended before the judge greeted."""
        place, python, said = self._place, self._place.python, self._last_words()
        port = "" if place.port is None else f"-p {place.port} "
        if code == _SSH_FAILED:
            return InfraError(
                f"{place}: no connection: {said}; make `ssh -o BatchMode=yes {port}{place.target} "
                "true` work without a question, then run again"
            )
        if code in _SHELL_FAILED:
            return InfraError(
                f"{place}: {python} cannot be run there: {said}; name the Python that has hotloop: "
                f"ssh://{place.target}/path/to/python"
            )
        if code is None or code < 0:
            return InfraError(
                f"{place}: something else than hotloop's judge answered ({said}); a shell there "
                "that prints at its start must not do so without a terminal"
            )
        return InfraError(
            f"{place}: the judge did not start there ({python} ended with code {code}): {said}; "
            "install the same hotloop for that Python, with torch and triton"
        )

    def _last_words(self) -> str:
        """Return the last line that ssh or the judge wrote to stderr in this connection."""
        fd = self._stderr.fileno()
        start = max(self._stderr_start, os.fstat(fd).st_size - _SAID_BYTES)
        text = os.pread(fd, _SAID_BYTES, start).decode("utf-8", "replace")
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        return lines[-1][:_SAID_CHARACTERS] if lines else "it said nothing"


def _open_stderr(log_path: Path | None) -> IO[bytes]:
    """Return the file that takes what ssh says, readable: the log, or one without a name."""
    return tempfile.TemporaryFile() if log_path is None else log_path.open("a+b")
