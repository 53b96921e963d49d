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
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError
from hotloop.llm.directory import MAX_REPLY_BYTES, WHO_FILE, write_whole
from hotloop.store.sqlite import JOURNAL_FILE

AGENT = "agent"
"""The model of a run whose kernels the agent writes."""
STOP_S = 30.0
"""How long a run may take to note what it has and to end its judge, once it is told to."""
POLL_S = 0.2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_CALL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_LAST_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt that awaits the agent's reply."""

    id: str
    text: str


class AgentRuns:
    """The runs below one folder of a workspace."""

    def __init__(self, workspace: Workspace, *, who: str = "an agent over MCP") -> None:
        """Start nothing.

        Args:
            workspace: runs lie in `runs/` of it.
            who: what the journal says of who answers.
        """
        self._workspace = workspace
        self._who = who
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, name: str, problem: str, options: Mapping[str, str | None]) -> Path:
        """Start a run, or go on with it, and return its folder.

        Args:
            name: of its folder below `runs/`.
            problem: path or name, as the workspace takes it.
            options: long options of `hotloop optimize` without dashes; None is left out. The model
                `agent` stands for replies through `reply`.

        Raises:
            ConfigError: a name or path is wrong, or the run is going on.
        """
        folder = self._folder(name)
        if self.is_running(folder):
            raise ConfigError(f"the run {name} is going on; wait for it, stop it, or name another")
        words = [sys.executable, "-m", "hotloop", "optimize", problem, "--out", str(folder)]
        for option, value in options.items():
            if option == "model" and value == AGENT:
                value = f"dir:{self._answers(folder)}"
            words += [f"--{option}", value] if value is not None else []
        folder.parent.mkdir(parents=True, exist_ok=True)
        if options.get("model") == AGENT:
            self._answers(folder).mkdir(exist_ok=True)
            write_whole(self._answers(folder) / WHO_FILE, self._who + "\n")
        with open(self._log(folder), "wb") as log:
            process = subprocess.Popen(
                words,
                cwd=self._workspace.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the agent is not for the run
            )
        with self._lock:
            self._processes[folder] = process
        return folder

    def names(self) -> list[str]:
        """Return the runs that there are, by name."""
        home = self._workspace.root / "runs"
        found = {p.parent.name for p in home.glob(f"*/{JOURNAL_FILE}")}
        with self._lock:
            found |= {folder.name for folder in self._processes}
        return sorted(found)

    def find(self, name: str) -> Path:
        """Return the folder of a run that exists.

        Raises:
            ConfigError: there is none of that name.
        """
        folder = self._folder(name)
        if name not in self.names():
            known = ", ".join(self.names()) or "none yet"
            raise ConfigError(f"there is no run {name}; there are: {known}")
        return folder

    def is_running(self, folder: Path) -> bool:
        """Whether a process of ours works on it."""
        with self._lock:
            process = self._processes.get(folder)
        return process is not None and process.poll() is None

    def said(self, folder: Path) -> str:
        """Return the end of what the run's process printed."""
        try:
            text = self._log(folder).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return text[-_LAST_CHARS:].strip()

    def question(self, folder: Path, wait_s: float) -> Question | None:
        """Return the oldest prompt without a reply; None when there is none within `wait_s`."""
        end_s = time.monotonic() + wait_s
        while True:
            was_running = self.is_running(folder)
            for path in self._open_prompts(folder):
                return Question(path.name.removesuffix(".prompt.md"), path.read_text("utf-8"))
            if not was_running or time.monotonic() >= end_s:
                return None
            time.sleep(POLL_S)

    def reply(self, folder: Path, question: str, text: str) -> None:
        """Answer a prompt.

        Raises:
            ConfigError: there is no such prompt, it is answered, or the reply is empty or too long.
        """
        prompt = self._answers(folder) / f"{question}.prompt.md"
        reply = self._answers(folder) / f"{question}.reply.md"
        if not _CALL.fullmatch(question) or not prompt.is_file():
            raise ConfigError(f"{folder.name} asked nothing called {question[:80]!r}")
        if reply.exists():
            raise ConfigError(f"{question} is answered already; ask for the next prompt")
        if not text.strip() or len(text.encode()) > MAX_REPLY_BYTES:
            raise ConfigError(f"expected a reply of 1 to {MAX_REPLY_BYTES:,} bytes")
        write_whole(reply, text)

    def stop(self, folder: Path, *, within_s: float = STOP_S) -> None:
        """Tell a run to end, as Ctrl-C does, and wait for it; what it has is kept.

        It goes on with the same options.
        """
        with self._lock:
            process = self._processes.get(folder)
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        self._wait(folder, within_s)

    def close(self) -> None:
        """Stop all runs of this server; each goes on with the same options."""
        with self._lock:
            processes = dict(self._processes)
        for process in processes.values():  # all at once: whoever ends us may not wait for long
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for folder in processes:
            self._wait(folder, STOP_S)

    def _wait(self, folder: Path, within_s: float) -> None:
        process = self._processes[folder]
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _open_prompts(self, folder: Path) -> list[Path]:
        prompts = self._answers(folder).glob("*.prompt.md")
        waiting = [p for p in prompts if not _reply_of(p).exists()]
        return sorted(waiting, key=lambda path: path.stat().st_mtime)

    def _folder(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"a run's name is letters, digits, '.', '_' and '-', at most 80, got {name[:80]!r}"
            )
        return self._workspace.inside(f"runs/{name}")

    @staticmethod
    def _answers(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}.answers")

    @staticmethod
    def _log(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}.log")


def _reply_of(prompt: Path) -> Path:
    return prompt.with_name(prompt.name.removesuffix(".prompt.md") + ".reply.md")
