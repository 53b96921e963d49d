"""Attention baselines on a GPU: the approximate tanh, the block mask, graphs of all of them."""

from pathlib import Path

import pytest
import torch
from problem_files import SIZES

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker.attention_baselines import is_flash_installed, probe
from hotloop.worker.baseline_graphs import without_gaps
from hotloop.worker.block_masks import BlockMasks, quickest, same_blocks
from hotloop.worker.graph_capture import captured
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference
from hotloop.worker.timed import make_clock_once

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
SOFTCAP = "def score_mod(score, b, h, q_idx, kv_idx):\n    return 20 * torch.tanh(score / 20)\n"
CAUSAL = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"


def reference_of(body, **settings):
    problem = Problem(name="p", kind=ProblemKind.ATTENTION, source=SIZES + body)
    sizes = {"S": 1024, "D": 64, **settings}
    return build_reference(load_problem(problem, device="cuda", settings=sizes))


@pytest.mark.parametrize("name", ["flex_approx", "flex_approx_max_autotune"])
def test_the_approximate_tanh_is_another_and_nearly_the_same(name):
    reference = reference_of(SOFTCAP)
    assert name in reference.baseline_names()
    draw = reference.draw(1, "large")
    exact = reference.baseline("flex", draw)()
    call = reference.baseline(name, draw)
    approximate = call()
    assert not torch.equal(approximate, exact)
    assert float((approximate - exact).abs().max()) < 0.05 * float(exact.abs().max())
    assert torch.equal(call(), approximate)
    assert torch.equal(reference.baseline("flex", draw)(), exact)


def test_both_ways_to_the_block_mask_give_the_same_blocks():
    reference = reference_of(CAUSAL)
    masks = BlockMasks(reference.mods.mask_mod, reference.sizes, "cuda")
    makers = masks._makers(probe(reference.sizes, "cuda"))
    assert len(makers) == 2
    first, second = (make() for make in makers)
    assert same_blocks(first, second)
    assert 0 < quickest(makers, "cuda")[1] <= quickest(makers[:1], "cuda")[1] * 1.5
    draw = reference.draw(1, "normal")
    for name in ("flex", "flex_max_autotune"):
        reference.baseline(name, draw)
    assert reference.prepare_ms["flex"] == reference.prepare_ms["flex_max_autotune"] > 0


def test_the_flash_back_end_runs_or_says_that_it_is_not_installed():
    reference = reference_of(CAUSAL)
    draw = reference.draw(1, "normal")
    if not is_flash_installed():
        with pytest.raises(ProblemError, match="flash-attn-4 is not installed"):
            reference.baseline("flex_flash", draw)
        return
    out = reference.baseline("flex_flash", draw)()
    assert float((out - reference.baseline("flex", draw)()).abs().max()) < 0.05


def test_every_baseline_is_timed_as_a_graph_too():
    reference, clock = reference_of(""), make_clock_once()
    draw = reference.draw(1, "normal")
    calls = {name: reference.baseline(name, draw) for name in ("flex", "sdpa_flash", "cudnn")}
    chosen = without_gaps(calls, lambda call: clock.measure(call)[1], captured, all_graphs=True)
    assert set(chosen.replayed_ms) == set(calls)
    assert all(ms is not None and ms > 0 for ms in chosen.replayed_ms.values())


def test_calls_can_be_timed_on_values_in_which_far_keys_matter():
    relative = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + (q_idx - kv_idx)\n"
    reference = reference_of(relative, timed_profile="needles")
    draw = reference.draw(1, reference.timed_profile, timed=True)
    before = draw.inputs[1].clone()
    reference.redraw_inputs(draw, 2)
    assert not torch.equal(draw.inputs[1], before)
    golden = reference.golden(draw)[0]
    out = reference.baseline("flex", draw)()
    assert float((out.double() - golden).square().mean().sqrt()) < 0.05
