"""The Hopper family: its spaces, when it is offered, and that its files are fit to be read."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import attention_variants as variants
from graph_expressions import Builder, make_spec

from hotloop.core.attempt import Proposal
from hotloop.core.problem import ProblemInfo
from hotloop.search.points import enumerate_points
from hotloop.search.tune import TuneStrategy
from hotloop.templates import BuiltinGenerator
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.hopper.family import HopperFamily
from hotloop.templates.hopper.schedule import SHARED_BYTES, schedule_of

GOLDEN = Path(__file__).parent / "golden" / "hopper_causal_softcap.py.txt"
NAMES = ("full", "causal", "relative", "alibi", "document", "softcap")


def _spec(name, **sizes):
    build = getattr(variants, name)
    score, mask = build() if name == "full" else build(S=1000, H=16)
    sizes = {"H": 16, "S": 1000, "D": 64, "dtype": "bfloat16", **sizes}
    return make_spec(score=score, mask=mask, **sizes)


def _info(spec, *, device="cuda", gpu="NVIDIA H200"):
    return ProblemInfo(
        problem_id="0" * 16,
        device=device,
        inputs=(),
        outputs=(),
        parameters=(),
        graph=None,
        attention=spec,
        flops=None,
        io_bytes=0,
        rankable=True,
        environment={"gpu": gpu},
    )


def _kept() -> str:
    score, _ = variants.softcap()
    _, mask = variants.causal()
    spec = make_spec(score=score, mask=mask, B=4, H=16, S=4096, D=128, dtype="bfloat16")
    family = HopperFamily(spec)
    return family.render(family.space().starts[0]).text()


def test_kept_source_is_unchanged():
    assert _kept() == GOLDEN.read_text()


@pytest.mark.parametrize("D", [64, 96, 128, 256])
@pytest.mark.parametrize("name", NAMES)
def test_spaces_are_small_and_every_start_fits(name, D):
    plan = AttentionPlan.of(_spec(name, D=D))
    space = HopperFamily(plan.spec).space()
    assert len(list(enumerate_points(space))) <= 24
    for start in space.starts:
        assert space.complete(start) == dict(start)
        schedule = schedule_of(plan, start)
        assert schedule.shared_bytes <= SHARED_BYTES
        assert schedule.stages >= 2


@pytest.mark.parametrize("gpu", ["NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA GH200 480GB"])
def test_on_hopper_both_families_are_offered(gpu):
    info, generator = _info(_spec("causal"), gpu=gpu), BuiltinGenerator()
    space = generator.space(info)
    assert space.dimensions[0].choices == ("hopper", "portable")
    assert [s["family"] for s in space.starts[:4]] == ["hopper", "portable"] * 2
    texts = set()
    for number, start in enumerate(space.starts):
        assert space.complete(start) == dict(start)
        proposal = Proposal(id=number, action="schedule", point=start)
        candidate = generator.generate(info, proposal).candidate
        is_hopper = start["family"] == "hopper"
        assert candidate.language == ("gluon" if is_hopper else "triton")
        assert ("warp_specialize" in candidate.text()) == is_hopper
        texts.add(candidate.text())
    assert len(texts) == len(space.starts)


@pytest.mark.parametrize(
    ("device", "gpu", "sizes"),
    [
        ("cpu", None, {}),
        ("cuda", "NVIDIA A100-SXM4-80GB", {}),
        ("cuda", "NVIDIA B200", {}),
        ("cuda", "NVIDIA H200", {"dtype": "float32"}),
        ("cuda", "NVIDIA H200", {"D": 20}),
        ("cuda", "NVIDIA H200", {"D": 8}),
        ("cuda", "NVIDIA H200", {"D": 320}),
    ],
)
def test_elsewhere_the_portable_family_is_alone(device, gpu, sizes):
    spec = _spec("causal", **sizes)
    space = BuiltinGenerator().space(_info(spec, device=device, gpu=gpu))
    assert space == AttentionFamily(spec).space()


def test_a_search_may_go_through_both_families():
    info, generator = _info(_spec("document")), BuiltinGenerator()
    space = generator.space(info)
    strategy = TuneStrategy(space, seed=0)
    families = set()
    for proposal in strategy.ask(40):
        families.add(proposal.point["family"])
        generator.generate(info, replace(proposal, action="schedule"))
    assert families == {"hopper", "portable"}


def _sources():
    for name in NAMES:
        family = HopperFamily(_spec(name, D=80))
        for start in family.space().starts:
            yield family.render(start).text()
    g = Builder()
    mask = ((g.q - g.kv) % 3).equals(0)
    family = HopperFamily(make_spec(score=g.apply("sigmoid", g.score), mask=mask, dtype="float16"))
    for tiles in ("closed", "ranges", "lists"):
        yield family.render(family.space().complete({"tiles": tiles})).text()


def test_linter_finds_nothing(tmp_path):
    pytest.importorskip("ruff")
    for number, source in enumerate(sorted(set(_sources()))):
        (tmp_path / f"kernel_{number}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select=E,F,W,B,I"]
        + ["--line-length=100", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


if __name__ == "__main__":
    GOLDEN.write_text(_kept())
