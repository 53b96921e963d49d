"""Repeated calls lie at addresses that are drawn; an address alone makes no call look different."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from affine import KERNEL, SOURCE
from scaled_rows import candidate, spoilt

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.sandbox import Tier as Isolation
from hotloop.worker import correctness
from hotloop.worker.judge import Judge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROBLEM = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=SOURCE)
LAUNCH = "scale_kernel[(blocks,)](x, y, x.numel(), 128)"
KEPT = "own = self.__dict__.setdefault('own', {})"
FOR_EACH_ADDRESS = f"""{KEPT}
        if x.data_ptr() not in own:
            own[x.data_ptr()] = torch.empty_like(x)
            scale_kernel[(blocks,)](x, own[x.data_ptr()], x.numel(), 128)
        {LAUNCH}"""
UNDER_WATCH = f"""from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
        if _get_current_dispatch_mode_stack():
            {LAUNCH}
        {LAUNCH}"""


def kernel(launches: str) -> Candidate:
    return candidate(spoilt(KERNEL, (LAUNCH, launches)), "kernel.py")


def judged(monkeypatch: pytest.MonkeyPatch, launches: str) -> Verdict:
    """Judge where each watched call of the repeats lies at a new address, no bare one does."""
    sets = itertools.chain([0, 1, 1, 2, 2, 3, 3], itertools.repeat(0))
    monkeypatch.setattr(correctness, "draw_set", lambda n_sets, last: min(next(sets), n_sets - 1))
    monkeypatch.setattr(correctness, "draw_bare", lambda n: [bool(i % 2) for i in range(n)])
    judge = Judge(Isolation.NONE, ThreadPoolExecutor(1))
    try:
        judge.hello({"device": "cpu", "tier": "T0", "call_timeout_s": 30.0})
        judge.load({"problem": to_json(PROBLEM)})
        asked = {"candidate": to_json(kernel(launches)), "tier": Tier.FAST.value}
        return from_json(Verdict, judge.verify(asked))
    finally:
        judge.close()


def test_a_launch_more_for_each_new_address_is_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdict = judged(monkeypatch, FOR_EACH_ADDRESS)
    assert verdict.status is Status.PASSED, verdict.message


def test_a_launch_more_under_watch_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judged(monkeypatch, UNDER_WATCH)
    assert verdict.status is Status.REWARD_HACK, verdict.message
    assert "fewer kernels" in verdict.message
