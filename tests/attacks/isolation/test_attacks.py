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


def test_shared_memory_folder_of_a_gpu_cage_is_private_at_t2() -> None:
    """CUDA needs /dev/shm, so a cage with a GPU grants it; at T2 each run has one of its own."""
    setting = setting_of("T2 as plain user")
    specs = {
        stage: replace(spec, write_paths=(*spec.write_paths, "/dev/shm"))
        for stage, spec in setting.specs.items()
    }
    cases = by_name("message to the next run")
    (result,) = run_cases(cases, replace(setting, specs=specs), deadline_s=30.0)
    assert (result.outcome, result.found) == (Outcome.REFUSED, ())
    assert dict(result.steps)["shared memory files"] == "ok"
