from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import Costs, fake_candidate, small_latency_ms


def final_points(bench, result):
    point = {a.candidate_id: a.point for a in result.attempts}
    return [point[candidate_id] for candidate_id in bench.verifier.verified(Tier.FINAL)]


def failing_finals(*points):
    def behaviour(point, tier):
        if tier is Tier.FINAL and point in points:
            return Status.INCORRECT_NUMERICAL
        return small_latency_ms(point, tier)

    return behaviour


BEST = {"BLOCK": 64, "num_warps": 8, "split": False}
SECOND = {"BLOCK": 64, "num_warps": 8, "split": True, "parts": 2}
THIRD = {"BLOCK": 64, "num_warps": 4, "split": False}


def test_one_final_when_the_best_passes_and_nothing_is_close(bench):
    result = bench.run()
    assert final_points(bench, result) == [BEST]
    assert result.final.passed


def test_a_failing_final_falls_to_the_next_best(bench):
    bench.verifier.behaviour = failing_finals(BEST)
    result = bench.run()
    assert final_points(bench, result) == [BEST, SECOND]
    assert result.passed
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.point == SECOND
    assert result.final.candidate_id == best.candidate_id


def test_three_finals_at_most(bench):
    bench.verifier.behaviour = lambda point, tier: (
        Status.REWARD_HACK if tier is Tier.FINAL else small_latency_ms(point, tier)
    )
    result = bench.run()
    assert len(final_points(bench, result)) == 3
    assert not result.passed
    assert result.final.status is Status.REWARD_HACK
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.point == BEST


def close_behind(point, tier):
    """BEST is ahead by 2 % in the loop and behind by 10 % at the final tier."""
    latency = {str(BEST): (1.00, 1.10), str(THIRD): (1.02, 1.00)}
    return latency.get(str(dict(point)), (3.0, 3.0))[tier is Tier.FINAL]


def refusing(bench):
    """Every kernel is refused at the end."""
    bench.verifier.behaviour = lambda point, tier: (
        Status.REWARD_HACK if tier is Tier.FINAL else small_latency_ms(point, tier)
    )
    return bench


def test_what_was_refused_before_the_search_went_on_leaves_its_places_to_others(bench):
    bench = refusing(bench)
    bench.run(max_candidates=8)
    refused = bench.verifier.verified(Tier.FINAL)
    later = bench.resumed()
    later.run(max_candidates=9)
    fresh = later.verifier.verified(Tier.FINAL)
    assert len(fresh) == len(refused) == 3
    assert not set(fresh) & set(refused)


def test_three_finals_at_most_also_when_the_run_was_killed_after_them(bench):
    bench = refusing(bench)
    bench.run(max_candidates=8)
    store = bench.store
    store._notes = [(kind, note) for kind, note in store._notes if kind != "stopped"]
    later = bench.resumed()
    result = later.run(max_candidates=8)
    assert later.verifier.verified(Tier.FINAL) == []
    assert result.final.status is Status.REWARD_HACK


def test_close_candidates_are_settled_by_their_final_times(bench):
    bench.verifier.behaviour = close_behind
    result = bench.run()
    assert final_points(bench, result) == [BEST, THIRD]
    assert result.final.performance.latency_ms == 1.00


def test_close_candidates_are_left_out_when_the_budget_does_not_allow_them(bench):
    bench.verifier.behaviour = close_behind
    bench.verifier.costs = Costs(fast_s=1.0, final_s=60.0)
    result = bench.run(wall_s=130.0)
    assert len(result.attempts) == 48
    assert final_points(bench, result) == [BEST]


def test_a_fallback_starts_only_within_the_budget(bench):
    bench.verifier.behaviour = failing_finals(BEST, SECOND, THIRD)
    bench.verifier.costs = Costs(fast_s=1.0, final_s=60.0)
    result = bench.run(wall_s=100.0)
    assert final_points(bench, result) == [BEST]
    assert not result.passed


def test_what_was_refused_leaves_its_place_to_what_the_search_finds_next(bench):
    """Three refused kernels are faster than all that comes later, and bar none of it."""
    early = 3

    def behaviour(point, tier):
        is_early = fake_candidate(point).id in bench.verifier.verified(Tier.FAST)[:early]
        if tier is Tier.FINAL and is_early:
            return Status.INCORRECT_NUMERICAL
        found = small_latency_ms(point, tier)
        return found if is_early or isinstance(found, Status) else found + 10.0

    bench.verifier.behaviour = behaviour
    first = bench.run(max_candidates=early)
    refused = set(bench.verifier.verified(Tier.FINAL))
    assert len(refused) == 3
    assert not first.passed
    again = bench.run(max_candidates=early)
    assert set(bench.verifier.verified(Tier.FINAL)) == refused, "of one ranking, three at most"
    assert not again.passed
    last = bench.run(max_candidates=48)
    assert last.passed
    assert last.final.candidate_id not in refused
