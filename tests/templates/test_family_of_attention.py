"""Which kernel families an attention problem is offered, besides those for Hopper GPUs."""

from __future__ import annotations

from dataclasses import replace

from graph_expressions import make_spec

from hotloop.core.attempt import Proposal
from hotloop.core.problem import ProblemInfo
from hotloop.templates import BuiltinGenerator

SIZES = {"B": 2, "H": 8, "Hkv": 2, "S": 1, "Skv": 512, "D": 32}


def _info(spec, device="cpu"):
    return ProblemInfo(
        problem_id="p", device=device, inputs=(), outputs=(), parameters=(), graph=None,
        attention=spec, flops=None, io_bytes=1, rankable=True,
        environment={"gpu": None if device == "cpu" else "NVIDIA H200"},
    )  # fmt: skip


def test_a_decode_step_may_be_split_over_the_keys_or_not():
    info, generator = _info(make_spec(**SIZES)), BuiltinGenerator()
    space = generator.space(info)
    assert space.dimensions[0].choices == ("decode", "portable")
    for number, start in enumerate(space.starts[:2]):
        proposal = Proposal(id=number, action="schedule", point=start)
        text = generator.generate(info, proposal).candidate.text()
        assert ("join_parts" in text) == (start["family"] == "decode")
    on_hopper = generator.space(_info(make_spec(**SIZES), device="cuda"))
    assert on_hopper.dimensions[0].choices == ("decode", "portable")


def test_many_queries_are_not_split_over_the_keys():
    spec = make_spec(**{**SIZES, "S": 512})
    assert all(d.name != "family" for d in BuiltinGenerator().space(_info(spec)).dimensions)


def test_only_the_decode_family_reads_pages():
    spec = replace(make_spec(**SIZES), page_size=64, pages=16)
    info, generator = _info(spec), BuiltinGenerator()
    space = generator.space(info)
    assert all(d.name != "family" for d in space.dimensions)
    text = generator.generate(info, Proposal(id=1, action="schedule", point={})).candidate.text()
    assert "page_table" in text
