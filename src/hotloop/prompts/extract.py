"""Get the candidate out of a model's reply, or say which kind of nothing it holds.

Pure: text in, a record out; never raises on a reply and never runs one. Of several programs the
last whole one counts, before fragments of later corrections; fragments are put together only where
no block is whole. Code that is recognisable but broken goes on to the compiler, whose message is
better; code that was cut off does not, because asking to go on is cheaper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.space import Space
from hotloop.prompts import cuda_source
from hotloop.prompts.fences import Block, find_blocks
from hotloop.prompts.patch import PatchError, apply_diff, is_cut_off, looks_like_diff
from hotloop.prompts.programs import Program, read_program
from hotloop.prompts.tunables import read_tunables
from hotloop.prompts.unfenced import find_unfenced, without_prose_end

MAX_REPLY_CHARS = 1_000_000
MAX_BLOCKS = 200
"""The last ones are read: no honest reply has more."""
PYTHON_ENTRY = "kernel.py"
CUDA_ENTRY = "kernel.cu"
_KINDS = {"cuda": "CUDA C++ built inline", "triton": "a Triton kernel", "gluon": "a Gluon kernel"}
"""What a program in Python is, by its language."""


class NoCodeReason(StrEnum):
    """Which kind of nothing a reply holds."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    REASONING_ONLY = "reasoning_only"
    PROSE_ONLY = "prose_only"
    NO_ENTRY = "no_entry"
    """Code, but no `ModelNew` (or, in CUDA, no kernel either)."""
    TRUNCATED = "truncated"
    WRONG_LANGUAGE = "wrong_language"
    NO_DESCRIPTION = "no_description"
    """CUDA source without the JSON comment that says how to launch it."""
    BAD_DESCRIPTION = "bad_description"
    DIFF_WITHOUT_PARENT = "diff_without_parent"
    DIFF_FAILED = "diff_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCode:
    """Why a reply gave no candidate."""

    reason: NoCodeReason
    message: str
    """What was expected, what came, what to do; safe to show a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The candidate of a reply."""

    candidate: Candidate
    space: Space | None = None
    """What `TUNABLES` declares."""
    notes: tuple[str, ...] = ()
    """What was done to get it, and what is wrong with its declarations."""


def extract(
    reply: str, *, language: str = "triton", parent: Candidate | None = None
) -> Extracted | NoCode:
    """Return the candidate of a reply.

    Args:
        reply: the model's answer; reasoning in `<think>` tags before it is left out.
        language: what was asked for, a name of `core.language`.
        parent: the candidate that a unified diff may change; None where no diff was asked for.
    """
    if len(reply) > MAX_REPLY_CHARS:
        size = f"{len(reply) // 1000} thousand characters"
        return _nothing(NoCodeReason.TOO_LARGE, f"expected one kernel file, got {size}")
    text = _plain(reply)
    if not text.strip():
        return _nothing(NoCodeReason.EMPTY, "expected code in a fenced block, got an empty reply")
    answer = _without_reasoning(text)
    if answer is None:
        told = "the reply ended inside its reasoning; answer with the code, reason less"
        return _nothing(NoCodeReason.REASONING_ONLY, told)
    blocks = [b for b in find_blocks(answer) if b.text.strip()][-MAX_BLOCKS:]
    if not blocks:
        blocks = _bare_diff(answer) or find_unfenced(answer)
    diffs = [b for b in blocks if looks_like_diff(b.text)]
    found = _from_programs([b for b in blocks if b not in diffs], language)
    if isinstance(found, Extracted):
        return found
    return _from_diffs(diffs, parent) if diffs else found


def _from_programs(blocks: Sequence[Block], language: str) -> Extracted | NoCode:
    sources = [b for b in blocks if cuda_source.is_cuda_source(b)]
    programs = [(b, read_program(b.text)) for b in blocks if b not in sources]
    whole = _choose(programs, language)
    if isinstance(whole, Extracted) or language != "cuda" or not sources:
        wrong = _cuda_instead(language, sources) if isinstance(whole, NoCode) else None
        return wrong or whole
    result = cuda_source.assemble(blocks, sources)
    if isinstance(result, cuda_source.Refused):
        return _nothing(NoCodeReason(result.reason), result.message)
    return _cuda_candidate(result)


def _cuda_candidate(text: str) -> Extracted:
    source = SourceFile(path=CUDA_ENTRY, text=_ended(text))
    candidate = Candidate(language="cuda", sources=(source,), entry=CUDA_ENTRY)
    return Extracted(candidate=candidate)


def _choose(programs: Sequence[tuple[Block, Program]], language: str) -> Extracted | NoCode:
    """Take the last whole program, else fragments put together, else the last with `ModelNew`."""
    blocks = [b for b, _ in programs]
    whole = [(b, p) for b, p in programs if p.is_whole and p.language == language]
    if whole:
        return _python_candidate(*whole[-1], language, others=blocks)
    joined = _joined(programs, language)
    if joined is not None:
        return _python_candidate(*joined, language, others=[], note="put together from fragments")
    models = [(b, p) for b, p in programs if p.has_model]
    fitting = [(b, p) for b, p in models if not p.has_kernel or p.language == language]
    if models and not fitting:
        kind = _KINDS[models[-1][1].language]
        told = f"expected a kernel in {language}, got {kind}"
        return _nothing(NoCodeReason.WRONG_LANGUAGE, told)
    if not fitting:
        return _no_entry(programs)
    block, program = fitting[-1]
    if not block.is_closed:
        return _from_open_block(block, language, blocks)
    return _python_candidate(block, program, language, others=blocks)


def _from_open_block(block: Block, language: str, others: Sequence[Block]) -> Extracted | NoCode:
    trimmed = without_prose_end(block.text)
    program = read_program(trimmed)
    if program.has_model and program.has_forward and program.parses:
        closed = replace(block, text=trimmed)
        return _python_candidate(closed, program, language, others=others)
    return _truncated(block.text)


def _truncated(text: str) -> NoCode:
    last = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")
    told = f"the reply ended inside its code, after {last[:60]!r}; send the whole file, shorter"
    return _nothing(NoCodeReason.TRUNCATED, told)


def _joined(
    programs: Sequence[tuple[Block, Program]], language: str
) -> tuple[Block, Program] | None:
    pieces = [(b, p) for b, p in programs if p.parses and _is_python(b)]
    if len(pieces) < 2 or not any(p.has_model for _, p in pieces):
        return None
    text = "\n\n".join(p.text.strip("\n") for _, p in pieces)
    program = read_program(text)
    if not program.is_whole or program.language != language:
        return None
    return replace(pieces[-1][0], text=text), program


def _python_candidate(
    block: Block, program: Program, language: str, *, others: Sequence[Block], note: str = ""
) -> Extracted:
    tunables = read_tunables(program.text)
    sources = [SourceFile(path=PYTHON_ENTRY, text=_ended(program.text))]
    sources += _companions(block, others)
    notes = [note, tunables.problem or "", "" if block.is_closed else "nothing closed the code"]
    return Extracted(
        candidate=Candidate(language=language, sources=tuple(sources), entry=PYTHON_ENTRY),
        space=tunables.space,
        notes=tuple(n for n in notes if n),
    )


def _companions(block: Block, others: Sequence[Block]) -> list[SourceFile]:
    """Return the named files that the program imports or opens by name."""
    found: dict[str, str] = {}
    for other in others:
        if other is block or other.path in (None, PYTHON_ENTRY, block.path):
            continue
        path = str(other.path)
        stem = re.escape(path.rsplit("/", 1)[-1].removesuffix(".py"))
        if re.search(
            rf"^\s*(?:from|import)\s+{stem}\b|[\"']{re.escape(path)}[\"']", block.text, re.MULTILINE
        ):
            found[path] = other.text
    return [SourceFile(path=path, text=_ended(text)) for path, text in found.items()]


def _bare_diff(answer: str) -> list[Block]:
    is_one = looks_like_diff(answer)
    return [Block(text=answer, language="diff", path=None, is_closed=True)] if is_one else []


def _from_diffs(diffs: Sequence[Block], parent: Candidate | None) -> Extracted | NoCode:
    """Change the parent by all diffs of a reply, or by none of them."""
    if parent is None:
        told = "expected the whole file, got a diff and no known file to change"
        return _nothing(NoCodeReason.DIFF_WITHOUT_PARENT, told)
    if not diffs[-1].is_closed and is_cut_off(diffs[-1].text):
        told = "the reply ended inside its diff; send the whole file"
        return _nothing(NoCodeReason.DIFF_FAILED, told)
    files = {s.path: s.text for s in parent.sources}
    try:
        for diff in diffs:
            files = apply_diff(files, parent.entry, diff.text)
    except PatchError as exc:
        return _nothing(NoCodeReason.DIFF_FAILED, f"{exc}; send the whole file instead of a diff")
    sources = tuple(SourceFile(path=path, text=_ended(text)) for path, text in files.items())
    candidate = Candidate(language=parent.language, sources=sources, entry=parent.entry)
    tunables = read_tunables(candidate.text())
    return Extracted(
        candidate=candidate,
        space=tunables.space,
        notes=tuple(n for n in ("a diff was applied", tunables.problem) if n),
    )


def _cuda_instead(language: str, sources: Sequence[Block]) -> NoCode | None:
    if not sources or language == "cuda":
        return None
    told = f"expected a kernel in {language}, a Python file with `ModelNew`; got CUDA C++"
    return _nothing(NoCodeReason.WRONG_LANGUAGE, told)


def _no_entry(programs: Sequence[tuple[Block, Program]]) -> NoCode:
    if not programs:
        told = "expected code in a fenced block, got prose alone; answer with the whole file"
        return _nothing(NoCodeReason.PROSE_ONLY, told)
    block, _ = programs[-1]
    if not block.is_closed:
        return _truncated(block.text)
    told = "expected a file with `class ModelNew(torch.nn.Module)`, found code without it"
    return _nothing(NoCodeReason.NO_ENTRY, told)


def _is_python(block: Block) -> bool:
    return block.language in ("", "python")


def _without_reasoning(text: str) -> str | None:
    """Return what follows the reasoning; None where the reasoning never ends."""
    opened = text.lstrip().startswith("<think>")
    before, closing, after = text.partition("</think>")
    if closing and (opened or "<think>" not in before):
        return after
    return None if opened else text


def _plain(reply: str) -> str:
    """Return the reply with bare newlines, and without what no source file may hold."""
    text = reply.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    text = re.sub("[\ufeff\u200b\u2060\x00]", "", text)
    return text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates have no bytes


def _ended(text: str) -> str:
    return text.strip("\n").rstrip() + "\n"


def _nothing(reason: NoCodeReason, message: str) -> NoCode:
    return NoCode(reason=reason, message=message)
