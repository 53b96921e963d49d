"""Each policy's flags hold inside its block, whatever a problem's file set, and not after it."""

from contextlib import contextmanager

import pytest
import torch
import torch.compiler.config
from problem_files import forward

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.errors import ProblemError
from hotloop.problems.precision import with_precision
from hotloop.worker.board import Board
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.load import load_problem
from hotloop.worker.precision import PRECISIONS, applied, take_on
from hotloop.worker.reference import build_reference
from hotloop.worker.sequential import round_to_tf32

EXPECTED = {
    "as_shipped": (False, True, "highest"),
    "strict": (False, False, "highest"),
    "tf32": (True, True, "high"),
}
"""TF32 in matrix products, in convolutions, and what both are called together."""
MATMUL, CUDNN, BACKENDS = torch.backends.cuda.matmul, torch.backends.cudnn, torch.backends


def flags():
    conv = {CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision}
    assert len(conv) == 1, "convolutions and recurrent layers alike"
    assert (MATMUL.fp32_precision == "tf32") == MATMUL.allow_tf32, "both names say the same"
    assert (conv == {"tf32"}) == CUDNN.allow_tf32
    return MATMUL.allow_tf32, CUDNN.allow_tf32, torch.get_float32_matmul_precision()


@contextmanager
def kept():
    """Put back what a file set, in an order that torch takes."""
    try:
        yield
    finally:
        BACKENDS.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
        CUDNN.allow_tf32 = True
        CUDNN.conv.fp32_precision = CUDNN.rnn.fp32_precision = "tf32"
        BACKENDS.mkldnn.matmul.fp32_precision = "none"


def nothing():
    pass


def older_names():
    MATMUL.allow_tf32, CUDNN.allow_tf32 = True, False


def together():
    torch.set_float32_matmul_precision("high")


def everywhere():
    BACKENDS.fp32_precision = "tf32"


def convolutions_alone():
    CUDNN.conv.fp32_precision = "ieee"  # the older name cannot be read after this


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize(
    "file_sets", [nothing, older_names, together, everywhere, convolutions_alone]
)
def test_a_policy_holds_whatever_the_file_set(name, file_sets):
    with kept():
        file_sets()
        before = (MATMUL.fp32_precision, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision)
        with applied(PRECISIONS[name]):
            assert flags() == EXPECTED[name]
        after = (MATMUL.fp32_precision, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision)
        assert after == before


def test_strict_sums_of_16_bit_products_are_wide():
    with applied(PRECISIONS["strict"]):
        assert not MATMUL.allow_bf16_reduced_precision_reduction
        assert not MATMUL.allow_fp16_reduced_precision_reduction
    assert MATMUL.allow_bf16_reduced_precision_reduction


def test_blocks_nest_and_graphs_of_two_policies_are_kept_apart():
    config = torch.compiler.config
    own, tags = config.cache_key_tag, set()
    with applied(PRECISIONS["tf32"]):
        tags.add(config.cache_key_tag)
        with applied(PRECISIONS["strict"]):
            tags.add(config.cache_key_tag)
            assert flags() == EXPECTED["strict"]
        assert flags() == EXPECTED["tf32"]
    assert len({own, *tags}) == 3
    assert config.cache_key_tag == own


@pytest.mark.parametrize("name", EXPECTED)
def test_a_process_takes_a_policy_on_for_good(name):
    with applied(PRECISIONS["bf16"]):  # which puts everything back
        take_on(name)
        assert flags() == EXPECTED[name]


def test_an_unknown_policy_is_refused():
    with pytest.raises(ProblemError, match="expected a precision policy"):
        take_on("half")


class Process:
    """Answers every request, and keeps it."""

    def exchange(self, message, timeout_s, fds=()):
        self.message = message
        return {}, []

    def left_running(self):
        return 0


PRODUCT = forward("x @ y", "torch.rand(48, 256) - 0.5", "torch.rand(256, 48) - 0.5").problem


def reference_of(name):
    return build_reference(load_problem(with_precision(PRODUCT, name), device="cpu"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_candidate_is_told_the_policy_of_its_problem(name):
    reference = reference_of(name)
    draw = reference.draw(1, "shipped")
    board = Board.build(reference, draw, reference.eager(draw))
    kernel = Candidate(language="triton", sources=(SourceFile(path="k.py", text=""),), entry="k.py")
    process = Process()
    Evaluation(process, board, kernel, "cpu").load(())
    assert process.message["precision"] == name


@pytest.mark.parametrize(("name", "passes"), [("as_shipped", 0), ("strict", 0), ("tf32", 1)])
def test_the_gate_follows_the_policy(name, passes):
    reference = reference_of(name)
    draw = reference.draw(3, "shipped")
    (golden,) = reference.golden(draw)
    members = [outputs[0] for outputs in reference.envelope(draw).values()]
    bound = make_bound(golden, members, torch.float32, exact=False)
    x, y = draw.inputs
    assert gate(x @ y, golden, bound).passed, "full float32 passes under each"
    rounded = round_to_tf32(x) @ round_to_tf32(y)
    assert gate(rounded, golden, bound).passed == bool(passes)
