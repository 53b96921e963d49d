"""The built-in generator: which family takes a problem, and what its spaces promise."""

from __future__ import annotations

import attention_variants as variants
import pytest
from graph_expressions import make_spec
from graph_models import ModelBuilder

from hotloop.core.attempt import Proposal
from hotloop.core.problem import ProblemInfo
from hotloop.errors import UnsupportedOp
from hotloop.templates import BuiltinGenerator


def _info(*, graph=None, attention=None) -> ProblemInfo:
    return ProblemInfo(
        problem_id="0" * 16,
        device="cpu",
        inputs=(),
        outputs=(),
        parameters=(),
        graph=graph,
        attention=attention,
        flops=None,
        io_bytes=0,
        rankable=True,
    )


def _problems():
    _, causal = variants.causal()
    g = ModelBuilder()
    rows = g.graph(g.apply("softmax", g.input(0, 8, 100), dim=1))
    g = ModelBuilder()
    product = g.graph(g.apply("relu", g.apply("matmul", g.input(0, 64, 64), g.input(1, 64, 64))))
    return {
        "attention": _info(attention=make_spec(mask=causal)),
        "rowwise": _info(graph=rows),
        "matmul": _info(graph=product),
    }


@pytest.mark.parametrize("kind", ["attention", "rowwise", "matmul"])
def test_starts_are_complete_points_and_give_different_kernels(kind):
    info, generator = _problems()[kind], BuiltinGenerator()
    space = generator.space(info)
    assert space.starts
    ids = set()
    for number, start in enumerate(space.starts):
        assert space.complete(start) == dict(start)
        proposal = Proposal(id=number, action="schedule", point=start)
        candidate = generator.generate(info, proposal).candidate
        assert candidate.id == generator.generate(info, proposal).candidate.id
        assert "class ModelNew(torch.nn.Module)" in candidate.text()
        ids.add(candidate.id)
    assert len(ids) == len(space.starts)


def test_every_single_choice_gives_a_kernel():
    generator = BuiltinGenerator()
    for info in _problems().values():
        space = generator.space(info)
        for dimension in space.dimensions:
            for choice in dimension.choices:
                point = {n: v[0] for n, v in dimension.when.items()} | {dimension.name: choice}
                proposal = Proposal(id=0, action="schedule", point=space.complete(point))
                assert generator.generate(info, proposal).candidate.language == "triton"


def test_a_point_outside_the_space_is_refused():
    info = _problems()["rowwise"]
    with pytest.raises(ValueError, match="num_warps"):
        BuiltinGenerator().generate(info, Proposal(id=0, action="schedule", point={"num_warps": 3}))


def test_opaque_operations_and_untraced_models_are_refused():
    g = ModelBuilder()
    x = g.input(0, 8, 8)
    opaque = g.apply("opaque", x, target="aten.cumsum.default")
    with pytest.raises(UnsupportedOp, match=r"'aten.cumsum.default' \(line 3\)"):
        BuiltinGenerator().space(_info(graph=g.graph(opaque)))
    with pytest.raises(UnsupportedOp, match="could not be traced"):
        BuiltinGenerator().space(_info())


def test_float32_is_never_given_lower_precision():
    spec = make_spec(score=variants.softcap()[0], dtype="float32")
    space = BuiltinGenerator().space(_info(attention=spec))
    choices = {d.name: d.choices for d in space.dimensions}
    assert "approx" not in choices["tanh"]
    assert set(choices["dot_precision"]) == {"tf32x3", "ieee"}
