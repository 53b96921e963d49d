"""Run the tools of compute-sanitizer one after the other on a recording, each with a deadline.

A tool answers in one of three ways: it ran and found nothing, it found something in a kernel of the
recording, or it gave no answer, and why. Only its own log and its exit code are believed. What the
watched process prints goes to another file: kernels can print.

racecheck and synccheck run for languages whose author writes the shared memory and the barriers.
Those of Triton come from its compiler, and racecheck reports its reductions as races though every
thread that writes there writes the same sum (triton-lang/triton issue 7264). Those of Gluon are its
author's, but handed over by mbarriers and asynchronous copies, on which these tools are untried.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.core import record
from hotloop.core.language import GLUON
from hotloop.worker.cuda_compiler import TOOLKIT_FOLDERS
from hotloop.worker.sanitizer_report import Finding, read_report
from hotloop.worker.watched import read_last_line, read_start, run_watched

MEMCHECK, INITCHECK, RACECHECK, SYNCCHECK = TOOLS = (
    "memcheck", "initcheck", "racecheck", "synccheck",
)  # fmt: skip
ALL_S, TOOL_S = 30.0, 15.0
"""All tools together, and one of them."""
LEAST_S = 2.0
"""No tool is started with less time left: it takes as long to start."""
FOUND_CODE = 86
"""What the tool exits with if the process ended well and it found something."""
LOG, OUTPUT, MESSAGE = "sanitizer.log", "output.txt", "message.json"
NOT_INSTALLED = "compute-sanitizer is not installed"
_INSTALLED = "/opt/nvidia/nsight-compute-sanitizer/*"
_HOST_MODULE = "hotloop.worker.sanitizer_host"
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    # Without a gap behind each allocation, a read past one lands in the next.
    MEMCHECK: ("--padding", "4096", "--report-api-errors", "no"),
    INITCHECK: ("--check-api-memory-access", "no"),
    # A warning is a hazard that the tool itself takes for possibly intended.
    RACECHECK: ("--racecheck-detect-level", "error"),
    SYNCCHECK: (),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tools found out together."""

    ran: tuple[str, ...] = ()
    """Tools that came to an end and found nothing."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Tool -> why it gave no answer."""
    tool: str | None = None
    """The tool that found something; none was started after it."""
    findings: tuple[Finding, ...] = ()


def tools_for(language: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the tools that tell something of kernels in a language, and why not the others."""
    if language == "cuda":
        return TOOLS, {}
    why = f"the compiler of {language} places shared memory and barriers, not the author"
    if language == GLUON.name:
        why = "it is not known whether they follow copies by TMA and wgmma, as Gluon's are"
    return (MEMCHECK, INITCHECK), {RACECHECK: why, SYNCCHECK: why}


def find_sanitizer() -> str | None:
    """Return the path of compute-sanitizer: on PATH, or in a CUDA toolkit."""
    homes = [home for home in (os.environ.get("CUDA_HOME"), *TOOLKIT_FOLDERS) if home]
    places = [f"{home}/{part}" for home in homes for part in ("bin", "compute-sanitizer")]
    places += sorted(glob.glob(_INSTALLED), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *places])
    return shutil.which("compute-sanitizer", path=path)


@dataclass(frozen=True, slots=True)
class Watch:
    """One recording under the tools."""

    message: Mapping[str, Any]
    """For `sanitizer_host.py`, JSON values, without what differs from tool to tool."""
    kernels: Collection[str]
    """Function names of the launches."""
    folder: Path
    """The work folder of `cage`."""
    env: Mapping[str, str]
    cage: sandbox.CageSpec

    def run(self, tools: Sequence[str], *, all_s: float = ALL_S, tool_s: float = TOOL_S) -> Outcome:
        """Run tools until one finds something or the time is over.

        Raises:
            OSError: the folder cannot be written or the tool cannot be started.
        """
        path = find_sanitizer()
        if path is None:
            return Outcome(skipped=dict.fromkeys(tools, NOT_INSTALLED))
        end = time.monotonic() + all_s
        ran: list[str] = []
        skipped: dict[str, str] = {}
        for tool in tools:
            left_s = end - time.monotonic()
            if left_s < LEAST_S:
                skipped[tool] = f"the {all_s:.0f} s for all tools were over"
                continue
            findings, why = self._run_one(path, tool, min(tool_s, left_s))
            if findings:
                return Outcome(tuple(ran), skipped, tool, findings)
            if why is None:
                ran.append(tool)
            else:
                skipped[tool] = why
        return Outcome(tuple(ran), skipped)

    def _run_one(
        self, path: str, tool: str, limit_s: float
    ) -> tuple[tuple[Finding, ...], str | None]:
        """Return what one tool found, and if it gave no answer, why."""
        target, log = self.folder / MESSAGE, self.folder / LOG
        # Scratch of zeros keeps an index that is read before it is written from leading anywhere;
        # for initcheck it has to stay as it was allocated.
        own = {
            "zero_scratch": tool != INITCHECK,
            "via_host": tool == INITCHECK,
            "cage": record.to_json(self.cage),
        }
        _write_new(target, record.dumps({**self.message, **own}))
        _write_new(log, "")  # so that the cage's user, who gets the folder, may write it too
        command = [
            path,
            *("--tool", tool, "--log-file", str(log), "--error-exitcode", str(FOUND_CODE)),
            *("--print-limit", "20", "--target-processes", "application-only"),
            *_OPTIONS[tool],
            *(sys.executable, "-P", "-m", _HOST_MODULE, str(target)),
        ]
        code = run_watched(command, self.folder, self.env, limit_s, output=OUTPUT)
        text = read_start(log)
        report = read_report(text, self.kernels)
        if report.findings:
            return report.findings, None
        if code == 0 and report.is_clean:
            return (), None
        if code is None:
            return (), f"not done within {limit_s:.0f} s"
        words = "; ".join(report.others[:2]) or self._last_words()
        return (), f"no answer (exit code {code}): {words}"

    def _last_words(self) -> str:
        line = " ".join(sandbox.sanitise(read_last_line(self.folder / OUTPUT)).split())
        return f'the watched process printed "{line[:150]}"' if line else "it wrote nothing"


def _write_new(path: Path, text: str) -> None:
    """Write a file that was not there: the folder was another user's, who may have left a link."""
    path.unlink(missing_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
