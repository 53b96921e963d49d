"""How long a trip to the GPU is told to take: by the recorded costs, and one load a problem."""

import json
from statistics import mean

import pytest
from benchmarks.attention_trip import (
    FAST_S,
    FINAL_S,
    LOAD_S,
    SHORT_FINAL_S,
    group_seconds,
    trip_text,
    wall_s,
)
from benchmarks.results_file import ROOT
from pilot_makers import KERNEL, problem

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Tier
from hotloop.verify.bundle import Bundle, Item

RECORDED = ROOT / "benchmarks" / "recordings" / "model_pilot_verdicts.jsonl"


def test_costs_are_those_of_the_recorded_attention_problems():
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()[1:]]
    infos = [line["info"] for line in lines if "info" in line]
    attention = {i["problem_id"]: i["setup_s"] for i in infos if i.get("attention")}
    verdicts = [line["verdict"] for line in lines if "verdict" in line]
    held = {"fast": [], "final": [], "bare": []}
    for verdict in verdicts:
        if verdict["problem_id"] in attention:
            has_shapes = verdict["correctness"]["other_shapes"]
            is_bare = verdict["tier"] == "final" and not has_shapes
            seconds = verdict["stage_s"]["gpu"] + verdict["stage_s"]["compile_wait"]
            held["bare" if is_bare else verdict["tier"]].append(seconds)
    assert len(attention) == 6
    assert mean(attention.values()) == pytest.approx(LOAD_S, abs=0.1)
    assert mean(held["fast"]) == pytest.approx(FAST_S, abs=0.1)
    assert mean(held["final"]) == pytest.approx(FINAL_S, abs=0.1)
    assert mean(held["bare"]) == pytest.approx(SHORT_FINAL_S, abs=0.1)


def bundle(*groups):
    """Return a bundle with a problem for each list of (tier, short)."""
    problems = [problem(f"p{n}") for n in range(len(groups))]
    items = []
    for one, wanted in zip(problems, groups, strict=True):
        for number, (tier, short) in enumerate(wanted):
            text = KERNEL.format(n=number)
            source = SourceFile(path="kernel.py", text=text)
            kernel = Candidate(language="triton", sources=(source,))
            items.append(Item(problem_id=one.id, candidate=kernel, tier=tier, short=short))
        if not wanted:
            items.append(Item(problem_id=one.id))
    return Bundle(problems={p.id: p for p in problems}, items=tuple(items))


def test_a_problem_is_paid_once_and_each_candidate_by_its_tier():
    made = bundle([(Tier.FAST, False)] * 4, [(Tier.FINAL, False), (Tier.FINAL, True)], [])
    seconds = [LOAD_S + 4 * FAST_S, LOAD_S + FINAL_S + SHORT_FINAL_S, LOAD_S]
    assert group_seconds(made) == pytest.approx(seconds)
    told = trip_text(made)
    assert told.startswith("3 loads, 4 fast, 2 final (1 of them short): ")
    assert f"about {sum(seconds):.0f} s on one GPU, {LOAD_S + seconds[0]:.0f} s on two" in told


def test_a_trip_of_all_24_runs_takes_what_the_page_says():
    told = trip_text(bundle(*[[(Tier.FAST, False)] * 4] * 6))
    assert told == "6 loads, 24 fast: about 155 s on one GPU, 77 s on two"
    page = " ".join((ROOT / "docs" / "attention.md").read_text().split())
    assert "24 candidates of the six problems takes about 155 s on one GPU and 77 s on two" in page
    costs = f"a full final takes {FINAL_S} s and a short one {SHORT_FINAL_S} s"
    assert f"six loads of {LOAD_S:.0f} s, however many runs share a problem" in page
    assert f"and {FAST_S} s a candidate; {costs}" in page


def test_a_gpu_takes_the_longest_problem_that_is_left():
    assert wall_s([5.0, 3.0, 3.0], 2) == 6.0
    assert wall_s([5.0, 3.0], 8) == 5.0
    assert wall_s([], 2) == 0.0
