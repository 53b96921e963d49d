"""Baselines over a paged cache on a GPU: compiled, right, and reading the pages as they are now."""

from pathlib import Path

import pytest
import torch
from problem_files import SIZES

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
LENGTHS = (
    "def get_buffers(generator):\n"
    "    return {'lengths': torch.randint(200, Skv + 1, (B,), generator=generator)}\n"
    "def mask_mod(b, h, q_idx, kv_idx):\n    return kv_idx < lengths[b]\n"
)
SOFTCAP = "def score_mod(score, b, h, q_idx, kv_idx):\n    return 20 * torch.tanh(score / 20)\n"


@pytest.fixture(scope="module")
def reference():
    problem = Problem(name="p", kind=ProblemKind.ATTENTION, source=SIZES + LENGTHS + SOFTCAP)
    sizes = {"B": 4, "H": 8, "Hkv": 2, "S": 1, "Skv": 2048, "D": 128, "page_size": 64}
    return build_reference(load_problem(problem, device="cuda", settings=sizes))


@pytest.mark.parametrize("name", ["flex", "flex_max_autotune", "flex_gather", "flex_approx"])
def test_a_baseline_reads_the_pages_of_each_call(reference, name):
    assert name in reference.baseline_names()
    draw = reference.draw(1, "normal")
    call = reference.baseline(name, draw)
    for seed in (1, 2):
        reference.redraw_inputs(draw, seed)
        golden = reference.golden(draw)[0]
        error = float((call().double() - golden).abs().max())
        assert error < 0.02 * float(golden.abs().max()) + 0.01
    assert reference.prepare_ms[name] > 0


def test_compiled_attention_over_pages_is_in_the_envelope(reference):
    reference._compiles = True
    members = reference.envelope(reference.draw(5, "normal"))
    assert "compiled" in members, reference.notes
    assert all(torch.isfinite(outputs[0]).all() for outputs in members.values())
