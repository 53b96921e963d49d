"""Budgeted runs that an agent starts, answers and stops.

A run is `hotloop optimize` in a process of its own, as if somebody had typed it: the journal, the
budget and what is held out are those of any run. Where the agent itself writes the kernels, the
run's model is `dir:`: its prompts lie in a folder, and the agent's replies are put beside them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.agent.asked import AGENT
from hotloop.agent.plain_files import (
    create_plain,
    read_plain,
    refuse_link,
    refuse_links,
    write_plain,
)
from hotloop.agent.run_holder import held_since_ns, holder_of, stop_holder
from hotloop.agent.run_process import PROGRAM, launch, release
from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError
from hotloop.llm.directory import MAX_REPLY_BYTES, WHO_FILE
from hotloop.store.sqlite import JOURNAL_FILE

MAX_RUNNING = 4
"""Runs at a time: each has a judge, and they share the machine."""
STOP_S = 30.0
"""How long a run may take to note what it has and to end its judge, once it is told to."""
BEGIN_S = 20.0
"""How long a run is watched for a complaint about its options."""
SETTLE_S = 1.0
"""From taking an existing folder to finding that it is another run's."""
POLL_S = 0.2
BEGIN_POLL_S = 0.05
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_CALL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_LAST_BYTES = 2000
_GOES_ON = (0, 1)
"""Exit codes of a run that did what it was asked to."""


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt that awaits the agent's reply."""

    id: str
    text: str


class AgentRuns:
    """The runs below one folder of a workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        who: str = "an agent over MCP",
        program: Sequence[str] = PROGRAM,
    ) -> None:
        """Start nothing.

        Args:
            workspace: runs lie in `runs/` of it.
            who: what the journal says of who answers.
            program: what takes the words of `hotloop`'s command line.
        """
        self._workspace = workspace
        self._who = who
        self._program = tuple(program)
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, name: str, problem: str, options: Mapping[str, str | None]) -> Path:
        """Start a run, or go on with it, wait until it has begun, and return its folder.

        Args:
            name: of its folder below `runs/`.
            problem: path or name, as the workspace takes it.
            options: long options of `hotloop optimize` without dashes; None is left out. The model
                `agent` stands for replies through `reply`.

        Raises:
            ConfigError: a name, path or option is wrong, a link is in the way, the run is going on,
                or too many are.
        """
        folder, answers = self._folder(name), self._answers(name)
        words = ["optimize", "--out", str(folder)]
        for option, value in options.items():
            if option == "model" and value == AGENT:
                value = f"dir:{answers}"
            words += [f"--{option}", value] if value is not None else []
        words += ["--", problem]  # a file may have an option's name
        refuse_links(folder)
        refuse_links(answers)
        before = held_since_ns(folder)
        with self._lock:
            self._check_may_start(folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            if options.get("model") == AGENT:
                answers.mkdir(exist_ok=True)
                write_plain(answers / WHO_FILE, self._who + "\n")
            with create_plain(self._log(name)) as log:
                process = launch([*self._program, *words], folder=self._workspace.root, log=log)
            if folder in self._processes:
                release(self._processes[folder])
            self._processes[folder] = process
        self._await_begin(folder, process, before)
        return folder

    def names(self) -> list[str]:
        """Return the runs that there are, by name."""
        found = {p.parent.name for p in self._home().glob(f"*/{JOURNAL_FILE}")}
        with self._lock:
            found |= {folder.name for folder in self._processes}
        return sorted(found)

    def find(self, name: str) -> Path:
        """Return the folder of a run that exists.

        Raises:
            ConfigError: there is none of that name, or a link is in it.
        """
        folder = self._folder(name)
        if name not in self.names():
            known = ", ".join(self.names()) or "none yet"
            raise ConfigError(f"there is no run {name}; there are: {known}")
        refuse_links(folder)
        return folder

    def is_running(self, folder: Path) -> bool:
        """Whether a process works on it: ours, another server's, or one of a terminal."""
        with self._lock:
            is_ours = self._is_ours(folder)
        return is_ours or holder_of(folder) is not None

    def said(self, folder: Path) -> str:
        """Return the end of what the run's process printed."""
        try:
            return read_plain(self._log(folder.name), _LAST_BYTES, from_end=True).strip()
        except OSError:
            return ""

    def question(self, folder: Path, wait_s: float) -> Question | None:
        """Return the oldest prompt without a reply.

        None when there is none within `wait_s`, or when the run is not going on: nobody would read
        a reply.
        """
        end_s = time.monotonic() + wait_s
        while self.is_running(folder):
            for path in self._open_prompts(folder):
                text = read_plain(path, MAX_REPLY_BYTES)
                return Question(path.name.removesuffix(".prompt.md"), text)
            if time.monotonic() >= end_s:
                return None
            time.sleep(POLL_S)
        return None

    def reply(self, folder: Path, question: str, text: str) -> None:
        """Answer a prompt.

        Raises:
            ConfigError: the run is not going on, there is no such prompt, it is answered, or the
                reply is empty or too long.
        """
        if not self.is_running(folder):
            raise ConfigError(
                f"the run {folder.name} has ended and takes no reply; start_run with the same "
                "arguments goes on with it, then ask for the next prompt"
            )
        answers = self._answers(folder.name)
        if not _CALL.fullmatch(question) or not (answers / f"{question}.prompt.md").is_file():
            raise ConfigError(f"{folder.name} asked nothing called {question[:80]!r}")
        reply = answers / f"{question}.reply.md"
        if os.path.lexists(reply):
            raise ConfigError(f"{question} is answered already; ask for the next prompt")
        if not text.strip() or len(text.encode()) > MAX_REPLY_BYTES:
            raise ConfigError(f"expected a reply of 1 to {MAX_REPLY_BYTES:,} bytes")
        write_plain(reply, text)

    def stop(self, folder: Path, *, within_s: float = STOP_S) -> None:
        """Tell a run to end, as Ctrl-C does, and wait for it, whoever started it.

        What it has is kept, and it goes on with the same options.

        Raises:
            ConfigError: it is another server's or a terminal's, and cannot be stopped from here.
        """
        with self._lock:
            process = self._processes.get(folder) if self._is_ours(folder) else None
        if process is None:
            stop_holder(folder, within_s)
        else:
            _stop([process], within_s)

    def close(self) -> None:
        """Stop all runs of this server; each goes on with the same options."""
        with self._lock:
            processes = list(self._processes.values())
        _stop(processes, STOP_S)

    def _is_ours(self, folder: Path) -> bool:
        process = self._processes.get(folder)
        return process is not None and process.poll() is None

    def _check_may_start(self, folder: Path) -> None:
        going = {path for path in self._processes if self._is_ours(path)}
        others = {p.parent for p in self._home().glob(f"*/{JOURNAL_FILE}")} - going
        going |= {path for path in others if holder_of(path) is not None}
        if folder in going:
            raise ConfigError(
                f"the run {folder.name} is going on; wait for it, stop it, or name another"
            )
        if len(going) >= MAX_RUNNING:
            names = ", ".join(sorted(path.name for path in going))
            raise ConfigError(
                f"{MAX_RUNNING} runs are going on, and no more may: {names}; wait for one or stop "
                "one"
            )

    def _await_begin(
        self, folder: Path, process: subprocess.Popen[bytes], before: int | None
    ) -> None:
        """Wait until a run has its folder, or has said why not."""
        end_s = time.monotonic() + BEGIN_S
        while process.poll() is None and time.monotonic() < end_s:
            if held_since_ns(folder) != before and (folder / JOURNAL_FILE).exists():
                end_s = min(end_s, time.monotonic() + (SETTLE_S if before is not None else 0.0))
            time.sleep(BEGIN_POLL_S)
        code = process.poll()
        if code is None or (code in _GOES_ON and (folder / JOURNAL_FILE).exists()):
            return
        with self._lock:
            if self._processes.get(folder) is process:
                del self._processes[folder]
        release(process)
        lines = self.said(folder).splitlines() or [f"it ended with code {code} and said nothing"]
        raise ConfigError(f"the run did not start: {lines[-1].removeprefix('hotloop: ')}")

    def _open_prompts(self, folder: Path) -> list[Path]:
        prompts = self._answers(folder.name).glob("*.prompt.md")
        waiting = [p for p in prompts if not p.is_symlink() and not _reply_of(p).exists()]
        return sorted(waiting, key=lambda path: path.lstat().st_mtime)

    def _home(self) -> Path:
        return self._workspace.inside("runs")

    def _folder(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"a run's name is letters, digits, '.', '_' and '-', at most 80, got {name[:80]!r}"
            )
        return self._beside(name)

    def _answers(self, name: str) -> Path:
        return self._beside(f"{name}.answers")

    def _log(self, name: str) -> Path:
        return self._beside(f"{name}.log")

    def _beside(self, entry: str) -> Path:
        path = self._home() / entry
        refuse_link(path)
        return path


def _stop(processes: Sequence[subprocess.Popen[bytes]], within_s: float) -> None:
    end_s = time.monotonic() + within_s
    for process in processes:  # all at once: whoever ends us may not wait for long
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in processes:
        try:
            process.wait(max(0.0, end_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        release(process)


def _reply_of(prompt: Path) -> Path:
    return prompt.with_name(prompt.name.removesuffix(".prompt.md") + ".reply.md")
