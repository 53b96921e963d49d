"""An audit survives JSON; journals of before it are read as they are."""

from hotloop.core.audit import Audit, FakeGroup, Trial, TrialState
from hotloop.core.problem import ProblemInfo, TensorSpec
from hotloop.core.record import from_json, to_json

AUDIT = Audit(
    key="k",
    trials=(
        Trial(
            name="copy of x",
            group=FakeGroup.OUTPUT,
            state=TrialState.CAUGHT,
            caught_by="nominal: normal",
            passed=("nominal: shipped",),
            same=("nominal: shipped",),
        ),
        Trial(
            name="transposed", group=FakeGroup.OUTPUT, state=TrialState.SKIPPED, why="not square"
        ),
    ),
    findings=("a copy passes",),
    spread_frac={"output0": 0.5},
    seconds=0.25,
)
TENSOR = TensorSpec(name="x", shape=(2,), dtype="float32", strides=(1,))
INFO = ProblemInfo(
    problem_id="p", device="cpu", inputs=(TENSOR,), outputs=(TENSOR,), parameters=(),
    graph=None, attention=None, flops=None, io_bytes=16, rankable=True, audit=AUDIT,
)  # fmt: skip


def test_it_comes_back_as_it_was():
    assert from_json(Audit, to_json(AUDIT)) == AUDIT
    assert from_json(ProblemInfo, to_json(INFO)).audit == AUDIT


def test_an_info_without_an_audit_is_read():
    old = to_json(INFO)
    del old["audit"]
    assert from_json(ProblemInfo, old).audit is None


def test_it_ranks_unless_there_is_a_reason():
    assert AUDIT.rankable
    assert not Audit(key="k", reasons=("it is zero",)).rankable
