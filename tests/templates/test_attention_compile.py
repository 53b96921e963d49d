"""Every attention example compiles for sm_90, at all starts, without a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import compile_jobs
from graph_expressions import make_spec

from hotloop.templates.attention.family import AttentionFamily

FILES = sorted((Path(__file__).parents[2] / "examples/attention").glob("*.py"))
EXAMPLES = [path for path in FILES if not path.stem.startswith("decode")]
"""All but the decode steps, which have a family and tests of their own."""
SHARED_BYTES = 227 * 1024  # of one block on sm_90 (CUDA Programming Guide, compute capabilities)
FEW_BYTES = 128
"""Spilled by a thread: what a full register file, or one given up in part, and masks may cost."""


def _jobs(spec, points) -> list[dict[str, Any]]:
    q = {"shape": [spec.B, spec.H, spec.S, spec.D], "dtype": spec.dtype}
    kv = {"shape": [spec.B, spec.Hkv, spec.Skv, spec.D], "dtype": spec.dtype}
    state = {b.name: {"shape": list(b.shape), "dtype": b.dtype} for b in spec.buffers}
    family = AttentionFamily(spec)
    space = family.space()
    return [
        {
            "source": family.render(space.complete(point)).text(),
            "inputs": [q, kv, kv],
            "state": state,
        }
        for point in points or space.starts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_compiles(interpreter, path):
    small = {"B": 1, "H": 2, "S": 1024, "D": 128}
    if "Hkv" in path.read_text():
        small["Hkv"] = 1
    score = np.zeros((1, 2, 1024, 1024), np.float32)
    spec = interpreter.trace(path.read_text(), score, small)["spec"]
    jobs = _jobs(replace(spec, B=4), None) + _jobs(replace(spec, B=4, D=64, scale=0.125), None)[:1]
    for job, answer in zip(jobs, compile_jobs(jobs), strict=True):
        assert answer["status"] == "ok", (answer, job["source"])
        for kernel in answer["kernels"]:
            assert kernel["shared_bytes"] <= SHARED_BYTES, kernel
            assert kernel["spill_bytes"] <= FEW_BYTES, (kernel, job["source"])


@pytest.mark.slow
@pytest.mark.parametrize(("D", "dtype"), [(512, "bfloat16"), (576, "bfloat16"), (512, "float32")])
def test_very_large_heads_compile(D, dtype):
    jobs = _jobs(make_spec(S=1024, D=D, dtype=dtype), None)
    for answer in compile_jobs(jobs):
        assert answer["status"] == "ok", answer
        (kernel,) = answer["kernels"]
        assert kernel["shared_bytes"] <= SHARED_BYTES, kernel
