"""The benchmark of the cage: nothing that got through or was not run looks like a refusal."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from benchmarks import isolation, isolation_cost
from hotloop.sandbox import Capabilities, Tier
from hotloop.selftest import CASES, Outcome, Result

CASE = CASES[0]
REFUSED = Result(CASE.number, CASE.name, CASE.stage, "T1", Outcome.REFUSED, end="done")
OPEN = replace(REFUSED, outcome=Outcome.OPEN, found=("1 planted secrets came out",), left=2)
NOT_RUN = replace(REFUSED, outcome=Outcome.NOT_RUN, reason="no compiler", end="")


def summary(*results: Result) -> isolation.Row:
    rows = [isolation.row_of(CASE, result, isolation.SHIPPED) for result in results]
    return isolation.summarise(rows, {})


def test_what_got_through_is_counted_and_named() -> None:
    sound = summary(REFUSED, NOT_RUN)
    assert sound["attacks"] == {"T1": {"refused": 1, "OPEN": 0, "not run here": 1}}
    assert (sound["open"], sound["processes_left"]) == ([], 0)
    bad = summary(REFUSED, OPEN, replace(REFUSED, tier="T2"))
    assert bad["attacks"]["T1"] == {"refused": 1, "OPEN": 1, "not run here": 0}
    assert bad["attacks"]["T2"]["refused"] == 1
    assert (bad["open"], bad["processes_left"]) == ([CASE.name], 2)


def test_a_row_says_what_was_expected_and_what_came() -> None:
    row = isolation.row_of(CASE, OPEN, isolation.SHIPPED)
    assert (row["expected"], row["got"], row["outcome"]) == ("refused", "done", "OPEN")
    assert row["reached"] == ["1 planted secrets came out"]
    row = isolation.row_of(CASE, NOT_RUN, isolation.SHIPPED)
    assert (row["got"], row["outcome"], row["reason"]) == (None, "not run here", "no compiler")


def test_on_a_machine_without_a_cage_every_attack_is_not_run() -> None:
    poor = Capabilities("5.4", "x86_64", False, 0, True, False, Tier.NONE, ("no Landlock",))
    rows = isolation.attack_rows(poor)
    assert len(rows) == sum(len(case.tiers) for case in CASES)
    assert {row["outcome"] for row in rows} == {"not run here"}
    assert all("no Landlock" in row["reason"] for row in rows)


def test_spread_and_cost_over_t0() -> None:
    taken = [float(n) for n in range(1, 31)]
    expected = {"count": 30, "min_ms": 1.0, "median_ms": 15.5, "p90_ms": 27.0}
    assert isolation_cost.spread(taken[::-1]) == expected
    found = isolation_cost.cost_of({"T0": [1.0, 2.0, 3.0], "T1": [4.0, 5.0, 9.0]})
    assert "over_t0_ms" not in found["T0"]
    assert found["T1"]["over_t0_ms"] == 3.0


def test_too_few_samples_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["isolation", "--count", "29"])
    with pytest.raises(SystemExit) as ended:
        isolation.main()
    assert ended.value.code == 2


@pytest.mark.slow
def test_a_cpu_gets_starts_and_no_kernel_time() -> None:
    found = isolation_cost.measure("cpu", ("T0", "T1"), 2)
    assert found["kernel"] == "not measured: no GPU"
    assert {t: c["count"] for t, c in found["start_of_a_candidate"].items()} == {"T0": 2, "T1": 2}
    assert set(found["attacks_at_the_start_of_a_judge"]) == {"T1"}


@pytest.mark.gpu
def test_a_kernel_takes_as_long_in_the_cage() -> None:
    if not os.path.exists("/dev/nvidiactl"):
        pytest.skip("needs an NVIDIA GPU: /dev/nvidiactl is not there")
    found = isolation_cost.measure("cuda", ("T0", "T1"), 2)["kernel"]
    assert found["T0"]["median_ms"] > 0
    assert found["T1"]["median_ms"] == pytest.approx(found["T0"]["median_ms"], rel=0.05)
