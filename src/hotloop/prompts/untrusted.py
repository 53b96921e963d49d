"""Text that a candidate or a compiler wrote, made fit to stand in a prompt.

Such text may try to speak to the model: end its fence, open a turn of the chat, move a terminal's
cursor. It may also show what a model must not see: where files lie on this machine, seeds,
tolerances, frames of the harness. Everything that enters a prompt and is not ours or the user's
passes here.

Covered: control characters, fences, chat markers, absolute paths, foreign frames, seeds and
tolerances by name, length. Not covered: what words alone may persuade a model of.
"""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_LINE_CHARS = 400

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_FENCES = re.compile(r"`{3,}|~{3,}")
_MARKERS = re.compile(
    r"<(?=[|/]?\s*(?:\||im_|think|tool_call|start_of|end_of|begin_of|eot))|\[(?=/?INST)"
)
_ABSOLUTE = re.compile(r"(?<![\w.)\]/])(?:file://|~)?/(?:[\w.+@-]+/)+(?P<name>[\w.+@-]*)")
_SECRETS = (
    re.compile(r"(\b\w*seed\w*\b[\"']?\s*(?:[:=]|is|of)?\s*)(?:0x[0-9a-fA-F]+|\d+)", re.IGNORECASE),
    re.compile(
        r"(\b(?:[ar]tol|tolerance|threshold)s?\b[\"']?\s*(?:[:=<>]+|is|of)?\s*)"
        r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?",
        re.IGNORECASE,
    ),
)
_FRAME = re.compile(r'^(\s*)File "([^"\n]*)", line \d+')


def clean(text: str) -> str:
    """Return text without control characters, chat markers, host paths, seeds and tolerances."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _CONTROL.sub("", text)
    text = _ABSOLUTE.sub(lambda m: m["name"] or "...", text)
    for secret in _SECRETS:
        text = secret.sub(r"\1[hidden]", text)
    text = _MARKERS.sub(lambda m: f"{m.group()} ", text)
    return _FENCES.sub(lambda m: "'" * len(m.group()), text)


def one_line(text: str, limit: int = 300) -> str:
    """Return cleaned text as one line of at most `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else f"{line[: limit - 3].rstrip()}..."


def head_and_tail(text: str, *, lines: int = 40, chars: int = 4000) -> str:
    """Return the first and last lines of a text, with a count of what was cut between them.

    Args:
        text: any text.
        lines: how many lines are kept in all.
        chars: how many characters are kept in all, beyond which fewer lines are.
    """
    rows = [_short(row) for row in text.strip("\n").split("\n")]
    if len(rows) <= lines and sum(map(len, rows)) <= chars:
        return "\n".join(rows)
    head = _fitting(rows, lines // 2, chars // 2)
    tail = _fitting(rows[len(head) :][::-1], lines - lines // 2, chars // 2)[::-1]
    cut = len(rows) - len(head) - len(tail)
    if cut <= 0:
        return "\n".join(rows)
    return "\n".join([*head, f"[... {cut} lines cut ...]", *tail])


def fence(text: str, language: str = "") -> str:
    """Return text as a fenced block that nothing in it can end."""
    longest = max((len(m.group()) for m in re.finditer(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text.strip(chr(10))}\n{mark}"


def quoted(text: str, *, lines: int = 40, chars: int = 4000) -> str:
    """Return untrusted text cleaned, cut and fenced."""
    return fence(head_and_tail(clean(text), lines=lines, chars=chars), "text")


def code(text: str, language: str, *, lines: int = 1200) -> str:
    """Return a source in a fence, as it is but for control characters; very long ones are cut."""
    bare = _CONTROL.sub("", text.replace("\r\n", "\n"))
    return fence(
        head_and_tail(bare, lines=lines, chars=80_000) if len(bare) > 80_000 else bare, language
    )


def own_frames(trace: str, files: Collection[str]) -> str:
    """Return a traceback without the frames of files that are not the candidate's own.

    Args:
        trace: as Python prints it.
        files: names of the candidate's files.
    """
    kept: list[str] = []
    skipping: int | None = None
    for row in trace.split("\n"):
        frame = _FRAME.match(row)
        indent = len(row) - len(row.lstrip())
        if frame is not None:
            foreign = frame[2].rsplit("/", 1)[-1] not in files
            skipping = len(frame[1]) if foreign else None
            if foreign:
                continue
        elif skipping is not None and (indent > skipping or not row.strip()):
            continue
        else:
            skipping = None
        kept.append(row)
    return "\n".join(kept)


def _short(row: str) -> str:
    if len(row) <= MAX_LINE_CHARS:
        return row
    return f"{row[:MAX_LINE_CHARS]} [... {len(row) - MAX_LINE_CHARS} characters cut]"


def _fitting(rows: list[str], limit: int, chars: int) -> list[str]:
    kept: list[str] = []
    for row in rows[:limit]:
        chars -= len(row) + 1
        if chars < 0:
            break
        kept.append(row)
    return kept
