"""The short final tier: where it may be asked for, which runs get it, and how a verdict reads."""

import dataclasses

import pytest

from hotloop.cli.main import main
from hotloop.cli.verdict_text import verdict_text
from hotloop.core.attempt import Attempt, Budget
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.plan import plan_search
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import fake_verdict
from hotloop.wiring import open_verifier

ATTENTION = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""


def final(**fields):
    return dataclasses.replace(fake_verdict(1.5, "a", tier=Tier.FINAL), **fields)


@pytest.mark.parametrize("tier", [(), ("--tier", "fast")])
def test_there_is_no_short_fast_tier(tmp_path, monkeypatch, capsys, tier):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text(ATTENTION)
    (tmp_path / "kernel.py").write_text("class ModelNew: ...")
    assert main(("verify", "good.py", "kernel.py", "--device", "cpu", "--short", *tier)) == 2
    assert "--short: there is no short fast tier" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no short fast tier"):
        dataclasses.replace(fake_verdict(1.5, "a"), short=True)


@pytest.mark.parametrize(("budget", "is_short"), [("119s", True), ("2m", False), ("15m", False)])
def test_runs_below_two_minutes_get_it(tmp_path, budget, is_short):
    (tmp_path / "good.py").write_text(ATTENTION)
    plan = plan_search(tmp_path / "good.py", device="cpu", budget=budget, out=tmp_path / "run")
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        verifier = open_verifier(plan, store)
        try:
            assert verifier.short_final is is_short
        finally:
            verifier.close()


def test_a_budget_without_a_clock_is_not_short():
    assert not Budget(max_candidates=3).is_short


def test_the_text_lists_what_ran_and_what_did_not_with_reasons():
    verdict = final(
        checks=("correctness:nominal", "sanitizer:memcheck"),
        checks_skipped={
            "sanitizer:racecheck": "a\x1b[31m reason", "sanitizer:synccheck": "a\x1b[31m reason",
            "sanitizer:initcheck": "not done within 15 s",
        },
    )  # fmt: skip
    text = verdict_text(verdict)
    assert "checks      final tier: correctness:nominal, sanitizer:memcheck\n" in text
    assert "not: sanitizer:racecheck, sanitizer:synccheck (a[31m reason)" in text
    assert "not: sanitizer:initcheck (not done within 15 s)" in text
    assert "final tier, short: " in verdict_text(final(short=True, checks=("repeats",)))


def test_the_fast_tier_says_nothing_of_checks():
    assert "checks" not in verdict_text(fake_verdict(1.5, "a"))


def test_a_verdict_keeps_both_on_its_way():
    verdict = final(short=True, checks_skipped={"sanitizer:memcheck": "short"})
    assert from_json(Verdict, to_json(verdict)) == verdict


def test_show_lists_the_checks_of_the_best_one_s_final(tmp_path, capsys):
    (tmp_path / "good.py").write_text(ATTENTION)
    plan = plan_search(tmp_path / "good.py", device="cpu", out=tmp_path / "run")
    source = SourceFile(path="kernel.py", text="import torch")
    kernel = Candidate(language="triton", sources=(source,))
    opened = Attempt(
        id=1, action="schedule", point={}, parents=(), generator="builtin",
        candidate_id=kernel.id, verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip
    fast = dataclasses.replace(fake_verdict(1.5, kernel.id), candidate_id=kernel.id)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        store.propose(opened, kernel)
        store.conclude(dataclasses.replace(opened, verdict=fast, objective=1.5, finished_s=1.0))
        found = final(candidate_id=kernel.id, checks_skipped={"sanitizer:memcheck": "too slow"})
        store.note("final", {"candidate_id": kernel.id, "verdict": to_json(found)})
    assert main(("show", str(plan.folder))) == 0
    assert "not: sanitizer:memcheck (too slow)" in capsys.readouterr().out
