"""A suite's runs over GPUs that are not there: who takes what, and what goes on after a failure."""

import threading

import pytest
from sized_problem import SOURCE

from hotloop.core.event import Event
from hotloop.engine import StopFlag
from hotloop.errors import AuthError, ConfigError, DeviceLost, ProblemError, WorkerDied
from hotloop.problems import list_kernelbench
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import Suite, read_suite
from hotloop.suite.planning import SuiteExtras, plan_suite
from hotloop.suite.runner import SuiteOptions, run_suite, standings
from hotloop.suite.standing import State


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "level1"
    folder.mkdir(parents=True)
    for n in range(1, 6):
        (folder / f"{n}_Add.py").write_text(SOURCE.format(n=n))
    return tmp_path / "data"


class Searches:
    """Stands in for `api.run_plan`: notes who was run where, and ends or fails as told."""

    def __init__(self, **failures):
        self.failures = failures
        self.seen = []
        self.on_run = lambda plan, stop: None
        self._mutex = threading.Lock()

    def __call__(self, plan, *, listen, stop, turns=None):
        number = plan.problem.name.rpartition("/")[2]
        with self._mutex:
            self.seen.append((number, plan.gpu))
        self.on_run(plan, stop)
        if (error := self.failures.get(f"p{number}")) is not None:
            raise error
        listen(Event(kind="warning", payload={"message": "mind the gap"}))
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            budget = {
                "wall_s": plan.spec.budget.wall_s, "max_candidates": None, "max_calls": None,
                "max_tokens": None, "max_usd": None,
            }  # fmt: skip
            store.note("stopped", {"reason": "exhausted", "budget": budget, "message": None})

    @property
    def numbers(self):
        return sorted(number for number, _ in self.seen)


@pytest.fixture
def bench(data, tmp_path):
    """Run the suite once; return what ended it, and where each problem stands."""
    lines = []

    def tell(job, line):
        lines.append((job.member.number, line))

    def run(searches, *, seats=(None,), stop=None, retry=False, **options):
        given = {"device": "cpu", "data": data, **options}
        plan = plan_suite(list_kernelbench(data), tmp_path / "s", given)
        chosen = SuiteOptions(seats=seats, search=searches, retry_skipped=retry)
        with Suite(plan.folder, plan.record) as suite:
            fatal = run_suite(suite, plan, chosen, tell=tell, stop=stop or StopFlag())
            return fatal, {row.member.number: row for row in standings(suite)}

    run.lines = lines
    run.folder = tmp_path / "s"
    return run


def states(rows):
    return [rows[n].state for n in sorted(rows)]


def test_every_problem_is_run_once_and_told(bench):
    searches = Searches()
    fatal, rows = bench(searches)
    assert (fatal, states(rows)) == (None, [State.DONE] * 5)
    assert searches.seen == [(str(n), None) for n in range(1, 6)]
    assert (1, "mind the gap") in bench.lines
    assert (5, "done") in bench.lines


def test_what_is_done_is_not_begun_again(bench):
    bench(Searches())
    again = Searches()
    _, rows = bench(again)
    assert (again.seen, states(rows)) == ([], [State.DONE] * 5)


def test_a_larger_budget_goes_on(bench):
    searches = Searches()
    bench(searches, budget="1m", max_candidates=None)
    with SqliteStore(bench.folder / "runs" / "1-1") as store:
        budget = {
            "wall_s": 60.0, "max_candidates": None, "max_calls": None, "max_tokens": None,
            "max_usd": None,
        }  # fmt: skip
        store.note("stopped", {"reason": "wall", "budget": budget, "message": None})
    same, larger = Searches(), Searches()
    bench(same, budget="1m")
    bench(larger, budget="2m")
    assert (same.numbers, larger.numbers) == ([], ["1"])


def test_each_gpu_runs_one_at_a_time_and_all_of_them_work(bench):
    together = threading.Barrier(2, timeout=20)
    busy, most = {}, []
    mutex = threading.Lock()

    def on_run(plan, stop):
        with mutex:
            busy[plan.gpu] = busy.get(plan.gpu, 0) + 1
            most.append(busy[plan.gpu])
        if plan.problem.name.endswith(("/1", "/2")):
            together.wait()  # neither comes on unless the other GPU works at the same time
        with mutex:
            busy[plan.gpu] -= 1

    searches = Searches()
    searches.on_run = on_run
    _, rows = bench(searches, seats=("0", "3"))
    assert states(rows) == [State.DONE] * 5
    assert {gpu for _, gpu in searches.seen} == {"0", "3"}
    assert max(most) == 1


@pytest.mark.parametrize(
    ("error", "state", "again"),
    [
        (ProblemError("forward raises"), State.SKIPPED, False),
        (ConfigError("no such recording"), State.SKIPPED, True),
        (WorkerDied("the judge ended"), State.FAILED, True),
        (RuntimeError("a bug of ours"), State.FAILED, True),
    ],
)
def test_one_that_fails_is_named_and_the_others_go_on(bench, error, state, again):
    fatal, rows = bench(Searches(p2=error))
    assert fatal is None
    assert states(rows) == [State.DONE, state, State.DONE, State.DONE, State.DONE]
    assert rows[2].reason == f"{type(error).__name__}: {error}"
    bugs = [line for number, line in bench.lines if "a bug of hotloop, at /" in line]
    assert len(bugs) == isinstance(error, RuntimeError)
    assert read_suite(bench.folder).troubles["kernelbench/1/2"].message == str(error)
    second = Searches()
    _, rows = bench(second)
    assert second.numbers == (["2"] if again else [])
    assert rows[2].state is (State.DONE if again else state)


def test_what_was_skipped_is_tried_again_when_asked(bench):
    bench(Searches(p2=ProblemError("does not fit on the device")))
    _, rows = bench(Searches(), retry=True)
    assert states(rows) == [State.DONE] * 5
    assert read_suite(bench.folder).troubles == {}


def test_a_lost_gpu_gets_no_further_problem_and_the_other_goes_on(bench):
    is_lost = threading.Event()

    def on_run(plan, stop):
        if plan.gpu == "0":
            is_lost.set()
            raise DeviceLost("GPU 0 does not answer")
        assert is_lost.wait(20)

    searches = Searches()
    searches.on_run = on_run
    _, rows = bench(searches, seats=("0", "1"))
    assert [gpu for _, gpu in searches.seen].count("0") == 1
    assert sorted(states(rows)) == sorted([State.DONE] * 4 + [State.FAILED])


def test_a_key_that_is_refused_ends_the_suite(bench):
    searches = Searches(p2=AuthError("the key is not accepted"))
    fatal, rows = bench(searches)
    assert isinstance(fatal, AuthError)
    assert searches.numbers == ["1", "2"]
    assert states(rows) == [State.DONE, State.FAILED] + [State.OPEN] * 3


def test_the_first_interrupt_drains_and_the_same_command_goes_on(bench):
    searches = Searches()
    searches.on_run = lambda plan, stop: stop.request()
    _, rows = bench(searches)
    assert searches.numbers == ["1"]
    assert states(rows) == [State.DONE] + [State.OPEN] * 4
    rest = Searches()
    bench(rest)
    assert rest.numbers == ["2", "3", "4", "5"]


def test_a_problem_that_does_not_parse_is_skipped_and_can_be_mended(bench, data):
    broken = data / "level1" / "3_Add.py"
    broken.write_text("def (")
    searches = Searches()
    _, rows = bench(searches)
    assert searches.numbers == ["1", "2", "4", "5"]
    assert rows[3].state is State.SKIPPED
    assert "kernelbench/1/3" in rows[3].reason


def test_a_setting_that_no_problem_has_is_the_users_mistake(bench):
    with pytest.raises(ConfigError, match="no constant M"):
        bench(Searches(), settings={"M": 2})
    assert not bench.folder.exists()


def test_the_default_folder_is_the_same_for_the_same_suite(data):
    entries = list_kernelbench(data)

    def folder(chosen=entries, **options):
        return plan_suite(chosen, None, {"device": "cpu", "data": data, **options}).folder

    assert folder() == folder(budget="1m") == folder(parallel=3)
    others = {folder(), folder(seed=1), folder(chosen=entries[:2]), folder(settings={"N": 9})}
    assert len(others) == 4


def test_held_out_problems_and_examples_make_it_another_suite(data, tmp_path):
    entries = list_kernelbench(data)
    given = {"device": "cpu", "data": data, "model": f"dir:{tmp_path}"}
    plain = plan_suite(entries, None, given)
    split = plan_suite(entries, None, given, SuiteExtras(held_out=frozenset({"kernelbench/1/2"})))
    taught = plan_suite(entries, None, {**given, "examples": [tmp_path]})
    said = {tuple(job.plan.spec.options.get("held_out", ())) for job in split.jobs}
    assert said == {("kernelbench/1/2",)}
    assert split.record.options["held_out"] == ["kernelbench/1/2"]
    assert taught.record.options["examples"] == [str(tmp_path)]
    assert not {"held_out", "examples"} & set(plain.record.options)
    assert len({plain.folder, split.folder, taught.folder}) == 3


def test_the_final_tier_of_a_suite_is_the_short_one_unless_the_full_one_is_asked_for(data):
    entries, given = list_kernelbench(data), {"device": "cpu", "data": data}
    plain = plan_suite(entries, None, given)
    full = plan_suite(entries, None, given, SuiteExtras(short_final=False))
    assert {job.plan.spec.has_short_final for job in plain.jobs} == {True}
    assert {job.plan.spec.has_short_final for job in full.jobs} == {False}
    assert full.folder == plain.folder, "how it ends does not make it another search"
