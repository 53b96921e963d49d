"""What doctor says of GPUs: free, shared, full, or hung."""

from __future__ import annotations

import pytest

from hotloop.cli import checks
from hotloop.cli.interpreter_notice import with_interpreter_notice
from hotloop.core.event import Event
from hotloop.core.gpu_reading import GpuProcess, GpuReading
from hotloop.core.problem import ProblemInfo
from hotloop.core.units import GIB
from hotloop.sandbox.nvml import NoReading
from hotloop.testing.fakes import make_problem


def gpu(*pids: int, used_gib: int = 0) -> GpuReading:
    return GpuReading(
        uuid="GPU-1",
        name="NVIDIA H200",
        driver="580.159",
        total_bytes=141 * GIB,
        used_bytes=used_gib * GIB,
        processes=tuple(GpuProcess(pid=pid, used_bytes=3 * GIB) for pid in pids),
    )


def test_each_gpu_has_a_line_on_who_uses_it() -> None:
    listed, first, second = checks.gpu((gpu(), gpu(4242, used_gib=3)))
    assert listed.state == "ok"
    assert listed.found.count("NVIDIA H200, 580.159, 141 GiB") == 2
    assert (first.name, first.state, first.mend) == ("gpu 0 use", "ok", None)
    assert first.found == "nobody; 141.0 of 141.0 GiB are free"
    assert (second.name, second.state) == ("gpu 1 use", "limited")
    assert "pid 4242 (3.0 GiB)" in second.found
    assert "times may be too long" in str(second.mend)


def test_a_full_gpu_would_be_refused() -> None:
    _, use = checks.gpu((gpu(4242, used_gib=140),))
    assert use.state == "limited"
    assert "would refuse" in str(use.mend)


@pytest.mark.parametrize(
    ("found", "said", "mend"),
    [
        ((), "lists no GPU", "--device cpu"),
        (NoReading("nvidia-smi is not installed"), "not installed", "--device cpu"),
        (NoReading("no answer within 15 s", is_silent=True), "within 15 s", "NVML hangs"),
    ],
)
def test_no_gpu_limits_and_says_why(found: NoReading, said: str, mend: str) -> None:
    (check,) = checks.gpu(found)
    assert check.state == "limited"
    assert said in check.found
    assert mend in str(check.mend)


@pytest.mark.parametrize("shared", [None, "GPU-1 is used by pid 4242 (3.0 GiB)"])
def test_a_run_on_a_shared_gpu_is_warned(shared: str | None) -> None:
    heard: list[Event] = []
    problem = make_problem()
    info = ProblemInfo(
        problem_id=problem.id, device="cuda", inputs=(), outputs=(), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=0, rankable=True, environment={"gpu_shared": shared},
    )  # fmt: skip
    with_interpreter_notice(problem, heard.append)(Event(kind="setup", payload={"info": info}))
    warnings = [event.payload["message"] for event in heard if event.kind == "warning"]
    assert warnings == (
        [f"the GPU is not ours alone, so times may be too long: {shared}"] if shared else []
    )
