"""The ways into a cage that this machine has, and the attacks run once for each."""

from __future__ import annotations

import functools
import os
from dataclasses import replace

import pytest

from hotloop.sandbox import CageSpec, Tier, probe, readable_by_uid
from hotloop.selftest import CASES, Result
from hotloop.selftest.case import Case
from hotloop.selftest.machine import cages, unmet
from hotloop.selftest.runner import BOOT, Setting, run_cases

PLAIN_UID = 60001
DEADLINE_S = 90.0
WAYS = ("T1 drops root", "T1 as plain user", "T1 as I am", "T2 as plain user", "T2 drops root",
        "T2 as I am")  # fmt: skip
IN_DEFAULT_RUN = ("T1 drops root", "T2 as plain user")
SLOW_CASES = {
    "zombies and orphans", "wait for ever", "stop itself", "processor time", "text without end",
    "templates without end", "fork bomb", "deep folders",
}  # fmt: skip


@functools.cache
def machine():
    return probe()


def by_name(*names: str) -> list[Case]:
    found = [c for c in CASES if c.name in names]
    assert len(found) == len(names)
    return found


@functools.cache
def specs_of(way: str) -> dict[str, CageSpec]:
    """Return the shipped cages; what their user cannot read is left out, so that root can drop."""
    specs = cages(way[:2])
    if way.endswith("as I am"):
        return {stage: replace(spec, drop_uid=None) for stage, spec in specs.items()}
    if os.geteuid() != 0:
        return specs
    return {
        stage: replace(
            spec, read_paths=tuple(p for p in spec.read_paths if readable_by_uid(PLAIN_UID, [p]))
        )
        for stage, spec in specs.items()
    }


def setting_of(way: str, *, boot: str = BOOT, caged: bool = True) -> Setting:
    """Return how to attack this way, always in throw-away namespaces; skip where it cannot be."""
    if machine().best_tier < Tier.NAMESPACES:
        pytest.skip(f"no throw-away namespaces here: {'; '.join(machine().missing)}")
    if not way.endswith("as I am") and os.geteuid() != 0:
        pytest.skip("needs root: it changes to another user")
    uid = PLAIN_UID if way.endswith("as plain user") else None
    return Setting(specs_of(way), private=True, uid=uid, caged=caged, boot=boot)


@functools.cache
def reason_to_skip(case: Case, way: str, *, caged: bool = True) -> str:
    """Return why a case says nothing this way; without a cage each runs at its first tier only."""
    setting = setting_of(way, caged=caged)
    if setting.specs["run"].tier not in case.tiers:
        return f"{case.name} is not for this tier"
    planter = os.geteuid()
    if not caged:
        return "" if case.tiers[0] == way[:2] else "once is enough"
    attacker = planter if setting.uid is None else setting.uid
    return unmet(case, setting.specs[case.stage], planter=planter, attacker=attacker)


@functools.cache
def attacked(way: str, *, slow: bool, caged: bool = True) -> dict[str, Result]:
    """Run all cases of one speed one way, once for all tests."""
    setting = setting_of(way, caged=caged)
    here = [
        c
        for c in CASES
        if (c.name in SLOW_CASES) is slow and not reason_to_skip(c, way, caged=caged)
    ]
    return {r.name: r for r in run_cases(here, setting, deadline_s=DEADLINE_S)}
