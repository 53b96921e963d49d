"""Examples: which verified kernel of another problem a prompt shows, and which it never does."""

import shutil
from dataclasses import replace

import pytest
from suite_figure_runs import KERNEL, Made, measured, write_run

from hotloop.core.graph import Arg, Graph, Node
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Status, Tier
from hotloop.retrieval.kinship import distance, leading, likeness, operators
from hotloop.retrieval.shelf import EXAMPLES, HELD_OUT, MAX_CHARS, Shelf, open_shelf
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import make_problem, make_spec


def graph(*ops):
    nodes = [
        Node(name=f"n{i}", op="opaque", attrs={"target": op}, shape=(), dtype="float32")
        if op.startswith("aten.")
        else Node(name=f"n{i}", op=op, shape=(), dtype="float32")
        for i, op in enumerate(ops)
    ]
    return Graph(nodes=tuple(nodes), outputs=(nodes[-1].name,))


def info(*ops, problem_id="mine"):
    return ProblemInfo(
        problem_id=problem_id, device="cuda", inputs=(), outputs=(), parameters=(),
        graph=graph(*ops), attention=None, flops=None, io_bytes=4, rankable=True,
    )  # fmt: skip


CONV_RELU = ("input", "parameter", "aten.conv2d.default", "relu")
MINE = info("input", "parameter", "aten.conv2d.default", "relu", "mul")


PROBLEM = make_problem()


@pytest.fixture
def spec():
    return replace(make_spec(PROBLEM), language="triton")


def made(folder, name, *ops, outcomes=(1.0,), **fields):
    source = f"def of_{name.replace('-', '_')}(): pass\n"
    made = Made(outcomes=outcomes, info={"graph": graph(*ops)}, problem=source, **fields)
    write_run(folder / name, made, name)


def found(folder, spec, shown=frozenset(), about=MINE):
    example = Shelf([folder], spec, PROBLEM).find(about, shown)
    return None if example is None else example.problem.name


def test_the_most_alike_kernel_is_shown(tmp_path, spec):
    made(tmp_path, "near", *CONV_RELU)
    made(tmp_path, "far", *CONV_RELU[:3], "tanh", "sub", outcomes=(0.5,))
    assert found(tmp_path, spec) == "near"


def test_of_equals_the_fastest_that_passed_the_higher_tier(tmp_path, spec):
    made(tmp_path, "slow", *CONV_RELU, outcomes=(1.5,))
    made(tmp_path, "fast", *CONV_RELU, outcomes=(0.5,))
    assert found(tmp_path, spec) == "fast"
    made(tmp_path, "final", *CONV_RELU, outcomes=(1.0,), finals={1: 1.0})
    assert found(tmp_path, spec) == "final"


@pytest.mark.parametrize(
    ("ops", "outcomes", "fields"),
    [
        (CONV_RELU, (Status.INCORRECT_NUMERICAL,), {}),
        (CONV_RELU, (1.0,), {"finals": {1: Status.INCORRECT_NUMERICAL}}),
        (CONV_RELU, (2.5,), {}),  # slower than the fastest baseline
        (CONV_RELU, (1.0,), {"source": KERNEL + "#" * MAX_CHARS}),
        (("matmul", "relu", "mul"), (1.0,), {}),  # another leading operator
        (("aten.conv2d.default", *["tanh"] * 9), (1.0,), {}),
        (CONV_RELU, (1.0,), {"is_loaded": False}),
        (CONV_RELU, (), {}),
    ],
)
def test_what_is_no_example(tmp_path, spec, ops, outcomes, fields):
    made(tmp_path, "other", *ops, outcomes=outcomes, **fields)
    assert found(tmp_path, spec) is None


@pytest.mark.parametrize(
    ("first", "then", "is_shown"),
    [(1.0, Status.INCORRECT_NUMERICAL, False), (Status.INCORRECT_NUMERICAL, 1.0, True)],
)
def test_of_two_final_verdicts_on_a_kernel_the_last_one_counts(
    tmp_path, spec, first, then, is_shown
):
    made(tmp_path, "other", *CONV_RELU, finals={1: first})
    made(tmp_path, "twin", *CONV_RELU, finals={1: then})
    with SqliteStore(tmp_path / "other") as store, RunReader(tmp_path / "twin") as twin:
        store.note("final", twin.notes("final")[0])
    shutil.rmtree(tmp_path / "twin")
    assert found(tmp_path, spec) == ("other" if is_shown else None)


def test_a_problem_never_sees_itself_nor_another_language(tmp_path, spec):
    made(tmp_path, "other", *CONV_RELU)
    assert found(tmp_path, replace(spec, problem_name="other")) is None
    assert found(tmp_path, replace(spec, language="cuda")) is None
    assert found(tmp_path, spec) == "other"


def test_the_same_program_with_other_constants_is_the_same_problem(tmp_path, spec):
    mine = make_problem("mine", "N = 4\n\ndef f(x):\n    return x + N\n")
    write_run(tmp_path / "a", Made(outcomes=(1.0,), info={"graph": MINE.graph},
                                   problem="N = 8\ndef f(x): return x + N\n"), "a")  # fmt: skip
    assert Shelf([tmp_path], spec, mine).find(MINE, frozenset()) is None
    assert found(tmp_path, spec) == "a"


@pytest.mark.parametrize(
    ("mine", "theirs", "is_shown"),
    [
        ((), (), True),
        (("other",), (), False),  # it is held out here: a run made before the split, say
        ((PROBLEM.name,), (), False),
        ((PROBLEM.name, "other"), (), True),
        ((), ("other",), False),  # held out where it was found
        ((), (PROBLEM.name,), False),
        ((), (PROBLEM.name, "other"), True),
        ((PROBLEM.name,), ("other",), False),
        (("another",), ("another",), True),
    ],
)
def test_nothing_crosses_a_held_out_split(tmp_path, spec, mine, theirs, is_shown):
    options = {HELD_OUT: list(theirs)} if theirs else {}
    made(tmp_path, "other", *CONV_RELU, options=options)
    asking = replace(spec, options={HELD_OUT: list(mine)} if mine else {})
    assert found(tmp_path, asking) == ("other" if is_shown else None)


def test_a_journal_of_another_version_is_passed_over(tmp_path, spec):
    made(tmp_path, "other", *CONV_RELU)
    with SqliteStore(tmp_path / "other") as store:
        info = dict(store.notes("setup")[0]["info"], from_the_future=1)
        store.note("setup", {"info": info, "setup_s": 1.0})
    assert found(tmp_path, spec) is None


def test_a_problem_that_no_prompt_could_show_gives_no_example(tmp_path, spec):
    made = Made(outcomes=(1.0,), info={"graph": graph(*CONV_RELU)}, problem="no python (")
    write_run(tmp_path / "other", made, "other")
    assert found(tmp_path, spec) is None


def test_a_final_ratio_that_is_not_claimed_is_not_told(tmp_path, spec):
    unclaimed = measured(1.0, is_final=False)
    made(tmp_path, "other", *CONV_RELU, finals={1: unclaimed})
    example = Shelf([tmp_path], spec, PROBLEM).find(MINE, frozenset())
    assert (example.tier, example.speedup) == (Tier.FINAL, None)


def test_of_equally_alike_ones_that_of_the_nearer_size_and_intensity(tmp_path, spec):
    for name, io_bytes, flops, ms in (("far", 4 << 20, None, 0.5), ("near", 8, None, 1.0),
                                      ("dense", 8, 8e6, 0.4)):  # fmt: skip
        fields = {"graph": graph(*CONV_RELU), "io_bytes": io_bytes, "flops": flops}
        source = f"def {name}(): pass\n"
        write_run(tmp_path / name, Made(outcomes=(ms,), info=fields, problem=source), name)
    assert found(tmp_path, spec) == "near"
    assert distance(MINE, MINE) == 0.0
    assert distance(replace(MINE, io_bytes=4 << 10), MINE) == 10.0
    assert distance(replace(MINE, flops=4.0 * 1024), MINE) == 10.0


def test_a_depthwise_convolution_is_a_class_of_its_own():
    def conv(channels, per_filter):
        shapes = {"x": (8, channels, 64, 64), "w": (channels, per_filter, 3, 3)}
        leaves = [Node(name=n, op="input", shape=s, dtype="float32") for n, s in shapes.items()]
        node = Node(name="y", op="opaque", args=(Arg(node="x"), Arg(node="w")), shape=(),
                    attrs={"target": "aten.conv2d.default"}, dtype="float32")  # fmt: skip
        return replace(MINE, graph=Graph(nodes=(*leaves, node), outputs=("y",)))

    assert leading(operators(conv(32, 1))) == "depthwise convolution"
    assert leading(operators(conv(32, 32))) == "convolution"
    assert leading(operators(conv(1, 1))) == "convolution"


def test_what_was_shown_is_not_shown_again(tmp_path, spec):
    made(tmp_path, "other", *CONV_RELU)
    example = Shelf([tmp_path], spec, PROBLEM).find(MINE, frozenset())
    assert example.tier is Tier.FAST
    assert example.speedup == ("compile", 2.0)
    assert example.mark == f"other {example.candidate.id}"
    assert found(tmp_path, spec, frozenset({example.mark})) is None


def test_a_run_that_cannot_be_read_is_passed_over_and_one_that_goes_on_is_read_anew(tmp_path, spec):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / JOURNAL_FILE).write_bytes(b"no journal")
    assert found(tmp_path, spec) is None
    made(tmp_path, "other", *CONV_RELU)
    assert found(tmp_path, spec) == "other"
    assert found(tmp_path / "gone", spec) is None


def test_runs_of_a_suite_are_found(tmp_path, spec):
    made(tmp_path / "suite" / "runs", "1-1", *CONV_RELU)
    assert found(tmp_path / "suite", spec) == "1-1"
    assert open_shelf(spec, PROBLEM) is None
    asking = replace(spec, options={EXAMPLES: [str(tmp_path / "suite")]})
    assert open_shelf(asking, PROBLEM).find(MINE, frozenset()) is not None


def test_likeness_counts_operators_and_the_leading_one_decides():
    conv = operators(info("input", "aten.conv_transpose3d.input", "relu", "reshape"))
    assert conv == {"conv_transpose3d": 1, "relu": 1}
    assert leading(conv) == "transposed convolution"
    assert leading(operators(info("aten.avg_pool2d.default"))) == "pooling"
    assert leading(operators(info("aten.smooth_l1_loss.default"))) == "loss"
    assert leading(operators(info("mul", "tanh"))) == "elementwise"
    assert likeness(conv, conv) == 1.0
    assert likeness(conv, operators(info("relu"))) == 0.5
    assert likeness(conv, operators(info("tanh"))) == 0.0
    assert likeness(operators(info("input")), operators(info("input"))) == 0.0
