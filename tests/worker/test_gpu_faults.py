"""Triton candidates that fault on a GPU: each gets its verdict, and the next one passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaled_rows import TRITON, candidate, spoilt, verdict

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Status
from hotloop.verify import LocalVerifier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]

COLUMNS = 1000
STORE = "    tl.store(y_ptr + i, y, mask=inside)\n"
HANG = """    ticket = tl.atomic_add(ticket_ptr, 2)  # an effect, so that the loop stays
    while ticket != 1:
        ticket = tl.atomic_add(ticket_ptr, 2)
"""


def triton(*changes: tuple[str, str]) -> Candidate:
    """Return the Triton kernel at this judge's size, with changes."""
    text = spoilt(TRITON, *changes).replace("torch.empty(COLUMNS)", f"torch.empty({COLUMNS})")
    return candidate(text, "kernel.py")


FAULTS: dict[str, tuple[Candidate, Status, str]] = {
    "never ends": (
        triton(
            ("def scale_kernel(x_ptr", "def scale_kernel(ticket_ptr, x_ptr"),
            (STORE, HANG + STORE),
            ("        y = torch.empty_like(x)\n",
             "        y = torch.empty_like(x)\n"
             "        ticket = torch.zeros(1, dtype=torch.int32, device=x.device)\n"),
            ("[grid](x", "[grid](ticket, x"),
        ),
        Status.TIMEOUT, "timeout_gpu",
    ),
    "stores at an illegal address": (
        triton(("tl.store(y_ptr + i, y", "tl.store(y_ptr + i.to(tl.int64) + (1 << 40), y")),
        Status.RUNTIME_ERROR, "cuda_error",
    ),
    "allocates 4 TiB": (
        triton(("torch.empty_like(x)", "torch.empty(1 << 40, device=x.device)[:x.numel()]")),
        Status.RUNTIME_ERROR, "oom_gpu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_the_candidates_alone(gpu_judge: LocalVerifier, name: str) -> None:
    kernel, status, kind = FAULTS[name]
    found = verdict(gpu_judge, kernel)
    assert found.status is status, found.message
    assert found.evidence is not None
    assert found.evidence.kind == kind
    after = verdict(gpu_judge, triton())
    assert after.status is Status.PASSED, after.message


def test_an_orderly_kernel_passes_first_and_last(gpu_judge: LocalVerifier) -> None:
    for _ in range(2):
        assert verdict(gpu_judge, triton()).status is Status.PASSED
