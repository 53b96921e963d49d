"""A folder that an agent or a person answers: `dir:PATH`.

`ID.prompt.md` is answered by `ID.reply.md`, written under another name and renamed. The id names
the call and the prompt's content, so that a reply to anything else is never taken for this one's,
and a reply that is already there counts when the same run goes on. A prompt that is outdated before
anybody has answered it becomes `ID.withdrawn.md`; the one in its place has an id of its own.
"""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path

from hotloop.core import kill_points
from hotloop.core.model import CallKey, Finish, Prompt, Reply
from hotloop.errors import ConfigError, DeadlinePassed, EndpointDown, Pending
from hotloop.llm.cancelling import CallsUnderWay, Token
from hotloop.llm.reply_file import MAX_REPLY_BYTES, Look, look
from hotloop.llm.retry import Deadline
from hotloop.llm.thinking import split_thinking

__all__ = ["MAX_REPLY_BYTES", "DirectoryModel", "prompt_text", "write_whole"]

POLL_S = 0.2
STAYS_S = 1.0
"""A file that is no reply is told of when it has stood this long: somebody may be writing it."""
_PROMPT, _REPLY, _WITHDRAWN = ".prompt.md", ".reply.md", ".withdrawn.md"
WHO_FILE = "model.txt"
"""One line, if it is there: who answers in this folder. Kept with each reply."""

_GUIDE_FILE = "README.md"
_GUIDE = """\
# Prompts to be answered

For each `ID.prompt.md` write the answer to a file of another name in this folder, then rename it
to `ID.reply.md` (so that nobody reads half an answer). Put the code into one fenced block. Who
answers may say so in one line of `model.txt`. A reply is UTF-8 text of at most 4 MB and no link;
any other file there is named where the run prints, and its prompt stays open.

An ID begins with the problem's id, then says which attempt it is of. The prompt holds the
reference; a suite with `--no-wait` ends with a list of its open prompts and their problems' names.

`ID.withdrawn.md` was a prompt and is outdated: its first line names the prompt to be answered
instead, and a reply to it is not read.
"""


class DirectoryModel:
    """Writes each prompt to a folder and awaits the reply there."""

    paid = False

    def __init__(self, folder: Path, *, wait: bool = True, poll_s: float = POLL_S) -> None:
        """Create the folder where it does not exist.

        Args:
            folder: where prompts and replies lie.
            wait: whether `complete` waits; else it raises `Pending` when there is no reply yet.
            poll_s: seconds between two looks.

        Raises:
            ConfigError: it is no folder, or cannot be written.
        """
        self.name = f"dir:{folder}"
        self._folder = folder
        self._wait = wait
        self._poll_s = poll_s
        self._under_way = CallsUnderWay()
        self._notices: deque[str] = deque()
        self._noticed: set[str] = set()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / _GUIDE_FILE).exists():
                write_whole(folder / _GUIDE_FILE, _GUIDE)
        except OSError as exc:
            raise ConfigError(
                f"{self.name}: expected a folder that can be written, got {exc.strerror}; "
                "make it one or name another"
            ) from None

    def __repr__(self) -> str:
        return f"DirectoryModel({str(self._folder)!r})"

    def cancel(self, key: CallKey) -> None:
        """Stop waiting for a reply; its prompt stays."""
        self._under_way.cancel(key)

    def close(self) -> None:
        """Stop waiting for replies; prompts and replies stay. Idempotent."""
        self._under_way.close()

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Write the prompt and return the reply to it.

        A file that cannot be taken for a reply (empty, no text, too long, a link) is none: its
        prompt stays open, and `notice`, or `Pending.fault`, says what is wrong with it.

        Raises:
            Pending: there is none yet, and this model does not wait.
            DeadlinePassed: none came in time.
            EndpointDown: the folder has vanished or cannot be used any more.
            Cancelled: the call was given up.
        """
        started = time.monotonic()
        call_id = _call_id(key, prompt)
        reply_path = self._path(call_id, _REPLY)
        found = self._look(reply_path)
        text = found.text
        if text is None:
            prompt_path = self._put(call_id, prompt)
            if not self._wait:
                raise Pending(
                    f"{self.name}: {prompt_path.name} awaits {reply_path.name}; answer it and "
                    "give the same command again",
                    waiting=(str(prompt_path),),
                    notice=self._told_late(key),
                    fault=self._named(found.fault),
                )
            with self._under_way.call(key) as token:
                text = self._await(reply_path, key, Deadline(deadline_s), token)
        reasoning, answer = split_thinking(text)
        return Reply(
            text=answer,
            reasoning=reasoning,
            finish=Finish.UNKNOWN,
            model=self._who(),
            seconds=time.monotonic() - started,
            raw={"file": reply_path.name},
        )

    def withdraw(self, prompt: Prompt, key: CallKey, successor: Prompt) -> bool:
        """Take a prompt back that nobody has answered: it is renamed, and the successor is there.

        A reply to it that comes later is not read, and `notice`, or that of `Pending`, says so.

        Returns:
            False where a reply is there, or is just being written: the prompt stays.

        Raises:
            EndpointDown: the folder has vanished or cannot be used any more.
        """
        old, new = _call_id(key, prompt), _call_id(key, successor)
        reply_path, prompt_path = self._path(old, _REPLY), self._path(old, _PROMPT)
        withdrawn_path = self._path(old, _WITHDRAWN)
        if os.path.lexists(reply_path):
            return False
        line = f"<!-- withdrawn: answer {new}{_PROMPT} instead; a reply to this is not read -->"
        self._write(withdrawn_path, f"{line}\n\n{prompt_text(prompt)}")
        prompt_path.unlink(missing_ok=True)
        kill_points.reach("prompt-withdrawn")
        if not os.path.lexists(reply_path):
            self._put(new, successor)
            kill_points.reach("successor-put")
            return True
        # It was answered at this very moment.
        self._write(prompt_path, prompt_text(prompt))
        withdrawn_path.unlink(missing_ok=True)
        return False

    def holds(self, prompt: Prompt, key: CallKey) -> bool:
        """Return whether a prompt lies in the folder, or a reply to it does."""
        call_id = _call_id(key, prompt)
        return any(os.path.lexists(self._path(call_id, suffix)) for suffix in (_PROMPT, _REPLY))

    def notice(self) -> str:
        """Return a line that is to be told while calls wait, each one once; empty: none.

        Safe to call from another thread than those that wait.
        """
        return self._notices.popleft() if self._notices else ""

    def _await(self, path: Path, key: CallKey, deadline: Deadline, token: Token) -> str:
        fault, since_s = "", time.monotonic()
        while (found := self._look(path)).text is None:
            if found.fault != fault:
                fault, since_s = found.fault, time.monotonic()
            if time.monotonic() - since_s >= STAYS_S:
                self._tell(self._named(fault))
            self._tell(self._told_late(key))
            if deadline.has_passed():
                raise DeadlinePassed(
                    f"{self.name}: no {path.name} within the {deadline.seconds:.1f} s it had"
                )
            token.sleep(deadline.within(self._poll_s))
        return found.text

    def _tell(self, line: str) -> None:
        if line and line not in self._noticed:
            self._noticed.add(line)
            self._notices.append(line)

    def _named(self, fault: str) -> str:
        return f"{self.name}: {fault}" if fault else ""

    def _look(self, path: Path) -> Look:
        try:
            return look(path)
        except FileNotFoundError:
            if not self._folder.is_dir():
                raise self._vanished() from None
            return Look(None)
        except OSError as exc:
            raise EndpointDown(f"{self.name}: {path.name} cannot be read: {exc.strerror}") from None

    def _told_late(self, key: CallKey) -> str:
        """Return a line on replies that came after their prompt was withdrawn, if some did."""
        withdrawn = sorted(self._folder.glob(f"{key.text}-????????{_WITHDRAWN}"))
        replies = [path.name.removesuffix(_WITHDRAWN) + _REPLY for path in withdrawn]
        late = [name for name in replies if os.path.lexists(self._folder / name)]
        if not late:
            return ""
        return (
            f"{self.name}: {', '.join(late)} is not read: its prompt was withdrawn before it came"
        )

    def _path(self, call_id: str, suffix: str) -> Path:
        return self._folder / f"{call_id}{suffix}"

    def _put(self, call_id: str, prompt: Prompt) -> Path:
        """Have a prompt lie in the folder, also one that was withdrawn; return its path."""
        path = self._path(call_id, _PROMPT)
        if not path.exists():
            self._write(path, prompt_text(prompt))
        self._path(call_id, _WITHDRAWN).unlink(missing_ok=True)
        return path

    def _write(self, path: Path, text: str) -> None:
        try:
            write_whole(path, text)
        except OSError as exc:
            if not self._folder.is_dir():
                raise self._vanished() from None
            raise EndpointDown(
                f"{self.name}: {path.name} cannot be written: {exc.strerror}"
            ) from None

    def _who(self) -> str:
        path = self._folder / WHO_FILE
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            # Nobody has to say who answers.
            return self.name
        return lines[0].strip() if lines and lines[0].strip() else self.name

    def _vanished(self) -> EndpointDown:
        return EndpointDown(
            f"{self.name}: the folder is gone; bring it back and give the same command again"
        )


def _call_id(key: CallKey, prompt: Prompt) -> str:
    return f"{key.text}-{prompt.id[:8]}"


def prompt_text(prompt: Prompt) -> str:
    """Return a prompt as Markdown: a single message as it is, several with a line for each role."""
    if len(prompt.messages) == 1:
        return prompt.messages[0].text
    return "\n\n".join(f"<!-- {m.role.value} -->\n\n{m.text}" for m in prompt.messages)


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and rename it, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
