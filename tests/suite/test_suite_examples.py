"""Examples: which verified kernel of another problem a prompt shows, and which it never does."""

from dataclasses import replace

import pytest
from suite_figure_runs import KERNEL, Made, write_run

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


@pytest.fixture
def spec():
    return replace(make_spec(make_problem()), language="triton")


def made(folder, name, *ops, outcomes=(1.0,), **fields):
    write_run(folder / name, Made(outcomes=outcomes, info={"graph": graph(*ops)}, **fields), name)


def found(folder, spec, shown=frozenset(), about=MINE):
    example = Shelf([folder], spec).find(about, shown)
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


def test_a_problem_never_sees_itself_nor_another_language(tmp_path, spec):
    made(tmp_path, "other", *CONV_RELU)
    with RunReader(tmp_path / "other") as reader:
        own = replace(spec, problem_id=reader.problem().id)
    assert found(tmp_path, own) is None
    assert found(tmp_path, replace(spec, language="cuda")) is None
    assert found(tmp_path, spec) == "other"


@pytest.mark.parametrize("mine", [True, False])
@pytest.mark.parametrize("theirs", [True, False])
def test_nothing_crosses_a_held_out_split(tmp_path, spec, mine, theirs):
    made(tmp_path, "other", *CONV_RELU)
    with SqliteStore(tmp_path / "apart") as store, RunReader(tmp_path / "other") as reader:
        options = {HELD_OUT: True} if theirs else {}
        problem = replace(reader.problem(), name="apart", source="# y\n")
        asked = replace(reader.spec(), problem_id=problem.id, options=options)
        store.begin(asked, problem)
        store.note("setup", dict(reader.notes("setup")[0]))
        attempt = reader.attempts()[0]
        candidate = reader.candidate(attempt.candidate_id)
        store.propose(replace(attempt, verdict=None, objective=None, finished_s=None), candidate)
        store.conclude(attempt)
    asking = replace(spec, options={HELD_OUT: True} if mine else {})
    seen = found(tmp_path / "apart", asking)
    assert seen == ("apart" if mine == theirs else None)


def test_of_equally_alike_ones_that_of_the_nearer_size_and_intensity(tmp_path, spec):
    for name, io_bytes, flops, ms in (("far", 4 << 20, None, 0.5), ("near", 8, None, 1.0),
                                      ("dense", 8, 8e6, 0.4)):  # fmt: skip
        fields = {"graph": graph(*CONV_RELU), "io_bytes": io_bytes, "flops": flops}
        write_run(tmp_path / name, Made(outcomes=(ms,), info=fields), name)
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
    example = Shelf([tmp_path], spec).find(MINE, frozenset())
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
    assert open_shelf(spec) is None
    asking = replace(spec, options={EXAMPLES: [str(tmp_path / "suite")]})
    assert open_shelf(asking).find(MINE, frozenset()) is not None


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
