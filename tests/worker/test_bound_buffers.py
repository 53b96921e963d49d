"""Buffers of a candidate: captured tensors have the reference's shape and dtype, or are None."""

import re
from pathlib import Path

import pytest
import torch

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Status, Tier
from hotloop.problems import load_problem_spec
from hotloop.prompts.feedback import Judged, make_feedback
from hotloop.templates.decode.family import DecodeFamily
from hotloop.verify import LocalVerifier
from hotloop.worker.module_host import ContractError, HostedModel

EXAMPLE = Path(__file__).parents[2] / "examples/attention/decode_paged.py"
SIZES = {"B": 2, "H": 2, "Hkv": 1, "Skv": 64, "D": 16, "page_size": 16}
TABLE = torch.tensor([[3, 1, 4, 0], [5, 2, 6, 7]], dtype=torch.int32)
WRONG = {
    "a column too many": "torch.zeros(2, 5, dtype=torch.int32)",
    "flat": "torch.zeros(8, dtype=torch.int32)",
    "of one element": "torch.zeros(1, dtype=torch.int32)",
    "empty": "torch.zeros(0, dtype=torch.int32)",
    "int64": "torch.zeros(2, 4, dtype=torch.int64)",
    "float32": "torch.zeros(2, 4)",
}
REFUSAL = r"buffer 'page_table': expected \(2, 4\) torch.int32, as the reference has it, got "


def hosted(table, **names):
    model = torch.nn.Module()
    model.register_buffer(names.get("page_table", "page_table"), table)
    return HostedModel(None, model, names)


@pytest.mark.parametrize("kind", list(WRONG))
def test_a_page_table_of_another_shape_or_dtype_is_refused(kind):
    own = eval(WRONG[kind])  # noqa: S307  an expression of this file
    told = re.escape(f"{tuple(own.shape)} {own.dtype}; register it like that")
    with pytest.raises(ContractError, match=f"{REFUSAL}{told}$"):
        hosted(own).bind({"page_table": TABLE}, buffers_alike=True)
    model = hosted(own)
    model.bind({"page_table": TABLE})  # other sizes, of which a constructor cannot know
    assert model.model.page_table is TABLE


@pytest.mark.parametrize("own", [None, torch.zeros(2, 4, dtype=torch.int32), TABLE.mT.clone().mT])
def test_one_that_is_alike_or_left_open_is_set(own):
    model = hosted(own)
    model.bind({"page_table": TABLE, "lengths": torch.zeros(2)}, buffers_alike=True)
    assert model.model.page_table is TABLE
    assert not hasattr(model.model, "lengths")


def test_its_own_name_is_told():
    with pytest.raises(ContractError, match=r"buffer 'pages': expected \(2, 4\)"):
        hosted(torch.zeros(3), page_table="pages").bind({"page_table": TABLE}, buffers_alike=True)


def test_parameters_are_held_to_the_reference_always():
    model = HostedModel(None, torch.nn.Linear(4, 2), {})
    with pytest.raises(ContractError, match=r"parameter 'weight': expected \(2, 5\) torch.float32"):
        model.bind({"weight": torch.zeros(2, 5)})
    model.bind({"weight": torch.ones(2, 4)})
    assert bool((model.model.weight == 1).all())


@pytest.mark.slow
def test_a_generated_kernel_with_another_table_is_refused_in_one_line(tmp_path):
    problem = load_problem_spec(EXAMPLE, device="cpu", settings=SIZES)
    verifier = LocalVerifier("cpu", log_path=tmp_path / "judge.log")
    try:
        info = verifier.load(problem)
        assert isinstance(info, ProblemInfo)
        assert info.attention is not None
        family = DecodeFamily(info.attention)
        text = family.render(family.space().starts[0]).text()
        open_table = '"page_table", None)'
        assert open_table in text
        declared = {
            None: open_table,
            "right": '"page_table", torch.zeros(2, 4, dtype=torch.int32))',
        }
        declared |= {kind: f'"page_table", {WRONG[kind]})' for kind in ("flat", "int64")}
        for kind, words in declared.items():
            source = SourceFile(path="kernel.py", text=text.replace(open_table, words))
            candidate = Candidate(language="triton", sources=(source,))
            verdict = verifier.verify(candidate, Tier.FAST)
            if kind in (None, "right"):
                assert verdict.status is Status.PASSED, verdict
                continue
            assert verdict.status is Status.RUNTIME_ERROR
            assert verdict.evidence is not None
            assert verdict.evidence.kind == "contract"
            assert re.search(REFUSAL, verdict.evidence.message)
            judged = Judged(verdict=verdict, candidate=candidate, problem=problem, info=info)
            assert "expected (2, 4) torch.int32" in make_feedback(judged).text
    finally:
        verifier.close()


class Renamed(torch.nn.Module):
    """Keeps the weight of a LayerNorm under its own name."""

    def __init__(self, **more):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(6))
        for name, tensor in more.items():
            self.register_parameter(name, torch.nn.Parameter(tensor))


def test_a_parameter_under_another_name_is_told():
    state = {"norm.weight": torch.full((6,), 2.0), "norm.bias": torch.zeros(6)}
    with pytest.raises(ContractError, match=r"'weight': nothing sets it.*PARAMETERS = {'weight': "):
        HostedModel(None, Renamed(), {}).bind(state)
    mapped = HostedModel(None, Renamed(), {"norm.weight": "weight"})
    mapped.bind(state)  # it does without the bias
    assert bool((mapped.model.weight == 2).all())


def test_parameters_of_its_own_may_stand_beside_those_that_are_set():
    HostedModel(None, Renamed(packed=torch.empty(3)), {}).bind({"weight": torch.ones(6)})
    alike = Renamed(packed=torch.empty(6))
    HostedModel(None, alike, {}).bind({"weight": torch.ones(6), "running_mean": torch.zeros(6)})
    assert bool((alike.weight == 1).all())
