"""Start the host of the attacks, collect what it found, and turn it into one result a case."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import hotloop
from hotloop.errors import InfraError
from hotloop.sandbox.environment import scrubbed_environment
from hotloop.sandbox.processes import kill_tree
from hotloop.sandbox.removal import remove_tree
from hotloop.sandbox.spec import CageSpec
from hotloop.selftest.case import Case, Expect

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from hotloop.selftest import host; host.main()"
_SIGSYS = 31


class Outcome(StrEnum):
    """What became of an attack."""

    REFUSED = "refused"
    OPEN = "OPEN"
    NOT_RUN = "not run here"


@dataclass(frozen=True, slots=True)
class Result:
    """One case at one tier.

    `found` has one line for everything that the attack achieved; `reason` says why it was not run.
    `steps` says how the program's steps were answered, for reading only. `end` says how the program
    ended, in the words of `Expect` where it ended as it should; `left` counts processes that were
    there after everything had been ended.
    """

    number: int
    name: str
    stage: str
    tier: str
    outcome: Outcome
    wall_s: float = 0.0
    found: tuple[str, ...] = ()
    reason: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    weaker: tuple[str, ...] = ()
    end: str = ""
    left: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """How the attacks are run.

    Attributes:
        specs: the cage of each stage; the work folder is replaced.
        private: run in throw-away namespaces, so that a way out leads nowhere.
        uid: user of victim and attacker, when started as root; None keeps our own.
        caged: False runs the programs without a cage, which only a test wants.
        boot: program text that starts the host.
    """

    specs: dict[str, CageSpec]
    private: bool = False
    uid: int | None = None
    caged: bool = True
    boot: str = BOOT


def run_cases(cases: Sequence[Case], setting: Setting, *, deadline_s: float) -> list[Result]:
    """Run attacks in one host process, one after the other.

    Args:
        cases: what to run; their needs are the caller's to check.
        setting: the cages, and where to run.
        deadline_s: wall-clock seconds for all; what is not finished by then was not run.

    Raises:
        InfraError: the host answered with something else than results.
    """
    answers = _ask([c.name for c in cases], setting, deadline_s)
    tier = str(setting.specs["run"].tier)
    found = {a["name"]: a for a in answers}
    return [
        _result(case, tier, found[case.name]) if case.name in found else _unfinished(case, tier)
        for case in cases
    ]


def _unfinished(case: Case, tier: str) -> Result:
    reason = "no time was left"
    return Result(case.number, case.name, case.stage, tier, Outcome.NOT_RUN, reason=reason)


def _result(case: Case, tier: str, answer: dict[str, Any]) -> Result:
    found, end = tuple(answer["found"]), answer["end"]
    outcome, reason = Outcome.REFUSED, ""
    if found:
        outcome = Outcome.OPEN
    elif not as_expected(case, end):
        outcome = Outcome.NOT_RUN
        reason = f"expected the program to end as {case.expect.value!r}, it ended as {end!r}"
    return Result(
        case.number, case.name, case.stage, tier, outcome, answer["wall_s"], found, reason,
        steps=tuple(sorted(answer["steps"].items())),
        weaker=tuple(answer.get("missing", ())),
        end=end,
        left=answer.get("left", 0),
    )  # fmt: skip


def as_expected(case: Case, end: str) -> bool:
    """Return whether a program ended in the way that its case foresees."""
    if case.expect is Expect.REFUSED:
        return end in ("done", f"exit code {-_SIGSYS}")
    if case.expect is Expect.CRASHED:
        return end.startswith("exit code -")
    if case.expect is Expect.NO_RESULT:
        return end.startswith("exit code ")
    return end == case.expect.value


def _ask(names: list[str], setting: Setting, deadline_s: float) -> list[dict[str, Any]]:
    source = os.path.dirname(os.path.abspath(hotloop.__path__[0]))
    token = secrets.token_hex(16)
    order = {
        "specs": {stage: spec.to_json() for stage, spec in setting.specs.items()},
        "cases": names, "token": token, "uid": setting.uid, "caged": setting.caged,
        "private": setting.private,
    }  # fmt: skip
    stage = "private" if setting.private else "plain"
    folder = tempfile.mkdtemp(prefix="hotloop-selftest-")
    os.chmod(folder, 0o711)  # attackers of another user pass through
    with tempfile.TemporaryFile() as results, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", setting.boot, source, stage],
            stdin=subprocess.PIPE,
            stdout=results,
            stderr=errors,
            cwd=folder,
            env=scrubbed_environment(folder, {"HOTLOOP_PLANTED": token}),
            start_new_session=True,
        )
        end = time.monotonic() + deadline_s
        try:
            process.communicate(json.dumps(order).encode(), timeout=end - time.monotonic())
        except subprocess.TimeoutExpired:
            pass  # what it wrote until now counts
        finally:
            kill_tree(process.pid)
            process.wait()
            remove_tree(folder)
        results.seek(0)
        errors.seek(0)
        return _parse(results.read(), errors.read())


def _parse(lines: bytes, errors: bytes) -> list[dict[str, Any]]:
    try:
        answers = [json.loads(line) for line in lines.splitlines()]
    except ValueError:
        answers = []
    if not answers or not all(isinstance(a, dict) and "found" in a for a in answers):
        raise InfraError(
            f"expected results from the host of the attacks, got {lines[:200]!r} and "
            f"{errors[-1000:]!r}; report this"
        )
    return answers
