"""The emulator forgives nothing: kernels with one synchronisation wrong fail, the honest one runs.

Each fault is an edit of a generated source. What a GPU would get wrong in one run of many, or by
hanging, is an error here.
"""

from __future__ import annotations

import attention_variants as variants
import pytest
from gluon_emulator import Settings
from gluon_memory import Deadlock, KernelFault
from graph_expressions import make_spec
from hopper_check import run, source

WAIT_K = "        mbarrier.wait(k_full.index(place), phase, pred=i + 1 < n_tiles)\n"
FAULTS = {
    "k is not awaited": (WAIT_K, "", KernelFault, "without having awaited"),
    "k is never freed": (
        "warpgroup_mma_wait(1, deps=[qk])\n        mbarrier.arrive(k_empty.index(place))\n",
        "warpgroup_mma_wait(1, deps=[qk])\n",
        Deadlock,
        r"produce\[2\] waits for k_empty\[",
    ),
    "v is freed before its product is over": (
        "        acc = warpgroup_mma_wait(0, deps=[acc])\n        mbarrier.arrive(v_empty",
        "        mbarrier.arrive(v_empty",
        TypeError,
        "got Product",
    ),
    "v is freed a step early": (
        "        acc = warpgroup_mma(p, values, acc, is_async=True)\n",
        "        acc = warpgroup_mma(p, values, acc, is_async=True)\n"
        "        mbarrier.arrive(v_empty.index(before))\n",
        KernelFault,
        "before consume|more arrivals",
    ),
    "scores are read while wgmma writes them": (
        "warpgroup_mma_wait(1, deps=[qk])",
        "warpgroup_mma_wait(2, deps=[qk])",
        KernelFault,
        "may be under way",
    ),
    "the producer does not wait for room": (
        "                mbarrier.wait(k_empty.index(place), phase ^ 1)\n",
        "",
        KernelFault,
        "writes k",
    ),
    "the producer waits for the wrong phase": (
        "mbarrier.wait(v_empty.index(place), phase ^ 1)",
        "mbarrier.wait(v_empty.index(place), phase)",
        Deadlock,
        "waits for v_empty",
    ),
    "too few bytes are announced": (
        "mbarrier.expect(v_full.index(place), TILE_BYTES)",
        "mbarrier.expect(v_full.index(place), TILE_BYTES // 2)",
        Exception,
        "under way|more arrivals|all partitions wait",
    ),
    "q is replaced while it is in use": (
        "mbarrier.wait(q_empty.index(w), (turn & 1) ^ 1)",
        "pass",
        KernelFault,
        "writes q",
    ),
    "the output leaves without a fence": (
        "fence_async_shared()  # the copy engine sees what we wrote",
        "pass",
        KernelFault,
        "without a fence",
    ),
    "the output is overwritten while it leaves": (
        "        tma.store_wait(0)  # the copy",
        "        # the copy",
        KernelFault,
        "writes o",
    ),
    "turns are passed to oneself": (
        "mbarrier.arrive(may_issue.index((w + 1) % CONSUMERS))",
        "mbarrier.arrive(may_issue.index(w))",
        Deadlock,
        "waits for may_issue",
    ),
    "consumers walk more tiles than the producer": (
        "for i in range(n_tiles + 1):",
        "for i in range(n_tiles):",
        Deadlock,
        "waits for v_full",
    ),
}


@pytest.fixture(scope="module")
def honest():
    _, mask = variants.causal()
    spec = make_spec(mask=mask, H=2, S=700, D=16, dtype="bfloat16")
    text = source(spec, persistent=True, BLOCK_N=64)
    return spec, text.replace(*_two_stages(text))


def _two_stages(text: str) -> tuple[str, str]:
    """Leave little room, so that the ring goes round."""
    line = next(x for x in text.splitlines() if x.startswith("STAGES = "))
    return line, "STAGES = gl.constexpr(2)"


def test_the_honest_kernel_runs(honest):
    spec, text = honest
    for seed in range(4):
        run(text, spec, settings=Settings(seed=seed, multiprocessors=3))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(honest, name):
    spec, text = honest
    right, wrong, error, message = FAULTS[name]
    assert text.count(right) == 1, f"{text.count(right)} places to break"
    with pytest.raises(error, match=message):
        _run_often(text.replace(right, wrong), spec)


def _run_often(text, spec):
    """Draw anew who goes first: it must not hide a fault for long."""
    for seed in range(8):
        run(text, spec, settings=Settings(seed=seed, multiprocessors=3))
