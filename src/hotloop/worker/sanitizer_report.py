"""Read the log of compute-sanitizer: what it found, in which kernel. Pure text work.

The log is the tool's own file; names of kernels and of source files in it come from machine code
that a candidate made, so a log can hold lines that a candidate wrote. They can add a finding, which
is then the candidate's own wish; they cannot take one away: findings count wherever they stand, and
a summary acquits only as the last word of a log without a finding, where the exit code agrees.

Formats: cuda-memcheck's successor 2020 to 2025 (CUDA 11 to 13), by NVIDIA's "Compute Sanitizer"
manual. A place is written `at 0x90 in file.cu:12:kernel(...)` by the older ones and
`at kernel(...)+0x90 in file.cu:12` by the newer ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hotloop import sandbox

PREFIX = "========="
MAX_LINE = 200
MAX_LINES = 5
MAX_FINDINGS = 20

OUT_OF_BOUNDS, MISALIGNED = "out_of_bounds", "misaligned_access"
UNINITIALISED, RACE, BARRIER = "uninitialised_read", "shared_memory_race", "barrier_misuse"

_HEADS = (
    # `Invalid __shared__ ?` is an instruction whose access the tool could not size: no finding.
    (re.compile(r"Invalid __(global|shared|local)__ (read|write|atomic)\b"), OUT_OF_BOUNDS),
    (re.compile(r"Uninitialized __\w+__ memory read\b"), UNINITIALISED),
    (re.compile(r"Error: (Race reported between|Potential \w+ hazard detected)", re.I), RACE),
    (re.compile(r"Barrier error detected\b"), BARRIER),
)
_SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (\d+) (error|hazard)s?\b")
_NO_COMPLAINT = re.compile(
    r"COMPUTE-SANITIZER|CUDA-MEMCHECK|\w+ SUMMARY: |This tool|Please use|Note: |"
    r"(Warning|WARN|INFO|Info)\b"
)
_HOST_FRAME = ("Host Frame", "Saved host", "in /", "Call stack")
_PLACE = re.compile(r"\bin (?:\S*/)?([^/\s:]+):(\d+)")
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/:]+/)+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in one kernel."""

    kind: str
    kernel: str
    """Function name, as it was launched."""
    what: str
    """The tool's own first line."""
    lines: tuple[str, ...]
    """What follows it, without frames of the host and without folders."""
    file: str | None = None
    line: int | None = None
    """Where the tool names a place in a source."""


@dataclass(frozen=True, slots=True)
class Report:
    """One log."""

    findings: tuple[Finding, ...]
    """At most `MAX_FINDINGS`."""
    others: tuple[str, ...]
    """First lines of complaints that are about no known kernel."""
    is_clean: bool
    """The last word is a summary of no errors, and there is no finding before it."""


def read_report(log: str, kernels: Collection[str]) -> Report:
    """Read a log.

    Args:
        log: all of it, or its start.
        kernels: function names of what was launched; whatever else is complained of is no finding.
    """
    findings: list[Finding] = []
    others: list[str] = []
    summary: int | None = None
    for head, details in _blocks(log):
        found = _SUMMARY.match(head)
        summary = int(found[2]) if found else None
        kind = next((kind for pattern, kind in _HEADS if pattern.match(head)), None)
        kernel = _kernel_in((head, *details), kernels) if kind else None
        if kind is not None and kernel is not None:
            if len(findings) < MAX_FINDINGS:
                findings.append(_finding(kind, kernel, head, details))
        elif head and not _NO_COMPLAINT.match(head):
            others.append(_shown(head))
    is_clean = summary == 0 and not findings
    return Report(tuple(findings), tuple(others), is_clean)


def _blocks(log: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return each first line with the lines that are indented below it."""
    blocks: list[tuple[str, list[str]]] = []
    for raw in log.split("\n"):
        if not raw.startswith(PREFIX):
            continue
        body = raw.removeprefix(PREFIX).rstrip()
        if not body.strip():
            continue
        # One blank belongs to the prefix; more of them make a line part of what stands above.
        if body.startswith("   ") and blocks:
            blocks[-1][1].append(body.strip())
        else:
            blocks.append((body.strip(), []))
    return [(head, tuple(details)) for head, details in blocks]


def _kernel_in(lines: Sequence[str], kernels: Collection[str]) -> str | None:
    for line in lines:
        if line.startswith(_HOST_FRAME):
            continue
        for name in kernels:
            if re.search(rf"(?<![\w$.]){re.escape(name)}(?![\w$.])", line):
                return name
    return None


def _finding(kind: str, kernel: str, head: str, details: Sequence[str]) -> Finding:
    device = [line for line in details if not line.startswith(_HOST_FRAME)]
    if kind == OUT_OF_BOUNDS and any("misaligned" in line for line in device):
        kind = MISALIGNED
    places = (_PLACE.search(line) for line in (head, *device))
    place = next((p for p in places if p), None)
    return Finding(
        kind=kind,
        kernel=kernel,
        what=_shown(head),
        lines=tuple(_shown(line) for line in device[:MAX_LINES]),
        file=_shown(place[1]) if place else None,
        line=int(place[2]) if place else None,
    )


def _shown(line: str) -> str:
    """Return a line that is safe to show: one line, capped, no control codes, no folders."""
    return " ".join(sandbox.sanitise(_PATH.sub("", line)).split())[:MAX_LINE]
