"""A suite that begins from the kernels of another: whose, where, and what is refused."""

import json
from dataclasses import replace

import pytest
from sized_problem import SOURCE
from suite_figure_runs import Made, write_run

from hotloop.core.record import to_json
from hotloop.core.verdict import Status
from hotloop.errors import ConfigError, ForeignRun, StoreError
from hotloop.problems import list_kernelbench
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import (
    SUITE_FILE,
    Begun,
    Member,
    Suite,
    SuiteRecord,
    check_suite,
    read_suite,
)
from hotloop.suite.planning import plan_suite
from hotloop.suite.starting import read_starts

VERIFIED = Made(outcomes=(3.0, 1.0), finals={2: 1.0})
REFUSED = Made(outcomes=(1.0,), finals={1: Status.INCORRECT_NUMERICAL})
UNCONFIRMED = Made(outcomes=(1.0,))
NAMES = [f"kernelbench/1/{n}" for n in (1, 2, 3, 4)]
MODEL = "dir:answers"


def write_suite(folder, *made, generator="model", model=MODEL):
    """A suite of as many problems; None: its run was not begun."""
    members = [
        Member(name=name, level=1, number=n, title=f"{n}_Add", problem_id=f"p{n}")
        for n, name in enumerate(NAMES[: len(made)], 1)
    ]
    options = {"generator": generator, "model": model, "device": "cuda", "settings": {}}
    record = SuiteRecord(suite="kernelbench", problems=tuple(members), options=options, limits={})
    folder.mkdir(parents=True)
    (folder / SUITE_FILE).write_text(json.dumps(to_json(record)))
    for member, run in zip(members, made, strict=True):
        if run is not None:
            write_run(folder / member.folder, run, member.name)
    return folder


@pytest.fixture
def earlier(tmp_path):
    return write_suite(tmp_path / "earlier", VERIFIED, REFUSED, UNCONFIRMED, None)


@pytest.fixture
def plan(tmp_path):
    folder = tmp_path / "data" / "level1"
    folder.mkdir(parents=True)
    for n in (1, 2, 3, 4):
        (folder / f"{n}_Add.py").write_text(SOURCE.format(n=n))

    def plan(start, *, out=None, **options):
        given = {"device": "cpu", "data": tmp_path / "data", "start": start, **options}
        return plan_suite(list_kernelbench(tmp_path / "data"), out, given)

    return plan


def best_of(folder, run):
    with RunReader(folder / "runs" / run) as reader:
        return reader.attempts()[1].candidate_id


def test_only_a_kernel_that_passed_to_the_end_is_one(earlier):
    starts = read_starts(earlier, NAMES, {})
    assert list(starts.kernels) == NAMES[:1]
    start = starts.kernels[NAMES[0]]
    assert start.kernel.id == best_of(earlier, "1-1"), "the best one, not the first"
    assert (starts.generator, starts.model) == ("model", MODEL)
    assert start.path is None, "no file was written of it"
    assert start.author == MODEL


def test_each_problem_begins_from_its_own_and_the_others_from_nothing(earlier, plan):
    found = plan(earlier, model=MODEL)
    by_name = {job.member.name: job.plan for job in found.jobs}
    kernel = best_of(earlier, "1-1")
    assert {n: p.start and p.start.id for n, p in by_name.items()} == {
        NAMES[0]: kernel, **dict.fromkeys(NAMES[1:])
    }  # fmt: skip
    assert by_name[NAMES[0]].spec.options["start"] == kernel
    assert "start" not in by_name[NAMES[1]].spec.options
    assert found.without_start == tuple(NAMES[1:])
    assert found.record.options["start"].startswith("model, ")
    assert found.record.starts == {NAMES[0]: Begun(candidate_id=kernel, author=MODEL)}
    assert found.refused == {}


def test_a_damaged_journal_of_the_source_is_no_kernel_that_is_missing(earlier, plan):
    (earlier / "runs" / "1-1" / JOURNAL_FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="--start: .*1-1: the journal is damaged") as caught:
        plan(earlier, model=MODEL)
    assert "\n" not in str(caught.value)


def test_start_only_takes_these_kernels_their_author_and_nothing_else(earlier, plan):
    found = plan(earlier, start_only=True)
    (job,) = found.jobs
    assert (job.member.name, job.plan.spec.generator) == (NAMES[0], "model")
    assert job.plan.config.model == MODEL, "whose kernels they are"
    assert job.plan.start_only
    assert job.plan.spec.budget.max_candidates == 1
    assert sorted(found.refused) == NAMES[1:]
    assert all("no verified kernel" in t.message and t.skipped for t in found.refused.values())


def test_start_only_asks_for_no_key_and_no_recording(tmp_path, plan, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = write_suite(tmp_path / "keyed", VERIFIED, model="openai:some-model")
    assert plan(folder, start_only=True).jobs
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        plan(folder, model="openai:some-model")
    recorded = write_suite(tmp_path / "recorded", VERIFIED, model=f"replay:{tmp_path}/none")
    assert plan(recorded, start_only=True).jobs


def test_kernels_of_a_model_do_not_end_in_the_column_of_the_builtin_generator(earlier, plan):
    with pytest.raises(ConfigError, match=r"name the --model that goes on .*dir:answers"):
        plan(earlier)
    with pytest.raises(ConfigError, match="name the --model"):
        plan(earlier, model="builtin")


def test_start_only_does_not_give_kernels_to_another_model(earlier, plan):
    for other in ("dir:others", "builtin"):
        with pytest.raises(ConfigError, match=f"are counted as those of {MODEL}, got --model") as c:
            plan(earlier, start_only=True, model=other)
        assert "leave --model out" in str(c.value)
        assert "\n" not in str(c.value)
    assert plan(earlier, start_only=True, model=MODEL).jobs, "the same one may be named"


def test_templates_do_not_end_in_the_column_of_a_model(tmp_path, plan):
    folder = write_suite(tmp_path / "b", VERIFIED, generator="builtin", model=None)
    with pytest.raises(ConfigError, match=f"those of builtin, got --model {MODEL}; leave"):
        plan(folder, start_only=True, model=MODEL)
    with pytest.raises(ConfigError, match=f"would be counted as those of {MODEL}; leave --model"):
        plan(folder, model=MODEL)
    assert plan(folder, start_only=True, model="builtin").jobs[0].plan.spec.generator == "builtin"


def test_who_wrote_a_kernel_stays_known_over_several_suites(earlier, tmp_path):
    started = Made(outcomes=(1.0,), finals={1: 1.0}, action="start")
    middle = write_suite(tmp_path / "m", started, VERIFIED, started, model="dir:second")
    record = read_suite(middle)
    begun = {n: Begun(candidate_id="0" * 16, author=MODEL) for n in NAMES[:2]}
    (middle / SUITE_FILE).write_text(json.dumps(to_json(replace(record, starts=begun))))
    kernels = read_starts(middle, NAMES, {}).kernels
    assert [kernels[n].author for n in NAMES[:3]] == [MODEL, "dir:second", "a kernel's file"]


def test_the_builtin_generator_goes_on_with_its_own(tmp_path, plan):
    folder = write_suite(tmp_path / "b", VERIFIED, generator="builtin", model=None)
    found = plan(folder)
    assert found.jobs[0].plan.start is not None
    assert found.jobs[0].plan.spec.generator == "builtin"


def test_what_is_no_suite_or_has_no_kernel_is_one_line(earlier, plan, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", earlier / "runs" / "1-1"):
        with pytest.raises(ConfigError, match="--start: expected a kernel's file or the folder of"):
            plan(folder, model=MODEL)
    with pytest.raises(ConfigError, match="--start .*nowhere: expected a kernel's file or the fol"):
        plan(tmp_path / "nowhere", model=MODEL)
    bare = write_suite(tmp_path / "bare", REFUSED, UNCONFIRMED, None)
    with pytest.raises(ConfigError, match="expected verified kernels of 4 problem") as caught:
        plan(bare, model=MODEL)
    assert "\n" not in str(caught.value)


def test_a_suite_cannot_begin_from_itself(earlier, plan):
    with pytest.raises(ConfigError, match="this suite's own folder"):
        plan(earlier, model=MODEL, out=earlier)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"start": None}, "add --start"), ({"max_candidates": 3}, "drop --max-candidates")],
)
def test_start_only_without_sense_is_one_line(earlier, plan, options, words):
    given = {"start": earlier, "model": MODEL, **options}
    with pytest.raises(ConfigError, match=f"--start-only: .*{words}"):
        plan(start_only=True, **given)


def test_a_kernel_file_is_for_all_problems(tmp_path, plan):
    kernel = tmp_path / "k.py"
    kernel.write_text("import triton\nx = 1\n")
    found = plan(kernel, model=MODEL)
    assert len({job.plan.start.id for job in found.jobs}) == 1
    assert len(found.jobs) == 4
    assert (found.starts, found.without_start) == (None, ())


def test_precision_is_part_of_the_suite_and_of_its_folder(plan, tmp_path):
    shipped, strict = plan(None), plan(None, precision="strict")
    assert plan(None, precision="as_shipped").folder == shipped.folder
    assert strict.folder != shipped.folder
    assert (shipped.record.precision, strict.record.precision) == ("as_shipped", "strict")
    assert "precision" not in shipped.record.options, "as suites were that knew of none"
    both = zip(shipped.record.problems, strict.record.problems, strict=True)
    assert all(a.problem_id != b.problem_id for a, b in both)
    assert {job.plan.problem.policy.precision for job in strict.jobs} == {"strict"}
    ids = {m.name: m.problem_id for m in strict.record.problems}
    assert all(job.plan.problem.id == ids[job.member.name] for job in strict.jobs)
    with Suite(tmp_path / "s", shipped.record):
        pass
    check_suite(tmp_path / "s", plan(None, precision="as_shipped").record)
    refused = "was started with precision 'as_shipped', now it is 'strict'; repeat the former or"
    with pytest.raises(ForeignRun, match=refused):
        check_suite(tmp_path / "s", strict.record)
