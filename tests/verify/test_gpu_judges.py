"""Several judges of one GPU: each is right, and times as if it were alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_kernels import ROWS, ROWS_PROBLEM, candidate

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.verify.bundle import Bundle, Item, Verdicts
from hotloop.verify.bundle_judge import JudgeOptions, judge_bundle

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

PROBLEMS = [
    Problem(name=f"rows{i}", kind=ProblemKind.KERNELBENCH, source=f"# {i}\n{ROWS_PROBLEM}")
    for i in range(4)
]
AT_MOST = 1.3
"""Times the latency that a judge with the GPU to itself measures."""


def judged(out: Path, judges: int) -> Verdicts:
    items = [
        Item(problem_id=p.id, candidate=candidate(ROWS), tier=Tier.FINAL, short=True)
        for p in PROBLEMS
    ]
    wanted = Bundle(problems={p.id: p for p in PROBLEMS}, items=tuple(items))
    told: list[str] = []
    options = JudgeOptions(device="cuda", gpus=("0",), judges=judges)
    found = judge_bundle(wanted, out, options, told.append)
    assert found.pending == 0, told
    return found.verdicts


def slowest_ms(found: Verdicts) -> dict[str, float]:
    """Return the longest latency of each side."""
    assert [v.status for v in found.verdicts] == [Status.PASSED] * len(PROBLEMS)
    assert not any(i.environment.get("gpu_shared") for i in found.infos.values())
    sides = [
        v.performance.baselines | {"candidate": v.performance.latency_ms}
        for v in found.verdicts
        if v.performance is not None
    ]
    return {name: max(side[name] for side in sides) for name in sides[0]}


def test_judges_beside_each_other_time_as_one_does(tmp_path: Path) -> None:
    alone_ms = slowest_ms(judged(tmp_path / "one", 1))
    beside_ms = slowest_ms(judged(tmp_path / "four", 4))
    assert alone_ms.keys() == beside_ms.keys()
    assert all(beside_ms[name] < AT_MOST * ms + 0.002 for name, ms in alone_ms.items())
