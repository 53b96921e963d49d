"""Prompts of the pilot on their way to whoever answers, and replies on their way back.

Unanswered prompts are copied into batch folders; prompts of one problem go to different batches as
far as possible, so that nobody who answers sees another arm's prompt, or the same one twice.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

PROMPT, REPLY = ".prompt.md", ".reply.md"
GUIDE = """\
# Prompts to be answered

Each `ID.prompt.md` is a question of its own. Answer each as if it were the only one, from its text
alone, and write the answer to `ID.reply.md` in this folder: what the prompt asks for, the code in
one fenced block. Nothing else is read.
"""


@dataclass(slots=True)
class Batch:
    """Prompts for one who answers."""

    folder: Path
    size_bytes: int = 0
    problems: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came back."""

    new: tuple[str, ...]
    missing: tuple[str, ...]
    refused: tuple[str, ...]
    """Files that were not taken, with the reason."""


def unanswered(answers: Path) -> list[Path]:
    """Return the prompts of the answers folder that have no reply."""
    prompts = sorted(answers.glob(f"*{PROMPT}"))
    return [p for p in prompts if not (answers / f"{_id(p)}{REPLY}").exists()]


def hand_out(folder: Path, batches: int) -> list[Batch]:
    """Copy the unanswered prompts into `batch-0` to `batch-(K-1)`; return the batches.

    Raises:
        ValueError: a reply lies in a batch folder and was not collected.
    """
    if batches < 1:
        raise ValueError(f"--batches: expected at least 1, got {batches}")
    left = [p for p in _replies(folder) if not (folder / "answers" / p.name).exists()]
    if left:
        raise ValueError(f"{left[0]} and {len(left) - 1} more are not collected; collect first")
    for old in folder.glob("batch-*"):
        shutil.rmtree(old)
    made = [Batch(folder / f"batch-{i}") for i in range(batches)]
    prompts = sorted(unanswered(folder / "answers"), key=lambda p: -p.stat().st_size)
    for prompt in prompts:
        problem = _id(prompt).split("-a")[0]
        batch = min(made, key=lambda b: (b.problems[problem], b.size_bytes, b.folder.name))
        batch.folder.mkdir(exist_ok=True)
        shutil.copyfile(prompt, batch.folder / prompt.name)
        batch.size_bytes += prompt.stat().st_size
        batch.problems[problem] += 1
    used = [batch for batch in made if batch.size_bytes]
    for batch in used:
        (batch.folder / "README.md").write_text(GUIDE, encoding="utf-8")
    return used


def collect(folder: Path) -> Collected:
    """Copy the replies of the batch folders to the answers folder; a reply there is kept."""
    answers = folder / "answers"
    new, refused = [], []
    for reply in _replies(folder):
        target = answers / reply.name
        if not (answers / f"{_id(reply)}{PROMPT}").exists():
            refused.append(f"{reply}: there is no such prompt")
        elif not reply.read_text(encoding="utf-8", errors="replace").strip():
            refused.append(f"{reply}: it is empty")
        elif not target.exists():
            temporary = answers / f".{reply.name}.tmp"
            shutil.copyfile(reply, temporary)
            os.replace(temporary, target)
            new.append(_id(reply))
    missing = [_id(p) for p in unanswered(answers)]
    return Collected(new=tuple(new), missing=tuple(missing), refused=tuple(refused))


def _replies(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"batch-*/*{REPLY}"))


def _id(path: Path) -> str:
    return path.name.removesuffix(PROMPT).removesuffix(REPLY)
