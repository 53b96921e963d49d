import logging
import random
import warnings
from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState

from hotloop.core.attempt import Outcome
from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Evidence, Status
from hotloop.search.random_search import RandomStrategy
from hotloop.search.tune import TuneStrategy
from hotloop.testing.fakes import fake_verdict
from hotloop.testing.suites import StrategySuite

TILES = Space(
    dimensions=(
        Dimension(name="BLOCK_M", choices=(32, 64, 128, 256), ordered=True),
        Dimension(name="BLOCK_N", choices=(16, 32, 64, 128, 256), ordered=True),
        Dimension(name="BLOCK_K", choices=(16, 32, 64, 128), ordered=True),
        Dimension(name="num_warps", choices=(1, 2, 4, 8, 16), ordered=True),
        Dimension(name="num_stages", choices=(1, 2, 3, 4, 5), ordered=True),
        Dimension(name="order", choices=("row", "column", "grouped")),
    ),
)


def tile_latency_ms(point) -> float | None:
    """A smooth bowl with a wall: tiles that take too much shared memory do not run."""
    tile_bytes = (point["BLOCK_M"] + point["BLOCK_N"]) * point["BLOCK_K"] * 2
    if tile_bytes * point["num_stages"] > 160 * 1024:
        return None
    latency_ms = 1.0 + abs(point["BLOCK_M"] - 128) / 128 + abs(point["BLOCK_N"] - 128) / 128
    latency_ms += abs(point["num_warps"] - 8) / 8 + abs(point["num_stages"] - 3) / 4
    return latency_ms + abs(point["BLOCK_K"] - 64) / 64 + (point["order"] != "grouped") * 0.3


def tune(strategy, evaluations: int) -> tuple[float, int]:
    best_ms, failures = float("inf"), 0
    for _ in range(evaluations):
        (proposal,) = strategy.ask(1)
        latency_ms = tile_latency_ms(proposal.point)
        failures += latency_ms is None
        verdict = fake_verdict(latency_ms or Status.RUNTIME_ERROR, "0" * 16)
        strategy.tell(Outcome(proposal_id=proposal.id, verdict=verdict, objective=latency_ms))
        best_ms = min(best_ms, latency_ms or best_ms)
    return best_ms, failures


class TestTuneStrategy(StrategySuite):
    def make(self, space, seed):
        return TuneStrategy(space, seed)


def test_finds_better_points_and_fails_less_often_than_random_search():
    tuned = [tune(TuneStrategy(TILES, seed), 50) for seed in range(4)]
    drawn = [tune(RandomStrategy(TILES, seed), 50) for seed in range(4)]
    assert sum(best_ms for best_ms, _ in tuned) < 0.9 * sum(best_ms for best_ms, _ in drawn)
    assert sum(failures for _, failures in tuned) < sum(failures for _, failures in drawn)


def test_choices_of_mixed_types_keep_their_values():
    space = Space(dimensions=(Dimension(name="mode", choices=(False, 2, "auto", 0.5)),))
    strategy = TuneStrategy(space, 0)
    assert {repr(p.point["mode"]) for p in strategy.ask(9)} == {"False", "2", "'auto'", "0.5"}


def test_a_starting_point_outside_the_space_is_an_error():
    space = Space(dimensions=TILES.dimensions, starts=({"BLOCK_M": 100},))
    with pytest.raises(ValueError, match="BLOCK_M=100"):
        TuneStrategy(space, 0).ask(1)


def test_is_silent(capfd):
    # optuna's handler on stderr is off only below its own level, so ask what would reach it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune(TuneStrategy(TILES, 0), 15)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() >= logging.WARNING


def test_touches_no_global_random_state():
    random.seed(7)
    before = random.getstate()
    tune(TuneStrategy(TILES, 0), 15)
    assert random.getstate() == before


def ended_with(kind):
    """Return the proposals of a search after some points ended so."""
    strategy = TuneStrategy(TILES, 0)
    for count in range(40):
        (proposal,) = strategy.ask(1)
        latency_ms = tile_latency_ms(proposal.point)
        if count % 2:
            verdict = fake_verdict(Status.INCONCLUSIVE, "0" * 16)
            verdict = replace(verdict, evidence=Evidence(kind=kind, message="no GPU"))
            strategy.tell(Outcome(proposal_id=proposal.id, verdict=verdict, objective=None))
        else:
            verdict = fake_verdict(latency_ms or Status.RUNTIME_ERROR, "0" * 16)
            strategy.tell(Outcome(proposal_id=proposal.id, verdict=verdict, objective=latency_ms))
    return [trial.state for trial in strategy._study.get_trials(deepcopy=False)]


def test_what_no_machine_could_judge_teaches_nothing():
    assert ended_with("not_judged").count(TrialState.FAIL) >= 20
    assert ended_with("ill_conditioned").count(TrialState.FAIL) < 20
