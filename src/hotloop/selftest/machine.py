"""The safe attacks on this machine: which can run here, at which tiers, and for how long."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

from hotloop.sandbox import policy
from hotloop.sandbox.credentials import reason_to_stay_root
from hotloop.sandbox.probe import probe
from hotloop.sandbox.spec import CageSpec, Tier
from hotloop.selftest.case import Case
from hotloop.selftest.cases import CASES
from hotloop.selftest.runner import Outcome, Result, Setting, run_cases

TIME_LIMIT_S = 55.0
_ANYWHERE = "/nonexistent"
"""Stands for the work folder, which the host of the attacks replaces."""


def run_selftest(time_limit_s: float = TIME_LIMIT_S) -> list[Result]:
    """Run every safe attack at T1 and T2, as far as this machine has them.

    Args:
        time_limit_s: wall-clock seconds for everything; what did not fit is named as not run.

    Returns:
        One result for each case and tier that the case is for.

    Raises:
        InfraError: the host of the attacks gave no answer.
    """
    end = time.monotonic() + time_limit_s
    machine = probe()
    results: list[Result] = []
    for tier in (Tier.EMBEDDED, Tier.NAMESPACES):
        specs = cages(tier)
        reasons = {c.name: reason_not_to(c, specs, os.geteuid()) for c in CASES}
        if machine.best_tier < tier:
            why = f"{tier} cannot be had: {'; '.join(machine.missing)}"
            reasons = dict.fromkeys(reasons, why)
        here = [c for c in CASES if tier in c.tiers and not reasons[c.name]]
        ran = _run(here, specs, end)
        for case in CASES:
            if case in here:
                results.append(next(ran))
            elif tier in case.tiers:
                results.append(_not_run(case, tier, reasons[case.name]))
    return results


def cages(tier: str) -> dict[str, CageSpec]:
    """Return the cage of each stage, as candidates and compile lanes get them here."""
    run = policy.candidate_cage(tier, _ANYWHERE, gpu=None)
    return {"run": run, "compile": policy.lane_cage(tier, _ANYWHERE)}


def reason_not_to(case: Case, specs: dict[str, CageSpec], uid: int) -> str:
    """Return why a case says nothing here; an empty string when it does.

    Args:
        case: the case.
        specs: the cage of each stage.
        uid: the user that plants and attacks.
    """
    if not case.safe:
        return "for the project's own tests: harmful where a cage has a hole, or slow"
    return unmet(case, specs[case.stage], planter=uid, attacker=uid)


def unmet(case: Case, spec: CageSpec, *, planter: int, attacker: int) -> str:
    """Return what a case needs and does not find; an empty string when nothing is missing."""
    if case.needs == "compiler" and shutil.which("gcc") is None:
        return "no C compiler (gcc) on PATH"
    if case.needs in ("root", "dropped_user") and planter != 0:
        return "only root can plant files of another user"
    if case.needs in ("dropped_user", "counted") and attacker == 0:
        return _kept_root(spec)
    return ""


def _kept_root(spec: CageSpec) -> str:
    reason = reason_to_stay_root(spec)
    return f"uid 0 is kept: {reason}" if reason else ""


def _run(here: list[Case], specs: dict[str, CageSpec], end: float) -> Iterator[Result]:
    if not here:
        return iter(())
    return iter(run_cases(here, Setting(specs), deadline_s=max(1.0, end - time.monotonic())))


def _not_run(case: Case, tier: str, reason: str) -> Result:
    return Result(case.number, case.name, case.stage, str(tier), Outcome.NOT_RUN, reason=reason)
