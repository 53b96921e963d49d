"""Where a judge that shares its device is, between requests and in them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from affine import KERNEL, SOURCE
from scaled_rows import candidate

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.errors import ConfigError, ProblemError
from hotloop.sandbox import Tier as Isolation
from hotloop.worker import judge as judging
from hotloop.worker.judge import Judge
from hotloop.worker.kept_memory import Kept
from hotloop.worker.session import Session
from hotloop.worker.timing_turns import TimingTurns, Where
from hotloop.worker.verification import Verification

pytestmark = pytest.mark.timeout(120)

PROBLEM = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=SOURCE)
BROKEN = Problem(name="b", kind=ProblemKind.KERNELBENCH, source=SOURCE.replace("x * 2", "nothing"))


@pytest.fixture
def sharing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Judge, TimingTurns]]:
    """A judge on a CPU that takes turns as on a GPU."""
    monkeypatch.setattr(Kept, "share", 1.0)
    judge = Judge(Isolation.NONE, ThreadPoolExecutor(1))
    turns = TimingTurns(tmp_path, "cpu", judges=2, settle=lambda: None)
    judge.hello({"device": "cpu", "tier": "T0", "call_timeout_s": 30.0})
    judge._turns = turns
    yield judge, turns
    judge.close()
    turns.close()


def load(judge: Judge, problem: Problem) -> None:
    judge.load({"problem": to_json(problem), "ahead": [to_json(candidate(KERNEL, "kernel.py"))]})


def test_it_is_away_between_requests(
    sharing: tuple[Judge, TimingTurns], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, turns = sharing
    load(judge, PROBLEM)
    assert turns.where is Where.AWAY
    seen: list[Where] = []
    shown = Verification._judge

    def look(self: Verification, tier: Tier) -> Verdict:
        seen.append(turns.where)
        return shown(self, tier)

    monkeypatch.setattr(Verification, "_judge", look)
    kernel = candidate(KERNEL, "kernel.py")
    verdict = judge.verify({"candidate": to_json(kernel), "tier": Tier.FAST.value})
    assert from_json(Verdict, verdict).status is Status.PASSED
    assert seen == [Where.BESIDE]
    assert str(turns.where) == str(Where.AWAY)


def test_a_large_problem_has_it_until_the_next_is_loaded(
    sharing: tuple[Judge, TimingTurns], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, turns = sharing
    with monkeypatch.context() as small:
        small.setattr(judging, "large_bytes", lambda device: 1 << 10)
        load(judge, PROBLEM)
    assert turns.where is Where.ALONE
    assert Kept.share == 1.0
    load(judge, PROBLEM)
    assert str(turns.where) == str(Where.AWAY)
    assert Kept.share == 0.5


def test_at_rest_it_keeps_no_problem_and_no_gpu(
    sharing: tuple[Judge, TimingTurns], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, turns = sharing
    monkeypatch.setattr(judging, "large_bytes", lambda device: 1 << 10)
    load(judge, PROBLEM)
    judge.rest({})
    assert turns.where is Where.AWAY
    kernel = to_json(candidate(KERNEL, "kernel.py"))
    with pytest.raises(ConfigError, match="expected a loaded problem"):
        judge.verify({"candidate": kernel, "tier": Tier.FAST.value})
    judge.rest({})


def test_a_problem_that_cannot_be_loaded_holds_nothing(
    sharing: tuple[Judge, TimingTurns],
) -> None:
    judge, turns = sharing
    with pytest.raises(ProblemError):
        load(judge, BROKEN)
    assert turns.where is Where.AWAY


def test_where_memory_runs_out_beside_the_others_it_loads_without_them(
    sharing: tuple[Judge, TimingTurns], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, turns = sharing
    seen: list[Where] = []

    def short(*args: Any, **kwargs: Any) -> Session:
        seen.append(turns.where)
        if len(seen) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return Session(*args, **kwargs)

    monkeypatch.setattr(judging, "Session", short)
    load(judge, PROBLEM)
    assert seen == [Where.BESIDE, Where.ALONE]
    assert turns.where is Where.ALONE
    assert Kept.share == 1.0


def test_what_fits_nowhere_holds_nothing(
    sharing: tuple[Judge, TimingTurns], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, turns = sharing

    def never(*args: Any, **kwargs: Any) -> Session:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(judging, "Session", never)
    with pytest.raises(torch.OutOfMemoryError):
        load(judge, PROBLEM)
    assert turns.where is Where.AWAY
