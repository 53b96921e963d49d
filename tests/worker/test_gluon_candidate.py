"""Gluon candidates where there is no GPU: compiled, never passed, errors told with their place."""

from __future__ import annotations

import pytest
import torch
from scaled_rows import spoilt, verdict

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Stage, Status
from hotloop.verify import LocalVerifier

pytestmark = pytest.mark.timeout(120)

KERNEL = """
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def scale_kernel(x_ptr, scale_ptr, y_ptr, n, COLUMNS: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0) * 256 + gl.arange(0, 256, layout=layout)
    inside = i < n
    x = gl.load(x_ptr + i, mask=inside)
    y = x * gl.load(scale_ptr + i % COLUMNS) + 1
    gl.store(y_ptr + i, y, mask=inside)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.empty(48))

    def forward(self, x):
        y = torch.empty_like(x)
        layout = gl.BlockedLayout([2], [32], [4], [0])
        grid = (triton.cdiv(x.numel(), 256),)
        scale_kernel[grid](x, self.scale, y, x.numel(), x.shape[1], layout, num_warps=4)
        return y
"""
OTHER = "gl.arange(0, 256, layout=gl.BlockedLayout([1], [32], [4], [0]))"
ABORTS = """
    layout2: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    tile = gl.allocate_shared_memory(gl.bfloat16, [64, 64], gl.NVMMASharedLayout(128, 16))
    acc = gl.zeros([64, 64], gl.float32, layout2)
    acc = gl.nvidia.hopper.warpgroup_mma(acc.to(gl.bfloat16), tile, acc)
"""


def gluon(*changes: tuple[str, str]) -> Candidate:
    text = spoilt(KERNEL, *changes)
    return Candidate(language="gluon", sources=(SourceFile(path="kernel.py", text=text),))


def test_an_honest_kernel_is_compiled_only(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, gluon())
    assert (found.status, found.stage) == (Status.COMPILED_ONLY, Stage.COMPILE)
    assert found.message == "compiled, not run: Gluon needs a GPU; verify it on one"
    (kernel,) = found.resources
    assert kernel.name == "scale_kernel"
    assert kernel.registers
    assert found.performance is None


def test_a_layout_mismatch_is_a_compile_error_with_its_line(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, gluon(("y_ptr + i, y", f"y_ptr + {OTHER}, y")))
    assert found.status is Status.COMPILE_ERROR
    assert found.evidence is not None
    assert "kernel.py:13" in found.message
    assert "ayout" in found.message


def test_a_forward_that_fails_before_its_kernel_is_told(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, gluon(("x.numel(), 256),)", "x.nummel(), 256),)")))
    assert (found.status, found.stage) == (Status.RUNTIME_ERROR, Stage.COMPILE)
    assert "nummel" in found.message
    assert found.evidence is not None
    assert "kernel.py" in found.evidence.details["traceback"]


def test_a_kernel_of_triton_alone_is_no_gluon(cpu_judge: LocalVerifier) -> None:
    plain = spoilt(
        KERNEL,
        ("from triton.experimental import gluon\n", ""),
        ("from triton.experimental.gluon import language as gl", "import triton.language as gl"),
        ("@gluon.jit", "@triton.jit"),
        (", layout=layout", ""), (", layout: gl.constexpr", ""), (", layout, num_warps=4", ""),
        ("        layout = gl.BlockedLayout([2], [32], [4], [0])\n", ""),
    )  # fmt: skip
    sources = (SourceFile(path="kernel.py", text=plain),)
    refused = verdict(cpu_judge, Candidate(language="gluon", sources=sources))
    assert refused.status is Status.REJECTED_STATIC
    assert "`@gluon.jit`" in refused.message
    assert verdict(cpu_judge, Candidate(language="triton", sources=sources)).passed


def test_a_compiler_that_aborts_is_quoted(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, gluon(("    inside = i < n\n", f"    inside = i < n{ABORTS}")))
    assert found.status is Status.COMPILE_ERROR
    assert found.evidence is not None
    assert found.evidence.kind == "compiler_crash"
    assert "kernel.py:" in found.message
    assert "unexpected operand layout" in found.message
    assert "/" not in found.message


def test_a_forward_that_reads_values_is_not_blamed(cpu_judge: LocalVerifier) -> None:
    found = verdict(
        cpu_judge, gluon(("        return y\n", "        return y if y.sum() else x\n"))
    )
    assert found.status is Status.COMPILED_ONLY
    assert "forward reads values" in found.message
    assert len(found.resources) == 1


@pytest.mark.parametrize(
    ("lines", "needs"),
    [
        ("side, now = torch.cuda.Stream(), torch.cuda.current_stream(); side.wait_stream(now); "
         "now.wait_stream(side); y.record_stream(now)", ""),
        ("free, total = torch.cuda.mem_get_info(); assert 0 < free <= total", ""),
        ("assert torch.device('cuda', 0) == x.device", ""),
        pytest.param(
            "torch.cuda.nvtx.range_push('all')", "NVTX functions not installed",
            marks=pytest.mark.skipif(
                torch.version.cuda is not None, reason="torch's CUDA build has NVTX without a GPU"
            ),
        ),
        ("y.view(7)", "shape"),
    ],
)  # fmt: skip
def test_a_gap_of_a_machine_without_a_gpu_is_not_blamed(
    cpu_judge: LocalVerifier, lines: str, needs: str
) -> None:
    found = verdict(
        cpu_judge, gluon(("        return y\n", f"        {lines}\n        return y\n"))
    )
    assert found.status is Status.COMPILED_ONLY, found.message
    assert needs in found.message
    assert ("not followed" in found.message) is bool(needs)
    assert len(found.resources) == 1


@pytest.mark.parametrize(
    "line",
    [
        "raise ValueError('no')", "[][1]", "scale_kernel.warmup()", "self.nobody",
        "scale_kernel[grid](x, self.scale, y, 1, 48, layout, nobody=1)",
    ],
)  # fmt: skip
def test_an_error_of_its_own_is(cpu_judge: LocalVerifier, line: str) -> None:
    found = verdict(cpu_judge, gluon(("        return y\n", f"        {line}\n        return y\n")))
    assert found.status is Status.RUNTIME_ERROR, found.message


def test_a_forward_that_launches_nothing_is_refused(cpu_judge: LocalVerifier) -> None:
    found = verdict(
        cpu_judge,
        gluon(("        scale_kernel[grid]", "        x.dim() > 2 and scale_kernel[grid]")),
    )
    assert found.status is Status.REJECTED_STATIC
    assert found.message.startswith("expected a forward that launches a `@gluon.jit` kernel")


PLAIN = """
import triton.language as tl

@triton.jit
def plain_kernel(x_ptr, scale_ptr, y_ptr, n, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * tl.load(scale_ptr + i % COLUMNS) + 1, mask=i < n)

KEEP = (scale_kernel,)

class ModelNew("""
PLAIN_LAUNCH = "plain_kernel[grid](x, self.scale, y, x.numel(), x.shape[1])"
GLUON_LAUNCH = "scale_kernel[grid](x, self.scale, y, x.numel(), x.shape[1], layout, num_warps=4)"


def test_a_gluon_kernel_that_is_only_named_is_no_gluon(cpu_judge: LocalVerifier) -> None:
    named = gluon(("class ModelNew(", PLAIN), (GLUON_LAUNCH, PLAIN_LAUNCH))
    refused = verdict(cpu_judge, named)
    assert (refused.status, refused.stage) == (Status.REJECTED_STATIC, Stage.COMPILE)
    assert "expected a kernel in gluon, got a Triton one" in refused.message
    assert "`plain_kernel`" in refused.message
    assert refused.evidence is not None
    assert refused.evidence.details["rule"] == "language"
    both = gluon(
        ("class ModelNew(", PLAIN), (GLUON_LAUNCH, f"{GLUON_LAUNCH}\n        {PLAIN_LAUNCH}")
    )
    assert verdict(cpu_judge, both).status is Status.COMPILED_ONLY
    assert verdict(cpu_judge, Candidate(language="triton", sources=named.sources)).passed


@pytest.mark.parametrize(
    ("line", "jit"),
    [
        ("from triton.experimental.gluon._runtime import jit", "jit"),
        ("from triton.experimental import gluon\ng = gluon.jit", "g"),
    ],
)
def test_gluon_by_another_name_is_gluon_and_no_triton(
    cpu_judge: LocalVerifier, line: str, jit: str
) -> None:
    renamed = gluon(
        ("from triton.experimental import gluon\n", f"{line}\n"), ("@gluon.jit", f"@{jit}")
    )
    assert verdict(cpu_judge, renamed).status is Status.COMPILED_ONLY
    refused = verdict(cpu_judge, Candidate(language="triton", sources=renamed.sources))
    assert refused.status is Status.REJECTED_STATIC
    assert "expected a kernel in triton, got a Gluon one" in refused.message
