"""Generated Hopper kernels compile for sm_90a as they were meant to.

No spills; weights stay in registers; and, what no numerical test can see, the exponentials of one
tile stand in the machine code where they overlap the product of the tile before.
"""

from __future__ import annotations

from typing import Any

import attention_variants as variants
import pytest
from compiling import compile_jobs
from graph_expressions import make_spec

from hotloop.templates.hopper.family import HopperFamily

KEYS = 128
SCORES_OF_THREAD = 64 * KEYS // 128
PERMUTES_OF_THREAD = 16
"""Far below one for each weight; a few belong to the walk."""


def _job(name: str, D: int, *, edit: tuple[str, str] | None = None, **point: Any) -> dict[str, Any]:
    build = getattr(variants, name)
    score, mask = build() if name == "full" else build(S=4096, H=16)
    spec = make_spec(score=score, mask=mask, B=4, H=16, S=4096, D=D, dtype="bfloat16")
    family = HopperFamily(spec)
    text = family.render(family.space().complete(point)).text()
    tensor = {"shape": [4, 16, 4096, D], "dtype": "bfloat16"}
    state = {b.name: {"shape": list(b.shape), "dtype": b.dtype} for b in spec.buffers}
    return {
        "source": text.replace(*edit) if edit else text,
        "inputs": [tensor] * 3,
        "state": state,
    }


def _main(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["status"] == "ok", answer
    (found,) = [k for k in answer["kernels"] if k["name"] == "attention_forward"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("name", ["full", "causal", "relative", "alibi", "document", "softcap"])
def test_best_guesses_overlap_weights_with_products(name, D):
    (answer,) = compile_jobs([_job(name, D)], "hopper_compile_child.py")
    few = 96 if D == 64 and name in ("relative", "alibi") else 0  # three consumers: 160 registers
    assert _main(answer)["spill_bytes"] <= few
    overlapped = answer["code"]["overlapped_mufu"]
    assert overlapped
    assert all(count >= SCORES_OF_THREAD for count in overlapped)
    assert answer["code"]["shared_loads"] <= 1  # weights do not go through shared memory
    assert answer["code"]["permutes"] < PERMUTES_OF_THREAD  # as where two loops share results


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relative", "alibi"])
def test_a_linear_bias_costs_one_operation_a_score(name):
    """No conversion and no product a column is left in the loop, as there was before."""
    answers = compile_jobs([_job(name, 128), _job("full", 128)], "hopper_compile_child.py")
    biased, full = (answer["code"] for answer in answers)
    more = biased["loop"] - full["loop"]
    assert SCORES_OF_THREAD <= more < 1.7 * SCORES_OF_THREAD
    assert biased["conversions"] <= 4  # of a tile


@pytest.mark.slow
def test_without_the_wait_for_the_next_k_nothing_overlaps():
    """What the template's comment says of the assembler; when this fails, it is out of date."""
    wait = "        mbarrier.wait(k_full.index(place), phase, pred=i + 1 < n_tiles)\n"
    again = "        mbarrier.wait(k_full.index(place), phase)\n"
    start = "        qk = score_tile(q_rows, k.index(place))\n"
    job = _job("full", 128)
    assert job["source"].count(wait) == 1
    job["source"] = job["source"].replace(wait, "").replace(start, again + start)
    (answer,) = compile_jobs([job], "hopper_compile_child.py")
    assert all(count < SCORES_OF_THREAD for count in answer["code"]["overlapped_mufu"])


@pytest.mark.slow
@pytest.mark.parametrize("D", [16, 96, 256])
def test_other_head_sizes_compile(D):
    (answer,) = compile_jobs([_job("causal", D)], "hopper_compile_child.py")
    assert _main(answer)["spill_bytes"] <= 64  # a few numbers of the program
