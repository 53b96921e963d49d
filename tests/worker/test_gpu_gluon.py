"""Gluon on a Hopper GPU: the programs of prompts pass and are replayed, decoys and races fall."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.problems import load_problem_spec
from hotloop.prompts.fences import find_blocks
from hotloop.prompts.render import first_prompt
from hotloop.verify import LocalVerifier

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "prompts"))

from prompt_cases import attention_task  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
SIZES = {"B": 2, "H": 4, "S": 1000, "D": 64}
"""No multiple of a tile."""
RETURN = "        return out"
LAUNCH = "        attention_kernel[(triton.cdiv(S, BLOCK_M), B * H)]("
EXPECT = "mbarrier.expect(bar, k_desc.block_type.nbytes + v_desc.block_type.nbytes)"
"""The bytes of a round; a round that waits for more never ends."""
WAIT = "        mbarrier.wait(ready.index(t % STAGES), t // STAGES & 1)\n"


@pytest.fixture(scope="module")
def full_attention() -> Iterator[LocalVerifier]:
    judge = LocalVerifier("cuda", call_timeout_s=10.0)
    try:
        path = ROOT / "examples" / "attention" / "full.py"
        judge.load(load_problem_spec(path, device="cuda", settings=SIZES))
        yield judge
    finally:
        judge.close()


def skeleton(*changes: tuple[str, str]) -> Candidate:
    import triton

    task = attention_task("gluon")
    environment: dict[str, Any] = {"triton": triton.__version__}
    task = replace(task, info=replace(task.info, environment=environment))
    (text,) = (b.text for b in find_blocks(first_prompt(task).text) if "class ModelNew" in b.text)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return Candidate(language="gluon", sources=(SourceFile(path="kernel.py", text=text),))


def test_the_skeleton_is_right_and_timed(full_attention: LocalVerifier) -> None:
    found = full_attention.verify(skeleton(), Tier.FAST)
    assert found.status is Status.PASSED, found.message
    assert found.performance is not None
    (kernel,) = found.resources
    assert kernel.spill_bytes == 0


def test_its_launch_with_tensor_maps_is_replayed(full_attention: LocalVerifier) -> None:
    found = full_attention.verify(skeleton(), Tier.FINAL)
    assert found.status is Status.PASSED, found.message
    assert found.performance is not None
    assert found.performance.host_path_reason is None
    assert found.mode == "replay"


def failed(found: Verdict) -> bool:
    return found.status in (
        Status.REWARD_HACK, Status.INCORRECT_NUMERICAL, Status.RUNTIME_ERROR, Status.TIMEOUT,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RETURN, "        return torch.softmax(q @ k.mT * D**-0.5, -1) @ v"),
        (RETURN, "        return torch.nn.functional.silu(q)"),
        (LAUNCH, LAUNCH.replace("B * H", "B * H - 1")),
        (WAIT, ""),
        ("gl.where((key < SKV)[None, :], s * ", "gl.where((key < SKV + 64)[None, :], s * "),
    ],
    ids=["torch does the work", "another function", "a head is left out", "no wait", "no mask"],
)
def test_a_decoy_or_a_race_falls(full_attention: LocalVerifier, old: str, new: str) -> None:
    found = full_attention.verify(skeleton((old, new)), Tier.FAST)
    refused = found.status is Status.REJECTED_STATIC  # `@` in a policy without library calls
    assert refused or failed(found), found.message


def test_a_kernel_that_waits_for_ever_is_stopped(full_attention: LocalVerifier) -> None:
    more = EXPECT.replace("v_desc.block_type.nbytes", "2 * v_desc.block_type.nbytes")
    found = full_attention.verify(skeleton((EXPECT, more)), Tier.FAST)
    assert found.status is Status.TIMEOUT, found.message
    assert full_attention.verify(skeleton(), Tier.FAST).status is Status.PASSED
