"""One call of a suite takes in all that a verdict file knows, whatever is asked for on the way."""

from dataclasses import replace

import pytest
from sized_problem import SOURCE

from hotloop.core.verdict import Status, Tier
from hotloop.engine import Parts, StopFlag, run_search
from hotloop.problems import list_kernelbench
from hotloop.search.points import enumerate_points
from hotloop.search.random_search import RandomStrategy
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import Suite
from hotloop.suite.planning import SuiteExtras, plan_suite
from hotloop.suite.runner import SuiteOptions, run_suite, standings
from hotloop.suite.standing import State
from hotloop.testing.fake_model import FastClock
from hotloop.testing.fakes import (
    SMALL_SPACE,
    FakeGenerator,
    FakeVerifier,
    fake_candidate,
    fake_verdict,
    small_latency_ms,
)
from hotloop.verify.bundle import JudgeError, Verdicts
from hotloop.verify.outside import OutsideVerifier, pending_items


class WithoutRules(OutsideVerifier):
    """Fake candidates are no Triton: the static rules are left out."""

    def verify(self, candidate, tier):
        self._want(candidate.id, tier.value, "noted")
        return super().verify(candidate, tier)


class Searches:
    """Stands in for `api.run_plan`: a search over fakes whose judge is elsewhere."""

    def __init__(self, at_end):
        self.rounds, self.at_end = 0, at_end

    def __call__(self, plan, *, listen, stop, turns=None):
        self.rounds += 1
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            parts = Parts(
                generator=FakeGenerator(),
                strategy=RandomStrategy,
                verifier=WithoutRules(
                    store, plan.problem, wants_full=not plan.spec.has_short_final
                ),
                store=store,
                closes=plan.closes,
            )
            result = run_search(
                plan.problem, parts, spec=plan.spec, listen=listen, clock=FastClock(), stop=stop
            )
        self.at_end()
        return result


class Bench:
    """A suite of one problem, three of whose kernels are judged."""

    def __init__(self, tmp_path):
        folder = tmp_path / "data" / "level1"
        folder.mkdir(parents=True)
        (folder / "1_Add.py").write_text(SOURCE.format(n=8))
        self.data, self.out = tmp_path / "data", tmp_path / "s"
        (self.entry,) = list_kernelbench(self.data)
        self.problem_id = self.entry.problem().id
        self.lines, self.shown = [], []

    def run(self, verdicts, *, stop=None, full=False, at_end=lambda: None, **options):
        """Return the number of rounds and where the problem stands."""
        given = {"device": "cuda", "judge": "bundle", "data": self.data, "max_candidates": 3}
        extra = SuiteExtras(short_final=not full)
        plan = plan_suite([self.entry], self.out, {**given, **options}, extra)
        searches = Searches(at_end)
        chosen = SuiteOptions(seats=(None,), search=searches, verdicts=verdicts, shown=self._show)
        with Suite(plan.folder, plan.record) as suite:
            stop = stop or StopFlag()
            fatal = run_suite(
                suite, plan, chosen, tell=lambda j, x: self.lines.append(x), stop=stop
            )
            assert fatal is None, fatal
            (row,) = standings(suite)
        return searches.rounds, row

    def _show(self, search):
        def run(plan, **options):
            self.shown.append(plan.problem.name)
            return search(plan, **options)

        return run

    def judged(self, *, finals=None, problem_id=None, short=True):
        """Return a file with the fast verdict of every kernel, and of `finals` by candidate."""
        problem_id = problem_id or self.problem_id
        info = replace(FakeVerifier().load(self.entry.problem()), problem_id=problem_id)
        made = []
        for point in enumerate_points(SMALL_SPACE):
            candidate = fake_candidate(point)
            made.append(fake_verdict(small_latency_ms(point, Tier.FAST), candidate.id))
        for candidate_id, outcome in (finals or {}).items():
            final = fake_verdict(outcome, candidate_id, tier=Tier.FINAL)
            made.append(replace(final, short=short))
        return Verdicts(
            infos={problem_id: info},
            verdicts=tuple(replace(verdict, problem_id=problem_id) for verdict in made),
        )

    def pending(self):
        with RunReader(self.out / "runs" / "1-1") as reader:
            return pending_items(reader, short=reader.spec().has_short_final)

    def ranked(self):
        """Return the ids of the candidates that passed the fast tier, best first."""
        with RunReader(self.out / "runs" / "1-1") as reader:
            passed = [a for a in reader.attempts() if a.objective is not None]
        return [a.candidate_id for a in sorted(passed, key=lambda a: (a.objective, a.id))]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_one_call_goes_from_the_first_question_to_the_last_answer(bench):
    bench.run(bench.judged())
    best, second, _ = bench.ranked()
    bench.out = bench.out.with_name("fresh")
    file = bench.judged(finals={best: Status.INCORRECT_NUMERICAL, second: 0.9})
    rounds, row = bench.run(file)
    assert rounds > 3, "the problem, the kernels, and each final are asked for in turn"
    assert (row.state, row.result.final.candidate_id) == (State.DONE, second)
    assert row.passed
    assert bench.shown == ["kernelbench/1/1"] * 2, "a run is shown once, whatever its rounds"


def test_one_call_closes_a_search_whose_best_is_refused(bench):
    _, row = bench.run(bench.judged())
    assert row.state is State.VERDICT
    best, second, third = bench.ranked()
    refused = {best: Status.INCORRECT_NUMERICAL, second: Status.INCORRECT_NUMERICAL}
    _, row = bench.run(bench.judged(finals={**refused, third: 0.9}), close=True)
    assert (row.state, row.result.final.candidate_id) == (State.DONE, third)


def test_what_the_file_does_not_know_is_awaited(bench):
    bench.run(bench.judged())
    best, second, _ = bench.ranked()
    file = bench.judged(finals={best: Status.INCORRECT_NUMERICAL})
    _, row = bench.run(file, close=True)
    assert row.state is State.VERDICT
    assert second in row.reason
    rounds, row = bench.run(file, close=True)
    assert (rounds, row.state) == (1, State.VERDICT), "the file brings nothing new any more"


def test_a_file_of_other_problems_is_not_looked_into(bench):
    rounds, row = bench.run(bench.judged(problem_id="another"))
    assert (rounds, row.state) == (1, State.VERDICT)


def test_the_user_ends_it_between_two_rounds(bench):
    stop = StopFlag()

    def stopped_once_begun(search):
        def run(plan, **options):
            stop.request()
            return search(plan, **options)

        return run

    bench.run(None)
    bench._show = stopped_once_begun
    rounds, row = bench.run(bench.judged(), stop=stop)
    assert (rounds, row.state) == (1, State.OPEN)


def test_answers_to_what_the_last_round_asked_are_left_when_the_user_ends_it(bench):
    stop = StopFlag()
    rounds, row = bench.run(bench.judged(), stop=stop, at_end=stop.request)
    assert (rounds, row.state) == (1, State.VERDICT)
    assert {item.tier for item in bench.pending()} == {Tier.FAST}
    bench.run(bench.judged())
    assert {item.tier for item in bench.pending()} == {Tier.FINAL}


def test_a_refusal_of_what_the_last_round_asked_brings_it_further(bench):
    bench.run(bench.judged())
    best, second, third = bench.ranked()
    bench.out = bench.out.with_name("fresh")
    finals = {best: Status.INCORRECT_NUMERICAL, second: Status.INCORRECT_NUMERICAL}
    error = JudgeError(
        problem_id=bench.problem_id, candidate_id=third, tier=Tier.FINAL, error="DeviceLost",
        message="no GPU",
    )  # fmt: skip
    errors = (error, replace(error, asked=2))
    bench.lines.clear()
    _, row = bench.run(replace(bench.judged(finals=finals), errors=errors))
    assert any("ends without its final verdict" in line for line in bench.lines)
    assert (row.state, row.passed) == (State.DONE, False)


def test_what_could_not_be_judged_is_told_and_counted_once(bench):
    bench.run(bench.judged())
    best, *_ = bench.ranked()
    error = JudgeError(
        problem_id=bench.problem_id, candidate_id=best, tier=Tier.FINAL, error="DeviceLost",
        message="no GPU",
    )  # fmt: skip
    file = replace(bench.judged(), errors=(error,))
    bench.lines.clear()
    _, row = bench.run(file, close=True)
    assert sum("DeviceLost: no GPU" in line for line in bench.lines) == 1
    assert row.state is State.VERDICT
    bench.lines.clear()
    rounds, _ = bench.run(file, close=True)
    assert rounds == 1
    assert not any("DeviceLost" in line for line in bench.lines)


def test_a_suite_that_goes_on_in_full_is_not_content_with_short_finals(bench):
    bench.run(bench.judged())
    finals = {bench.ranked()[0]: 0.5}
    _, row = bench.run(bench.judged(finals=finals))
    assert (row.state, row.result.final.short) == (State.DONE, True)
    _, row = bench.run(bench.judged(finals=finals), full=True)
    assert row.state is State.VERDICT
    assert [(item.tier, item.short) for item in bench.pending()] == [(Tier.FINAL, False)]
    _, row = bench.run(bench.judged(finals=finals, short=False), full=True)
    assert (row.state, row.result.final.short) == (State.DONE, False)
    assert bench.pending() == []
    _, row = bench.run(None)
    assert (row.state, row.result.final.short) == (State.DONE, False), "a full one is enough"
