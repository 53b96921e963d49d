"""Every attack is refused in the cage, every way in; and works where there is no cage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ways import (
    CASES,
    IN_DEFAULT_RUN,
    SLOW_CASES,
    WAYS,
    attacked,
    by_name,
    reason_to_skip,
    setting_of,
)

from hotloop.sandbox import candidate_cage
from hotloop.selftest import Outcome, Result
from hotloop.selftest.runner import run_cases

HELD_BY_THE_HARNESS = {
    "ignore all signals", "stop itself", "wait for ever", "daemons", "zombies and orphans",
    "print without end", "text without end", "templates without end", "print forged results",
    "deep folders", "source that includes itself",
}  # fmt: skip
"""Refused without a cage too: the supervisor holds these, not the cage; see test_weakened."""
HELD_BY_THE_KERNEL = {"become root"}
"""No process without rights can do it; the case watches that a cage does not make it possible."""


def _params() -> list[object]:
    return [
        pytest.param(
            way,
            case.name,
            marks=[pytest.mark.slow]
            if way not in IN_DEFAULT_RUN or case.name in SLOW_CASES
            else [],
        )
        for way in WAYS
        for case in CASES
        if way[:2] in case.tiers
    ]


def _result(way: str, name: str, *, caged: bool = True) -> Result:
    (case,) = by_name(name)
    if reason := reason_to_skip(case, way, caged=caged):
        pytest.skip(reason)
    return attacked(way, slow=name in SLOW_CASES, caged=caged)[name]


@pytest.mark.parametrize(("way", "name"), _params())
def test_attack_is_refused(way: str, name: str) -> None:
    result = _result(way, name)
    assert (result.outcome, result.found, result.reason) == (Outcome.REFUSED, (), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [c.name for c in CASES if c.name not in HELD_BY_THE_HARNESS | HELD_BY_THE_KERNEL]
)
def test_attack_works_without_a_cage(name: str) -> None:
    """Else a refusal would prove nothing: the program may be broken."""
    (case,) = by_name(name)
    result = _result(f"{case.tiers[0]} as I am", name, caged=False)
    assert result.outcome is not Outcome.REFUSED
    assert result.found or "'killed'" in result.reason


def test_names_are_unique() -> None:
    names = [c.name for c in CASES]
    assert len(set(names)) == len(names)
    assert set(names) >= HELD_BY_THE_HARNESS | HELD_BY_THE_KERNEL | SLOW_CASES


GPU_WAYS = ("T1 as I am", "T1 as plain user", "T2 as plain user")
SHARED = "/dev/shm"


def message_to_the_next(way: str, *, shared: bool = False) -> Result:
    """Leave a message and look for it from the cage of a candidate with a GPU."""
    setting = setting_of(way)
    write_paths = candidate_cage(way[:2], "/nowhere", gpu=0).write_paths
    write_paths += (SHARED,) if shared else ()
    run = replace(setting.specs["run"], gpu=0, write_paths=write_paths)
    cases = by_name("message to the next run")
    (result,) = run_cases(cases, replace(setting, specs={"run": run}), deadline_s=30.0)
    return result


@pytest.mark.parametrize("way", GPU_WAYS)
def test_shared_memory_folder_carries_nothing_to_the_next_run(way: str) -> None:
    """It is shut at T1; at T2, where the cage of a GPU has it, each run has one of its own."""
    result = message_to_the_next(way)
    assert (result.outcome, result.found) == (Outcome.REFUSED, ())
    listing = "ok" if way.startswith("T2") else "EACCES"
    assert dict(result.steps)["shared memory files"] == listing


@pytest.mark.slow
def test_shared_memory_folder_that_is_open_carries_it() -> None:
    result = message_to_the_next("T1 as I am", shared=True)
    assert result.outcome is Outcome.OPEN
    assert any("secrets came out" in line for line in result.found)
