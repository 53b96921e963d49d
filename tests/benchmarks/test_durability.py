import os

import pytest
from benchmarks.soak import FEWEST, soak

from benchmarks import durability


def row(**changes):
    good = {
        "round": 1, "kills": 2, "lost": 0, "refused": 0, "exit": 0, "events_at_last_kill": 9,
        "is_as_control": True, "calls_given_up": 0, "paid_beyond_control": 1, "processes_left": 0,
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
        ({"kills": 0}, "rounds_with_a_kill", 1),
    ],
)
def test_a_bad_round_shows_in_the_summary(changes, figure, expected):
    summary = durability.summarise([row(), row(**changes)], {"samples": []}, {})
    assert summary["random_killer"][figure] == expected


@pytest.mark.slow
def test_a_round_kills_and_finds_nothing_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", durability.KEY)
    with durability.DigestServer() as server, durability.FakeMachine() as machine:
        killer = durability.Killer(machine, server, tmp_path)
        rows = [killer.round(number, seed=0) for number in range(1, 6)]
    summary = durability.summarise(rows, {}, {})["random_killer"]
    assert summary["kills"] > 0
    assert [summary[n] for n in ("lost", "refused", "exit_not_0", "not_as_control_otherwise")] == [
        0
    ] * 4


@pytest.mark.slow
def test_a_soak_keeps_every_evaluation():
    before = durability.children_of(os.getpid())
    grown = soak(FEWEST)
    assert grown["evaluations"] == grown["evaluations_kept"] == FEWEST
    assert grown["children_most"] == before
    assert (grown["files_open_growth"], grown["temporary_most"]) == (0, 0)
