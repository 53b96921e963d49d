"""Needles make every key tile matter, whatever the bias; plain inputs do not."""

import pytest
import torch
from problem_files import attention

from hotloop.worker.attention_math import unfused
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.reference import build_reference

SCORE = "def score_mod(score, b, h, q_idx, kv_idx):\n    return {}\n"
BODIES = {
    "full": "",
    "causal": "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n",
    "relative": SCORE.format("score + (q_idx - kv_idx)"),
    "alibi": SCORE.format("score + torch.exp2(-8.0 * (h + 1) / H) * (kv_idx - q_idx)"),
}


def without_tile(reference, draw, tile):
    """Attention that never reads keys 64 * tile to 64 * tile + 63."""
    namespace = reference.loaded.namespace
    keep = torch.ones(reference.sizes.Skv, dtype=torch.bool)
    keep[64 * tile : 64 * tile + 64] = False
    mods = reference.mods
    mask = mods.mask_mod or (lambda b, h, i, j: i >= 0)
    blind = type(mods)(
        mods.score_mod, lambda b, h, i, j: mask(b, h, i, j) & keep[j], mods.scale, mods.sigmoid
    )
    namespace.update(draw.state)
    return unfused(*draw.inputs, blind)


@pytest.mark.parametrize(
    ("name", "kv_heads"), [("full", 4), ("causal", 4), ("relative", 4), ("alibi", 4), ("alibi", 2)]
)
def test_the_gate_refuses_a_kernel_that_skips_any_tile(name, kv_heads):
    reference = build_reference(attention(BODIES[name], B=1, S=192, D=32, Hkv=kv_heads))
    assert "needles" in reference.profiles, reference.notes
    draw = reference.draw(7, "needles")
    (golden,) = reference.golden(draw)
    members = [m[0] for m in reference.envelope(draw).values()]
    bound = make_bound(golden, members, torch.bfloat16, exact=False)
    assert bound.conditioning < 0.05
    for tile in range(3):
        output = without_tile(reference, draw, tile)
        assert not gate(output, golden, bound).passed, tile
    assert all(gate(member, golden, bound).passed for member in members)


def test_plain_inputs_let_a_skipping_kernel_pass():
    """Why the profile exists: on N(0, 1) nobody sees that a kernel skips far keys."""
    reference = build_reference(attention(BODIES["relative"], B=1, S=192, D=32))
    draw = reference.draw(7, "normal")
    (golden,) = reference.golden(draw)
    members = [m[0] for m in reference.envelope(draw).values()]
    bound = make_bound(golden, members, torch.bfloat16, exact=False)
    assert gate(without_tile(reference, draw, 2), golden, bound).passed


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_residual_of_a_long_bias_stays_small(dtype):
    body = f"dtype = '{dtype}'\n" + BODIES["relative"]
    reference = build_reference(attention(body, B=1, H=1, S=2, Skv=8192, D=32))
    q, k, _ = reference.draw(1, "needles").inputs
    scores = (q.double() @ k.double().mT)[0, 0, 0] / 32**0.5 - torch.arange(8192)
    needles = k[0, 0, :, -1] != 0
    assert int(needles.sum()) == 128
    assert float(scores[needles].amax() - scores[needles].amin()) < 10  # the random part alone


def test_a_bias_that_cannot_be_cancelled_is_noted():
    body = SCORE.format("20.0 * torch.tanh(score / 20.0) + 4.0 * (kv_idx - q_idx)")
    reference = build_reference(attention(body, B=1, S=256, D=32))
    assert "needles" not in reference.profiles
    assert any("needles" in note for note in reference.notes)
