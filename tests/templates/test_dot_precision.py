"""TF32 products: offered where the policy allows them, and as exact as TF32 rounded to nearest."""

from __future__ import annotations

import numpy as np
import pytest
from attention_check import draw, exact, relative_error
from graph_expressions import Builder, make_spec
from graph_models import ModelBuilder

from hotloop.core.problem import Policy, ProblemInfo
from hotloop.templates import BuiltinGenerator
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.builtin import family_of
from hotloop.templates.decode.family import DecodeFamily
from hotloop.templates.matmul.family import MatmulFamily
from hotloop.worker.interpreter_formats import round_to_tf32

DECODE = {"B": 2, "H": 8, "Hkv": 2, "S": 1, "Skv": 512, "D": 32}
POLICIES = ("as_shipped", "strict", "tf32", "bf16", "fp16")


def _info(*, graph=None, attention=None) -> ProblemInfo:
    return ProblemInfo(
        problem_id="0" * 16, device="cpu", inputs=(), outputs=(), parameters=(), graph=graph,
        attention=attention, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip


def _product(M=48, K=96, N=64, dtype="float32"):
    g = ModelBuilder()
    a, b = g.input(0, M, K, dtype=dtype), g.input(1, K, N, dtype=dtype)
    return g.graph(g.apply("relu", g.apply("matmul", a, b, shape=(M, N))))


def _problems(dtype="float32"):
    g = Builder()
    return {
        "matmul": _info(graph=_product(dtype=dtype)),
        "attention": _info(attention=make_spec(mask=g.q >= g.kv, dtype=dtype)),
        "decode": _info(attention=make_spec(**DECODE, dtype=dtype)),
        "sigmoid": _info(attention=make_spec(normalize="sigmoid", dtype=dtype)),
    }


def _precisions(space):
    return {d.name: d.choices for d in space.dimensions if d.name.endswith("dot_precision")}


def _texts(info, *, allows_tf32):
    family = family_of(info, allows_tf32=allows_tf32)
    return [family.render(start).text() for start in family.space().starts]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["matmul", "attention", "decode", "sigmoid"])
def test_the_policy_tf32_offers_it_first_and_no_other_does(kind, policy):
    generator = BuiltinGenerator(Policy(precision=policy))
    space = generator.space(_problems()[kind])
    found = _precisions(space)
    assert found or (kind == "decode" and policy != "tf32")
    for name, choices in found.items():
        assert ("tf32" in choices) == (policy == "tf32")
        assert choices[0] == ("tf32" if policy == "tf32" else "tf32x3")
        starts = [start[name] for start in space.starts if name in start]
        assert starts[0] == choices[0]
        assert set(starts) >= set(choices), "and one start of each full precision"
    if policy != "tf32":
        assert space == BuiltinGenerator().space(_problems()[kind])


@pytest.mark.parametrize("kind", ["matmul", "attention", "decode"])
def test_16_bit_operands_have_no_such_choice(kind):
    for dtype in ("bfloat16", "float16"):
        info = _problems(dtype)[kind]
        assert not _precisions(BuiltinGenerator(Policy(precision="tf32")).space(info))


@pytest.mark.parametrize("kind", ["matmul", "attention", "decode"])
def test_source_says_why_and_rounds_only_there(kind):
    info = _problems()[kind]
    for text in _texts(info, allows_tf32=True):
        is_tf32 = 'input_precision="tf32")' in text or 'constexpr("tf32")' in text
        assert is_tf32 == ("operands are rounded to TF32: the problem's policy" in text)
        assert is_tf32 == ("cvt.rna.tf32.f32" in text)
        assert max(map(len, text.splitlines())) <= 100
    assert 'tf32"' in _texts(info, allows_tf32=True)[0]
    for text in _texts(info, allows_tf32=False):
        assert "round_to_tf32" not in text
        assert '"tf32"' not in text


def _normal(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("loads", ["tma", "pointer"])
@pytest.mark.parametrize(("K", "point"), [(96, {}), (4100, {"SPLIT_K": 8, "BLOCK_K": 64})])
def test_a_product_is_that_of_rounded_operands(interpreter, loads, K, point):
    family = MatmulFamily(_product(K=K), allows_tf32=True)
    tile = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "loads": loads}
    source = family.render(family.space().complete({**tile, **point})).text()
    a, b = _normal(48, K, seed=1), _normal(K, 64, seed=2)
    (got,) = interpreter.run(source, [(a, "float32"), (b, "float32")])
    wide = [x.astype(np.float64) for x in (a, b)]
    nearest = [round_to_tf32(x).astype(np.float64) for x in (a, b)]
    relu = {"full": wide[0] @ wide[1], "nearest": nearest[0] @ nearest[1]}
    errors = {name: np.abs(got - np.maximum(y, 0)).max() for name, y in relu.items()}
    assert errors["nearest"] < 5e-4 < 5e-3 < errors["full"]


@pytest.mark.parametrize("family", [AttentionFamily, DecodeFamily])
def test_attention_is_off_by_tf32_and_no_more(interpreter, family):
    spec = make_spec(**DECODE) if family is DecodeFamily else make_spec(S=96)
    kernels = family(spec, allows_tf32=True)
    tensors = draw(spec, seed=4)
    want = exact(spec, tensors, {}, score=None, mask=None)
    error = {}
    for precision in ("tf32", "ieee"):
        source = kernels.render(kernels.space().complete({"dot_precision": precision})).text()
        (got,) = interpreter.run(source, [(t, "float32") for t in tensors])
        error[precision] = relative_error(got, want)
    assert error["ieee"] < 2e-5 < error["tf32"] < 2e-3
