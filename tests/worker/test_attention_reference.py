"""The golden is exact attention for every kind of mask and bias; envelope and eager stay close."""

import math

import pytest
import torch
from naive_attention import naive_attention
from problem_files import attention

from hotloop.errors import ProblemError
from hotloop.worker.attention_baselines import vendor_form
from hotloop.worker.attention_math import Mods, exact, tiled, unfused
from hotloop.worker.golden import float64_default
from hotloop.worker.reference import build_reference
from hotloop.worker.uncompiled_flex import (
    flex_keeps_float32_scores,
    masked_score,
    uncompiled_flex,
)

SCORE = "def score_mod(score, b, h, q_idx, kv_idx):\n    return {}\n"
MASK = "def mask_mod(b, h, q_idx, kv_idx):\n    return {}\n"
DOC = (
    "buffer_seed = 3\ndef get_buffers(generator):\n"
    "    return {'doc': torch.randint(3, (S,), generator=generator).sort().values}\n"
)
SLOPES = "def get_buffers(generator):\n    return {'slopes': torch.rand(H, generator=generator)}\n"

VARIANTS = {
    "full": ("", {}),
    "causal": (MASK.format("q_idx >= kv_idx"), {"mask": lambda b, h, i, j: i >= j}),
    "window": (
        MASK.format("(q_idx >= kv_idx) & (q_idx - kv_idx <= 5)"),
        {"mask": lambda b, h, i, j: 0 <= i - j <= 5},
    ),
    "prefix": (
        MASK.format("(kv_idx < 7) | (q_idx >= kv_idx)"),
        {"mask": lambda b, h, i, j: j < 7 or i >= j},
    ),
    "relative": (
        SCORE.format("score + (q_idx - kv_idx)"),
        {"score": lambda s, b, h, i, j: s + (i - j)},
    ),
    "alibi": (
        SCORE.format("score + torch.exp2(-8.0 * (h + 1) / H) * (kv_idx - q_idx)"),
        {"score": lambda s, b, h, i, j: s + 2.0 ** (-8 * (h + 1) / 4) * (j - i)},
    ),
    "softcap": (
        SCORE.format("20.0 * torch.tanh(score / 20.0)"),
        {"score": lambda s, b, h, i, j: 20 * math.tanh(s / 20)},
    ),
    "odd_rows_masked": (
        MASK.format("(q_idx % 2 == 0) & (q_idx >= kv_idx)"),
        {"mask": lambda b, h, i, j: i % 2 == 0 and i >= j},
    ),
    "sigmoid": (
        "normalize = 'sigmoid'\n" + MASK.format("q_idx >= kv_idx"),
        {"mask": lambda b, h, i, j: i >= j, "sigmoid": True},
    ),
}


def rms(x):
    return float(x.double().square().mean().sqrt())


@pytest.mark.parametrize("name", VARIANTS)
def test_golden_is_exact_attention(name):
    body, expected = VARIANTS[name]
    loaded = attention(body, S=14, Skv=12)
    gen = torch.Generator().manual_seed(0)
    mods = Mods(loaded.score_mod, loaded.mask_mod, 0.25, sigmoid=name == "sigmoid")
    for kv_heads in (4, 2, 1):
        q = torch.randn(2, 4, 14, 16, generator=gen).bfloat16()
        k, v = (torch.randn(2, kv_heads, 12, 16, generator=gen).bfloat16() for _ in range(2))
        with float64_default():
            golden = exact(q, k, v, mods)
        want = naive_attention(q, k, v, **expected)
        assert float((golden - want).abs().max()) < 1e-12


@pytest.mark.parametrize("name", ["alibi", "odd_rows_masked", "sigmoid"])
def test_envelope_stays_close_to_the_golden(name):
    body, expected = VARIANTS[name]
    reference = build_reference(attention(body, S=14, Skv=12, Hkv=2))
    draw = reference.draw(11, "normal")
    (golden,) = reference.golden(draw)
    want = naive_attention(*draw.inputs, **expected)
    assert golden.dtype is torch.float64
    assert float((golden - want).abs().max()) < 1e-12
    for member in reference.envelope(draw).values():
        assert member[0].dtype is torch.bfloat16
        assert rms(member[0].double() - golden) < 0.01 * rms(golden)


def test_document_ids_are_drawn_anew_but_pinned_for_timing():
    reference = build_reference(attention(DOC + MASK.format("doc[q_idx] == doc[kv_idx]")))
    one, two = reference.draw(1, "normal"), reference.draw(2, "normal")
    assert not torch.equal(one.state["doc"], two.state["doc"])
    for draw in (one, two):
        doc = draw.state["doc"].tolist()
        want = naive_attention(*draw.inputs, mask=lambda b, h, i, j, d=doc: d[i] == d[j])
        assert float((reference.golden(draw)[0] - want).abs().max()) < 1e-12
    timed = [reference.draw(s, "normal", timed=True) for s in (1, 2)]
    assert torch.equal(timed[0].state["doc"], timed[1].state["doc"])
    assert not torch.equal(timed[0].inputs[0], timed[1].inputs[0])


def test_captured_floats_are_widened_for_the_golden():
    reference = build_reference(attention(SLOPES + SCORE.format("score + slopes[h] * q_idx % 3")))
    draw = reference.draw(4, "normal")
    slopes = draw.state["slopes"].double().tolist()
    want = naive_attention(*draw.inputs, score=lambda s, b, h, i, j: s + slopes[h] * i % 3)
    assert float((reference.golden(draw)[0] - want).abs().max()) < 1e-12


def test_blocks_give_the_same_as_the_whole(monkeypatch):
    gen = torch.Generator().manual_seed(0)
    q = torch.randn(2, 4, 40, 16, generator=gen)
    k, v = (torch.randn(2, 2, 36, 16, generator=gen) for _ in range(2))
    mods = Mods(lambda s, b, h, i, j: s + (i - j) * (h + b), lambda b, h, i, j: i >= j, 0.25)
    whole = [f(q, k, v, mods) for f in (exact, unfused, tiled)]
    for elements in (36 * 7, 40 * 36 * 3, 4 * 40 * 36):  # rows, heads, batches
        monkeypatch.setattr("hotloop.worker.attention_math.BLOCK_ELEMENTS", elements)
        for f, want in zip((exact, unfused, tiled), whole, strict=True):
            # float32 scores of 150 carry 1e-5; matrix products of other sizes round differently
            assert torch.allclose(f(q, k, v, mods), want, rtol=0, atol=1e-4)


def test_unfused_is_what_uncompiled_flex_attention_computes():
    assert flex_keeps_float32_scores("cpu")
    gen = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 32, 16, generator=gen).bfloat16() for _ in range(3))
    mods = Mods(lambda s, b, h, i, j: 20 * torch.tanh(s / 20), lambda b, h, i, j: i >= j, 0.25)
    ours, theirs = unfused(q, k, v, mods), uncompiled_flex(q, k, v, masked_score(mods), 0.25)
    assert rms(ours.float() - theirs.float()) < 2e-4 * rms(theirs)


def test_scores_rounded_to_bfloat16_lie_outside_the_envelope():
    reference = build_reference(attention("", S=64))
    draw = reference.draw(3, "large")
    (golden,) = reference.golden(draw)
    q, k, v = (t.double() for t in draw.inputs)
    scores = (q @ k.mT * 0.25).bfloat16().double()
    rounded = torch.softmax(scores, -1) @ v
    worst = max(rms(m[0].double() - golden) for m in reference.envelope(draw).values())
    assert rms(rounded - golden) > 2 * worst


def test_redraw_writes_new_values_into_the_same_tensors():
    reference = build_reference(attention(SCORE.format("score + (q_idx - kv_idx)"), S=96))
    for profile in reference.profiles:
        draw = reference.draw(1, profile)
        addresses = [t.data_ptr() for t in draw.inputs]
        before = [t.clone() for t in draw.inputs]
        call = reference.baseline("eager", draw)
        old = call()
        reference.redraw_inputs(draw, 2)
        assert [t.data_ptr() for t in draw.inputs] == addresses
        assert not any(torch.equal(a, b) for a, b in zip(before, draw.inputs, strict=True))
        assert not torch.equal(old, call())
        again = reference.draw(2, profile)
        assert all(torch.equal(a, b) for a, b in zip(draw.inputs, again.inputs, strict=True))


def test_baselines_on_a_cpu_are_eager_only():
    reference = build_reference(attention(MASK.format("q_idx >= kv_idx")))
    assert reference.baseline_names() == ("eager",)
    with pytest.raises(ProblemError, match="flex"):
        reference.baseline("flex", reference.draw(1, "normal"))


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("", "full"),
        (MASK.format("q_idx >= kv_idx"), "causal"),
        (MASK.format("kv_idx <= q_idx"), "causal"),
        (MASK.format("(q_idx >= kv_idx) & (q_idx - kv_idx <= 515)"), None),
        (MASK.format("(q_idx >= kv_idx) | (h == 1)"), None),
        (SCORE.format("score * 2"), None),
    ],
)
def test_vendor_kernels_apply_to_plain_and_causal_attention(body, form):
    loaded = attention(body, S=520, B=1, H=2)
    mods = Mods(loaded.score_mod, loaded.mask_mod, 0.25)
    assert vendor_form(mods, loaded.sizes, "cpu") == form
    if form == "causal":
        loaded = attention(body, S=520, Skv=600, B=1, H=2)
        assert vendor_form(mods, loaded.sizes, "cpu") is None


def test_sizes_flops_and_bytes():
    reference = build_reference(attention(DOC + MASK.format("doc[q_idx] == doc[kv_idx]")))
    inputs, outputs, parameters = reference.specs()
    assert [s.name for s in inputs] == ["q", "k", "v"]
    assert outputs[0].shape == (2, 4, 32, 16)
    assert outputs[0].dtype == "bfloat16"
    assert [s.name for s in parameters] == ["doc"]
    assert reference.flops == 4 * 2 * 4 * 32 * 32 * 16
    assert reference.io_bytes == 4 * 2 * (2 * 4 * 32 * 16) + 8 * 32
    assert reference.useful_bytes == reference.io_bytes  # each key is seen by some query


def test_everything_masked_is_degenerate_and_broken_scores_are_refused():
    reference = build_reference(attention(MASK.format("q_idx < 0")))
    assert reference.degenerate()
    assert build_reference(attention("")).degenerate() == ()
    with pytest.raises(ProblemError, match="finite"):
        build_reference(attention(SCORE.format("score / 0.0")))
    with pytest.raises(ProblemError, match="line"):
        build_reference(attention(SCORE.format("score + missing[q_idx]")))


def test_two_loads_of_one_file_do_not_share_captured_tensors():
    """torch.compile looks globals up by module name; workloads of a problem share the file."""
    for sizes in ({"S": 32}, {"S": 32}, {"S": 16}):
        loaded = attention(DOC + MASK.format("doc[q_idx] == doc[kv_idx]"), **sizes)
        reference = build_reference(loaded)
        draw = reference.draw(5, "normal")
        (golden,) = reference.golden(draw)
        assert rms(reference.eager(draw)[0].double() - golden) < 0.01 * rms(golden)


def test_sizes_that_no_memory_holds_are_the_problems_fault():
    with pytest.raises(ProblemError, match="S 1000000000, .* GiB .*--set"):
        build_reference(attention("", S=10**9))
    assert build_reference(attention("")).sizes.S == 32
