import os

import pytest
from benchmarks.soak import FEWEST, soak

from benchmarks import durability, killer


def row(**changes):
    good = {
        "round": 1, "blows": {killer.COORDINATOR: 2, killer.JUDGE: 1}, "lost": 0, "refused": 0,
        "hung": 0, "exit": 0, "events_at_last_blow": 9, "is_as_control": True, "calls_given_up": 0,
        "set_apart": 0, "late_results": 0, "paid_beyond_control": 1, "processes_left": 0,
        "partial_files_left": 0,
    }  # fmt: skip
    return good | changes


@pytest.mark.parametrize(
    ("changes", "figure", "expected"),
    [
        ({}, "lost", 0),
        ({"lost": 1}, "lost", 1),
        ({"exit": 3}, "exit_not_0", 1),
        ({"is_as_control": False}, "not_as_control_otherwise", 1),
        ({"is_as_control": False, "calls_given_up": 1}, "not_as_control_otherwise", 0),
        ({"is_as_control": False, "calls_given_up": 1}, "rounds_with_a_call_given_up", 1),
        ({"paid_beyond_control": 6}, "most_paid_beyond_control_per_kill", 3.0),
        ({"processes_left": 2}, "processes_left", 2),
        ({"hung": 1}, "hung", 1),
        ({"is_as_control": False, "set_apart": 1}, "not_as_control_otherwise", 0),
        ({"is_as_control": False, "set_apart": 1}, "rounds_with_a_candidate_set_apart", 1),
        ({"blows": {}}, "rounds_with_a_blow", 1),
    ],
)
def test_a_bad_round_shows_in_the_summary(changes, figure, expected):
    summary = durability.summarise([row(), row(**changes)], {"samples": []}, {})
    assert summary["random_killer"][figure] == expected


@pytest.mark.slow
def test_rounds_strike_and_find_nothing_lost(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", durability.KEY)
    rows, control = durability.strike(range(1, 6), seed=0)
    summary = durability.summarise(rows, {}, control)["random_killer"]
    assert sum(summary["blows"].values()) > 0
    bad = ("lost", "refused", "hung", "exit_not_0", "not_as_control_otherwise", "processes_left")
    assert {name: summary[name] for name in bad} == dict.fromkeys(bad, 0)


@pytest.mark.slow
def test_a_soak_keeps_every_evaluation():
    before = len(killer.children_of(os.getpid()))
    grown = soak(FEWEST)
    assert grown["evaluations"] == grown["evaluations_kept"] == FEWEST
    assert grown["children_most"] == before
    assert (grown["files_open_growth"], grown["temporary_left"]) == (0, 0)
