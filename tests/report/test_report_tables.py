"""A suite's tables say what its figures say, and no more than was measured."""

from report_suites import Made, measured, write_suite

from hotloop.cli.report import read_page
from hotloop.core.audit import Audit
from hotloop.core.verdict import Status
from hotloop.report import tables

SOLVED = Made(outcomes=(1.0,), finals={1: 1.0})
FAILED = Made(outcomes=(Status.INCORRECT_NUMERICAL,))
WAITING = Made(reason="waiting")


def column_of(tmp_path, *problems):
    page = read_page(write_suite(tmp_path / "s", problems))
    (column,) = page.figures["columns"].values()
    return column, tables.groups_of(column)


def row(table, *start):
    (found,) = [r for r in table.rows if tuple(r[: len(start)]) == start]
    return dict(zip(table.head, found, strict=True))


def test_correct_by_level_and_population(tmp_path):
    faked = Made(outcomes=(1.0,), finals={1: 1.0}, audit=Audit(key="k", reasons=("zeros pass",)))
    other = Made(level=2, outcomes=(1.0,), finals={1: 1.0})
    _, groups = column_of(tmp_path, SOLVED, FAILED, faked, other)
    table = tables.correct_table(groups)
    assert len(table.rows) == 9, "two levels and both together, three populations each"
    found = row(table, "level 1", "all")
    assert (found["count"], found["correct"], found["%"]) == ("3", "2", "66.7")
    found = row(table, "level 1", "rankable")
    assert (found["count"], found["correct"], found["%"]) == ("2", "1", "50.0")
    assert row(table, "all levels", "all")["correct"] == "3"


def test_speed_counts_failures_as_one(tmp_path):
    _, groups = column_of(tmp_path, SOLVED, FAILED)
    found = row(tables.speed_table(groups, "all"), "level 1", "eager")
    # Ratios 4 and 1.0 for the failure: mean 2, median 2.5; one win of two.
    assert (found["geo. mean"], found["median"], found["best"]) == ("2.00x", "2.50x", "4.00x")
    assert (found["fast_0"], found["fast_2"], found["wins"]) == ("0.500", "0.500", "1")
    assert len(tables.speed_table(groups, "all").rows) == 3


def test_a_mean_of_failures_alone_is_not_measured(tmp_path):
    _, groups = column_of(tmp_path, FAILED)
    found = row(tables.speed_table(groups, "all"), "level 1", "torch.compile")
    assert found["geo. mean"] == found["median"] == found["best"] == "not measured"
    assert (found["fast_0"], found["wins"]) == ("0.000", "0"), "it was judged, and counts"


def test_what_nobody_judged_yet_has_no_figures(tmp_path):
    _, groups = column_of(tmp_path, WAITING, Made(is_run=False))
    correct = row(tables.correct_table(groups), "level 1", "all")
    assert correct["correct"] == correct["%"] == correct["fast tier"] == "not measured"
    speed = row(tables.speed_table(groups, "all"), "level 1", "eager")
    assert speed["fast_0"] == speed["wins"] == "not measured"
    memory = row(tables.memory_table(groups), "level 1")
    assert memory["median"] == memory["most"] == "not measured"


def test_a_fast_verdict_is_no_final_one(tmp_path):
    waiting = Made(outcomes=(1.0,), reason="waiting")
    _, groups = column_of(tmp_path, waiting, WAITING)
    correct = row(tables.correct_table(groups), "level 1", "all")
    assert (correct["correct"], correct["fast tier"]) == ("not measured", "1")
    assert row(tables.speed_table(groups, "all"), "level 1", "eager")["fast_0"] == "not measured"
    over = Made(outcomes=(Status.TIMEOUT,))
    _, groups = column_of(tmp_path / "b", waiting, over)
    assert row(tables.correct_table(groups), "level 1", "all")["correct"] == "0", "one is over"


def test_what_it_took_and_how_much_memory(tmp_path):
    late = Made(outcomes=(Status.TIMEOUT, 2.0, 1.0), finals={3: 1.0})
    _, groups = column_of(tmp_path, late, FAILED)
    table = tables.spent_table(groups)
    found = row(table, "level 1", "best")
    assert (found["time"], found["calls"], found["tokens"]) == ("30 s", "3", "300")
    assert (found["dollars"], found["came there"], found["never"]) == ("$1.50", "1", "1")
    assert row(table, "level 1", "first correct, fast tier")["calls"] == "2"
    assert row(tables.memory_table(groups), "level 1")["median"] == "1.00 GiB"


def test_library_anchors_stand_apart(tmp_path):
    source = (
        "import torch, triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n"
        "    tl.store(x, {n})\nclass ModelNew(torch.nn.Module):\n    def forward(self, a):\n"
        "        c = torch.matmul(a, a)\n        k[(1,)](c)\n        return c\n"
    )
    leaning = Made(outcomes=(1.0,), finals={1: 1.0}, source=source)
    _, groups = column_of(tmp_path, leaning, SOLVED)
    table = tables.own_table(groups)
    assert "1 lean on a library" in table.note
    assert row(table, "level 1", "eager")["fast_0"] == "0.500"
    assert row(tables.speed_table(groups, "all"), "level 1", "eager")["fast_0"] == "1.000"


def test_lists_lead_to_their_problems(tmp_path):
    unclaimed = Made(outcomes=(1.0,), finals={1: measured(1.0, is_final=True, speedup_ci={})})
    column, groups = column_of(tmp_path, SOLVED, FAILED, unclaimed)
    listed = {t.title: t for t in tables.listed_tables(column, {"1/2": "1-2"})}
    assert set(listed) == {"Failed verdicts by class", "Not solved"}, "no empty list"
    assert listed["Not solved"].rows == [(tables.Link("1/2", "#p-1-2"), "NO_KERNEL", "calls")]
    assert row(tables.speed_table(groups, "all"), "level 1", "eager")["unclaimed"] == "1"


def test_precision_policies_stand_beside_each_other(tmp_path):
    column, _ = column_of(tmp_path, SOLVED, FAILED)
    group = column["together"]["all"]
    side = {
        "generator": "model", "device": "cuda", "level": 1, "problems": 2,
        "policies": {"as_shipped": group, "strict": group},
        "eager_rounds_convolutions_to_tf32": {"yes": 1, "no": 0, "unknown_or_none": 1},
    }  # fmt: skip
    (table,) = tables.precision_tables([side])
    found = row(table, "strict")
    assert (found["correct"], found["over eager"]) == ("1", "2.00x")
    assert found["over eager_tf32"] == "not measured", "no such baseline was asked for"
    assert "on 1 of these problems, not on 0, unknown on 1" in table.note
