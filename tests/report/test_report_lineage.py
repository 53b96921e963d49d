"""The tree of attempts: order, the way to the best, and journals that contradict themselves."""

from dataclasses import replace

from hotloop.core.attempt import Asked, Attempt
from hotloop.core.verdict import Status, Tier
from hotloop.report.lineage import failures_by_class, lineage
from hotloop.report.page import ProblemPage
from hotloop.testing.fakes import fake_verdict


def attempt(n, *parents, outcome=None):
    verdict = None if outcome is None else fake_verdict(outcome, f"c{n}")
    return Attempt(
        id=n, action="draft", point={}, parents=parents, generator="model", candidate_id=f"c{n}",
        verdict=verdict, objective=None, started_s=0.0, finished_s=float(n),
    )  # fmt: skip


def problem(*attempts, best=None, **changes):
    return ProblemPage(
        key="1-1", name="1/1", title="", level="1", operator_class="conv", column="m/a/cuda",
        device="cuda", state="done", status="PASSED", attempts=attempts,
        best=None if best is None else next(a for a in attempts if a.id == best), **changes,
    )  # fmt: skip


def ids(found):
    return [station.id for station in found.stations]


def test_children_stand_under_their_parent():
    found = lineage(problem(attempt(1), attempt(2), attempt(3, 1), attempt(4, 3), attempt(5, 1)), 9)
    assert ids(found) == [1, 3, 4, 5, 2]
    assert [len(s.indent) for s in found.stations] == [0, 2, 4, 2, 0]


def test_parents_that_are_missing_or_run_in_a_circle_lose_no_attempt():
    found = lineage(problem(attempt(1, 2), attempt(2, 1), attempt(3, 3), attempt(4, 99)), 9)
    assert sorted(ids(found)) == [1, 2, 3, 4]


def test_the_way_to_the_best_is_kept_when_there_are_too_many():
    chain = [attempt(1), *(attempt(n, n - 1) for n in range(2, 5))]
    others = [attempt(n) for n in range(10, 30)]
    found = lineage(problem(*others, *chain, best=4), 6)
    assert {1, 2, 3, 4} < set(ids(found))
    assert len(found.stations) == 6
    assert found.left_out == 18
    assert [s.id for s in found.stations if s.leads_to_best] == [1, 2, 3, 4]
    assert [s.id for s in found.stations if s.is_best] == [4]


def test_a_final_verdict_stands_over_the_fast_one():
    failed = fake_verdict(Status.INCORRECT_NUMERICAL, "c1", tier=Tier.FINAL)
    (station,) = lineage(problem(attempt(1, outcome=1.0), finals={"c1": failed}), 9).stations
    assert (station.status, station.tier, station.passed) == ("INCORRECT_NUMERICAL", "final", False)
    assert station.time == ""


def test_no_time_without_a_measurement():
    passed, failed, pending = (
        lineage(problem(attempt(1, outcome=o)), 9).stations[0]
        for o in (2.0, Status.COMPILE_ERROR, None)
    )
    assert (passed.time, passed.speedup) == ("2.00 ms", "not compared")
    assert (failed.time, failed.told) == ("", "fake: a fake failure")
    assert (pending.time, pending.status, pending.passed) == ("", "never judged", None)
    open_run = replace(problem(attempt(1)), state="open")
    assert lineage(open_run, 9).stations[0].status == "no verdict yet"
    on_cpu = replace(attempt(1), objective=7.0)
    (station,) = lineage(replace(problem(on_cpu), device="cpu"), 9).stations
    assert (station.time, station.speedup) == ("7", "")


def test_an_attempt_says_what_it_was_to_do():
    asked = Asked(template="t", template_digest="0", prompt_id="1", sees="code", move="fuse_all")
    (station,) = lineage(problem(replace(attempt(1), asked=asked)), 9).stations
    assert station.told == "fuse all"
    (station,) = lineage(problem(replace(attempt(1), point={"BLOCK": 64})), 9).stations
    assert station.told == "BLOCK=64"


def test_failures_are_counted_by_class_of_operator():
    failed = fake_verdict(Status.TIMEOUT, "c2", tier=Tier.FINAL)
    one = problem(
        attempt(1, outcome=Status.TIMEOUT), attempt(2, outcome=1.0), finals={"c2": failed}
    )
    other = replace(problem(attempt(1, outcome=Status.NO_CODE)), operator_class="norm")
    assert failures_by_class([one, other]) == {
        "level 1: conv": {"TIMEOUT": 2},
        "level 1: norm": {"NO_CODE": 1},
    }
