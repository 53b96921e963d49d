"""Decode kernels compile for sm_90 at all starts, without spills, and read several steps ahead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compiling import compile_jobs
from graph_expressions import Builder, make_spec

from hotloop.templates.decode.family import DecodeFamily

SHARED_BYTES = 227 * 1024  # of one block on sm_90 (CUDA Programming Guide, compute capabilities)
STEP_BYTES = 2 * 64 * 128 * 2
"""k and v of one step of 64 keys, D 128, 16 bits."""


def _jobs(page_size: int | None, dtype: str) -> list[dict[str, Any]]:
    g = Builder()
    mask = g.kv < g.read("lengths", (32,), "int32", g.b)
    spec = make_spec(mask=mask, B=32, H=32, Hkv=8, S=1, Skv=8192, D=128, dtype=dtype)
    state = {"lengths": {"shape": [32], "dtype": "int32"}}
    kv_shape = [32, 8, 8192, 128]
    if page_size is not None:
        pages = 32 * 8192 // page_size + 3
        spec = replace(spec, page_size=page_size, pages=pages)
        state["page_table"] = {"shape": [32, 8192 // page_size], "dtype": "int32"}
        kv_shape = [pages, 8, page_size, 128]
    shapes = [[32, 32, 1, 128], kv_shape, kv_shape]
    family = DecodeFamily(spec)
    return [
        {
            "source": family.render(start).text(),
            "inputs": [{"shape": shape, "dtype": dtype} for shape in shapes],
            "state": state,
            "point": dict(start),
        }
        for start in family.space().starts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page_size", [None, 16, 64])
def test_starts_compile_without_spills_and_hold_several_steps(page_size):
    jobs = _jobs(page_size, "bfloat16")
    for job, answer in zip(jobs, compile_jobs(jobs), strict=True):
        assert answer["status"] == "ok", (answer, job["source"])
        found = {k["name"]: k for k in answer["kernels"]}
        assert all(k["spill_bytes"] == 0 for k in found.values()), answer
        kernel, point = found["attend_share"], job["point"]
        assert kernel["shared_bytes"] <= SHARED_BYTES, kernel
        # Loads that had to wait for a page number within their own step would have one buffer.
        ahead = (point["num_stages"] - 1) * STEP_BYTES * point["BLOCK_N"] // 64
        assert kernel["shared_bytes"] >= ahead, (kernel, point)


@pytest.mark.slow
def test_float32_starts_compile():
    for answer in compile_jobs(_jobs(64, "float32")):
        assert answer["status"] == "ok", answer
        assert all(k["spill_bytes"] == 0 for k in answer["kernels"]), answer
