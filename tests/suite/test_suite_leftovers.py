"""Several runs on a GPU and a shared budget, over a whole suite: grants, kills, figures."""

import threading
from dataclasses import dataclass

import pytest
from sized_problem import SOURCE

from hotloop.core.record import to_json
from hotloop.engine import StopFlag
from hotloop.errors import DeviceLost, WorkerDied
from hotloop.problems import list_kernelbench
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import Suite, read_suite
from hotloop.suite.planning import plan_suite
from hotloop.suite.runner import SuiteOptions, run_suite, standings
from hotloop.suite.standing import State
from hotloop.verify.seat_use import SeatUse

SHARE_S = 100.0
PROBLEMS = 4


class Killed(BaseException):
    """Ends a suite as a kill does: nothing is written down any more."""


@dataclass
class Searches:
    """Stands in for `api.run_plan`: spends what a problem's plan allows, or less and no more."""

    wants_s: dict
    """Seconds that each problem can use, by its number; the others use all they get."""
    killed_at: tuple = ()
    """Problem and limit at which the process is killed."""
    fails: tuple = ()

    def __post_init__(self):
        self.limits = []
        self.turns = []
        self._mutex = threading.Lock()
        self.meeting = None

    def __call__(self, plan, *, listen, stop, turns=None):
        number = int(plan.problem.name.rpartition("/")[2])
        limit_s = plan.spec.budget.wall_s
        with self._mutex:
            self.limits.append((number, limit_s))
            self.turns.append(turns)
        if self.meeting is not None:
            self.meeting.wait()
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            if (number, limit_s) == self.killed_at:
                raise Killed
            if number in self.fails:
                raise WorkerDied("the judge ended")
            wants_s = self.wants_s.get(number, 10**9)
            store.spend(max(0.0, min(limit_s, wants_s) - store.spent_s()))
            reason = "wall" if wants_s > limit_s else "exhausted"
            budget = to_json(plan.spec.budget)
            store.note("stopped", {"reason": reason, "budget": budget, "message": None})


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "level1"
    folder.mkdir(parents=True)
    for n in range(1, PROBLEMS + 1):
        (folder / f"{n}_Add.py").write_text(SOURCE.format(n=n))
    return tmp_path / "data"


@pytest.fixture
def bench(data, tmp_path):
    def run(searches, *, shared=True, seats=(None,), runs=1, stop=None):
        options = {"device": "cpu", "data": data, "budget": SHARE_S, "max_calls": None}
        plan = plan_suite(list_kernelbench(data), tmp_path / "s", options)
        chosen = SuiteOptions(
            seats=seats, search=searches, shared_budget=shared, runs_per_seat=runs
        )
        with Suite(plan.folder, plan.record) as suite:
            run_suite(suite, plan, chosen, tell=lambda *_: None, stop=stop or StopFlag())
            return {row.member.number: row for row in standings(suite)}

    run.folder = tmp_path / "s"
    return run


def spent(rows):
    return {number: row.result.spent_s for number, row in rows.items()}


def grants(bench):
    found = read_suite(bench.folder).grants
    return {int(name.rpartition("/")[2]): granted for name, granted in found.items()}


def test_every_problem_has_its_share_before_anything_is_granted(bench):
    searches = Searches({1: 20.0, 2: 30.0})
    rows = bench(searches)
    assert searches.limits[:PROBLEMS] == [(n, SHARE_S) for n in range(1, PROBLEMS + 1)]
    assert {number for number, _ in searches.limits[PROBLEMS:]} == {3, 4}
    assert sum(spent(rows).values()) == pytest.approx(SHARE_S * PROBLEMS)
    assert spent(rows)[1] == 20.0
    assert {n: g.wall_s for n, g in grants(bench).items()} == {
        n: s - SHARE_S for n, s in spent(rows).items() if s > SHARE_S
    }


def test_a_problem_that_is_open_again_gets_nothing_that_was_granted_away(bench):
    stuck = Searches({}, fails=(1,))
    bench(stuck)  # the first one failed at the machine, and keeps its share
    bench(Searches({1: 20.0, 2: 30.0}))
    before = sum(g.wall_s for g in grants(bench).values())
    assert before > 0
    with SqliteStore(bench.folder / "runs" / "1-1") as store:  # as if it were skipped, then retried
        store.note("stopped", {"reason": "interrupted", "budget": {}, "message": None})
    rows = bench(Searches({2: 30.0}))
    assert sum(spent(rows).values()) <= SHARE_S * PROBLEMS + 1e-6


def test_without_the_option_nothing_is_granted(bench):
    searches = Searches({1: 20.0})
    rows = bench(searches, shared=False)
    assert len(searches.limits) == PROBLEMS
    assert max(spent(rows).values()) == SHARE_S
    assert grants(bench) == {}


def test_the_same_command_again_has_nothing_left_to_do(bench):
    bench(Searches({1: 20.0, 2: 30.0}))
    before = read_suite(bench.folder).grants
    again = Searches({1: 20.0, 2: 30.0})
    bench(again)
    assert again.limits == []
    assert read_suite(bench.folder).grants == before


def test_a_killed_suite_goes_on_with_the_same_limits(bench, tmp_path):
    whole = Searches({1: 20.0, 2: 30.0})
    bench(whole)
    control, expected = grants(bench), whole.limits
    bench.folder.rename(tmp_path / "control")
    number, limit_s = expected[PROBLEMS + 1]
    killed = Searches({1: 20.0, 2: 30.0}, killed_at=(number, limit_s))
    with pytest.raises(Killed):
        bench(killed)
    assert grants(bench)[number].wall_s == limit_s - SHARE_S, "written before it was spent"
    rest = Searches({1: 20.0, 2: 30.0})
    rows = bench(rest)
    assert rest.limits[0] == (number, limit_s)
    assert killed.limits[:-1] + rest.limits == expected
    assert grants(bench) == control
    assert sum(spent(rows).values()) == pytest.approx(SHARE_S * PROBLEMS)


def test_what_failed_keeps_its_share(bench):
    searches = Searches({1: 20.0}, fails=(2,))
    rows = bench(searches)
    assert rows[2].state is State.FAILED
    others = sum(s for number, s in spent(rows).items() if number != 2)
    assert others <= SHARE_S * (PROBLEMS - 1)
    assert others == pytest.approx(SHARE_S * (PROBLEMS - 1))
    mended = bench(Searches({1: 20.0, 2: 60.0}))
    assert sum(spent(mended).values()) <= SHARE_S * PROBLEMS


def test_a_run_that_cannot_use_its_time_is_not_asked_for_ever(bench):
    class Stuck(Searches):
        def __call__(self, plan, **options):
            super().__call__(plan, **options)
            if plan.spec.budget.wall_s > SHARE_S:  # ends as if no verification fitted any more
                with SqliteStore(plan.folder) as store:
                    budget = to_json(plan.spec.budget)
                    store.note("stopped", {"reason": "wall", "budget": budget, "message": None})

    searches = Stuck(dict.fromkeys((2, 3, 4), 10.0) | {1: SHARE_S + 1})
    bench(searches)
    assert len(searches.limits) <= PROBLEMS + 2


def test_a_stop_grants_nothing_more(bench):
    stop = StopFlag()

    class Stopping(Searches):
        def __call__(self, plan, **options):
            super().__call__(plan, **options)
            if len(self.limits) == PROBLEMS:
                stop.request()

    searches = Stopping({1: 20.0})
    bench(searches, stop=stop)
    assert len(searches.limits) == PROBLEMS
    assert grants(bench) == {}


@pytest.mark.parametrize(("seats", "runs"), [((None,), 4), (("0", "1"), 2)])
def test_so_many_runs_at_a_time_work_on_each_gpu(bench, seats, runs):
    searches = Searches({})
    searches.meeting = threading.Barrier(4, timeout=20)  # nobody goes on before four are there
    rows = bench(searches, shared=False, seats=seats, runs=runs)
    assert {row.state for row in rows.values()} == {State.DONE}
    shared_by = [searches.turns.count(turns) for turns in dict.fromkeys(searches.turns)]
    assert shared_by == [runs] * len(seats), "runs of one GPU share its turns, and no others do"


def test_what_each_gpu_did_is_written_down_over_all_sessions(bench):
    class Working(Searches):
        def __call__(self, plan, *, turns, **options):
            ticket = turns.wait(turns.enter(lambda: None), None, lambda: False)
            turns.end(ticket, is_verdict=True)
            super().__call__(plan, **options)

    bench(Working({}), shared=False)
    first = read_suite(bench.folder).use["cpu"]
    assert first.verdicts == PROBLEMS
    assert first.wall_s > first.worked_s > 0
    bench(Working({1: 2.0}), shared=True)
    later = read_suite(bench.folder).use["cpu"]
    assert later.verdicts == PROBLEMS, "all were done: nothing was left to judge"
    assert later.wall_s > first.wall_s
    assert isinstance(later, SeatUse)


def test_a_lost_gpu_gets_no_further_run_whatever_ran_beside(bench):
    class Losing(Searches):
        def __call__(self, plan, **options):
            with self._mutex:
                self.limits.append((plan.gpu, None))
            self.meeting.wait()
            if plan.gpu == "0":
                raise DeviceLost("GPU 0 does not answer")

    searches = Losing({})
    searches.meeting = threading.Barrier(2, timeout=20)
    rows = bench(searches, shared=True, seats=("0",), runs=2)
    assert searches.limits == [("0", None)] * 2
    assert [rows[n].state for n in sorted(rows)] == [State.FAILED] * 2 + [State.OPEN] * 2
    assert grants(bench) == {}
