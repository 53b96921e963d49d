"""Gluon in replies, findings, hints and moves: each rule speaks where it should, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prompt_cases import attention_task, norm_task, passed, verdict

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import TensorSpec
from hotloop.core.verdict import KernelResources, Performance, Stage, Status
from hotloop.prompts import render, speed
from hotloop.prompts.analysis import analyse
from hotloop.prompts.extract import Extracted, NoCode, NoCodeReason, extract
from hotloop.prompts.feedback import Judged, make_feedback
from hotloop.prompts.gluon_hints import gluon_hint
from hotloop.prompts.programs import read_program
from hotloop.prompts.render import Context

GLUON = """import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, tma, warpgroup_mma


@gluon.jit
def copy_kernel(x_ptr, y_desc, n, layout: gl.constexpr):
    i = gl.arange(0, 128, layout=layout)
    tile = gl.allocate_shared_memory(y_desc.dtype, [128], y_desc.layout)
    tile.store(gl.load(x_ptr + i, mask=i < n, other=0.0))
    fence_async_shared()
    tma.async_store(y_desc, [0], tile)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy_kernel[(1,)](x, y, x.numel(), gl.BlockedLayout([1], [32], [4], [0]))
        return y
"""
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr):
    i = tl.arange(0, 128)
    tl.store(y_ptr + i, tl.load(x_ptr + i))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy_kernel[(1,)](x, y)
        return y
"""
FLOAT32 = (TensorSpec(name="x", shape=(128,), dtype="float32", strides=(1,)),)
BFLOAT16 = (TensorSpec(name="x", shape=(128,), dtype="bfloat16", strides=(1,)),)


def fenced(text: str, info: str = "python") -> str:
    return f"Here it is.\n\n```{info}\n{text}```\n"


@pytest.mark.parametrize("info", ["python", "gluon", ""])
def test_a_gluon_reply_becomes_a_gluon_candidate(info: str) -> None:
    found = extract(fenced(GLUON, info), language="gluon")
    assert isinstance(found, Extracted)
    assert (found.candidate.language, found.candidate.entry) == ("gluon", "kernel.py")


@pytest.mark.parametrize(
    ("text", "asked", "got"),
    [(TRITON, "gluon", "a Triton kernel"), (GLUON, "triton", "a Gluon kernel"),
     (GLUON, "cuda", "a Gluon kernel")],
)  # fmt: skip
def test_a_reply_in_another_language_is_named(text: str, asked: str, got: str) -> None:
    found = extract(fenced(text), language=asked)
    assert isinstance(found, NoCode)
    assert found.reason is NoCodeReason.WRONG_LANGUAGE
    assert found.message == f"expected a kernel in {asked}, got {got}"


def test_the_program_in_the_language_that_was_asked_for_is_taken() -> None:
    both = fenced(TRITON) + fenced(GLUON) + fenced(TRITON)
    found = extract(both, language="gluon")
    assert isinstance(found, Extracted)
    assert "gluon.jit" in found.candidate.text()


@pytest.mark.parametrize(
    ("line", "decorator", "language"),
    [
        ("from triton.experimental import gluon", "gluon.jit", "gluon"),
        ("from triton.experimental import gluon as g", "g.jit", "gluon"),
        ("import triton.experimental.gluon as g", "g.jit(debug=True)", "gluon"),
        ("import triton.experimental.gluon", "triton.experimental.gluon.jit", "gluon"),
        ("from triton.experimental.gluon import jit", "jit", "gluon"),
        ("from triton.experimental.gluon._runtime import jit", "jit", "gluon"),
        ("from triton.experimental import gluon\ng = gluon.jit", "g", "gluon"),
        ("from triton.experimental import gluon\nh = gluon\ng = h", "g.jit(debug=True)", "gluon"),
        ("import triton\nfrom triton.experimental import gluon\ng = triton.jit", "g", "triton"),
        ("import triton as gluon", "gluon.jit", "triton"),
        ("from triton import jit", "jit", "triton"),
    ],
)
def test_gluon_is_known_by_what_its_jit_was_imported_as(
    line: str, decorator: str, language: str
) -> None:
    text = GLUON.replace("from triton.experimental import gluon\n", f"{line}\n")
    assert read_program(text.replace("@gluon.jit", f"@{decorator}")).language == language


def test_a_broken_gluon_file_is_still_gluon() -> None:
    assert read_program(GLUON.replace("(i < n", "((i < n") + "\n)").language == "gluon"


def rules(text: str, inputs: tuple[TensorSpec, ...] = BFLOAT16) -> list[str]:
    return [finding.rule for finding in analyse(text, inputs=inputs)]


def test_an_honest_gluon_kernel_has_no_finding() -> None:
    assert rules(GLUON) == []
    assert rules(GLUON, FLOAT32) == []


def test_a_copy_out_of_a_written_tile_wants_a_fence() -> None:
    (finding,) = analyse(GLUON.replace("    fence_async_shared()\n", ""), inputs=BFLOAT16)
    assert finding.rule == "no_fence"
    assert "`tile`, which line 11 wrote" in finding.message
    unwritten = GLUON.replace("    fence_async_shared()\n", "").replace("tile.store", "other.store")
    assert rules(unwritten) == []


def test_products_of_float32_on_the_tensor_cores_are_tf32() -> None:
    fence = "    fence_async_shared()\n"
    text = GLUON.replace(fence, f"{fence}    warpgroup_mma(tile, tile, i)\n")
    assert rules(text, FLOAT32) == ["dot_precision"]
    assert rules(text, BFLOAT16) == []
    assert analyse(text, inputs=FLOAT32, precision="tf32") == ()


def test_masked_loads_of_gluon_are_read_as_tritons() -> None:
    summed = "gl.load(x_ptr + i, mask=i < n, other=0.0))"
    text = GLUON.replace(summed, "gl.sum(gl.load(x_ptr + i, mask=i < n), axis=0))")
    assert rules(text) == ["no_other"]


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("kernel.py:64:58: error: unexpected operand layout for NvidiaMmaEncodingAttr v3",
         "DotOperandLayout"),
        ("assertion failed: WGMMA type or shape is not supported", "[16, N, 256 // BITS]"),
        ("Layout mismatch in broadcast: A vs B", "gl.convert_layout"),
        ("Layout mismatch: NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16) vs B",
         "gl.convert_layout"),
        ("LLVM ERROR: Failed to find a valid layout", "NVMMASharedLayout"),
        ("expected element_bitwidth 16, got 32", "NVMMASharedLayout"),
        ("expected the last dimension of the first operand to be equal to", "permute((1, 0))"),
        ("module 'triton.experimental.gluon.language.nvidia.hopper.tma' has no attribute 'load'",
         "in the rules above"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_hint_for_gluon_alone(message: str, word: str) -> None:
    assert word in gluon_hint(message)
    failed = verdict(
        Status.COMPILE_ERROR, stage=Stage.COMPILE, kind="compile_error", message=message
    )
    told = {}
    for language in ("gluon", "triton"):
        candidate = Candidate(
            language=language, sources=(SourceFile(path="kernel.py", text=GLUON),)
        )
        judged = Judged(verdict=failed, candidate=candidate, problem=norm_task().problem)
        told[language] = make_feedback(judged).text
    assert word in told["gluon"]
    assert gluon_hint(message) not in told["triton"]


def test_an_unknown_refusal_has_no_hint() -> None:
    assert gluon_hint("NameError('x is not defined')") == ""


def keys(language: str, *, of=attention_task, **fields) -> list[str]:
    found = replace(passed(), **fields)
    return [move.key for move in speed.moves(found, of().info, language)]


def test_gluon_has_moves_of_its_own() -> None:
    assert {"warp_specialise", "two_consumers", "partition_registers"} <= set(keys("gluon"))
    assert "warp_specialise" not in keys("triton")
    assert "bulk_loads" in keys("gluon", of=norm_task)
    assert keys("gluon", of=norm_task)[-1] == "tunables"


def test_the_prompt_asks_for_a_move_in_the_candidates_language() -> None:
    task = attention_task("gluon")
    candidate = Candidate(language="gluon", sources=(SourceFile(path="kernel.py", text=GLUON),))
    judged = Judged(verdict=replace(passed(), resources=()), candidate=candidate,
                    problem=task.problem, info=task.info)  # fmt: skip
    prompt = render.optimise_prompt(task, Context(judged=judged))
    assert prompt.move == "warp_specialise"
    assert "gl.warp_specialize" in prompt.text


def test_nobody_is_asked_for_a_move_that_the_kernel_has_made() -> None:
    task = attention_task("gluon")
    asked = []
    for more in ("", "# gl.warp_specialize([(a, ()), (b, ())], [1], [24])\n"):
        sources = (SourceFile(path="kernel.py", text=GLUON + more),)
        judged = Judged(
            verdict=replace(passed(), resources=()),
            candidate=Candidate(language="gluon", sources=sources),
            problem=task.problem,
            info=task.info,
        )
        asked.append(render.optimise_prompt(task, Context(judged=judged)).move)
    assert asked == ["warp_specialise", "two_consumers"]


def test_stalls_have_remedies_that_exist_in_gluon() -> None:
    waits = Performance(
        latency_ms=1.0, spread_ms=0.0, samples=3, timer="cupti", l2="cold",
        counters={"stall_long_scoreboard_frac": 0.5, "dram_throughput_frac": 0.3},
        counters_kernel="k",
    )  # fmt: skip
    found = replace(passed(), performance=waits)
    for language, has_stages in (("triton", True), ("gluon", False)):
        moves = speed.moves(found, attention_task().info, language)
        (stall,) = [m for m in moves if m.key == "stall_long_scoreboard"]
        assert ("num_stages" in stall.text) is has_stages


SERIALISED = "C7511: wgmma.mma_async instructions are serialized due to insufficient registers"


@pytest.mark.parametrize(
    ("advice", "first", "shown"),
    [((SERIALISED,), "wgmma_serialised", True), ((), "spills", False),
     (("C7519: 'setmaxnreg' ignored",), "spills", True), (("anything at all",), "spills", False)],
)  # fmt: skip
def test_what_the_assembler_lost_is_told_and_asked_for(
    advice: tuple[str, ...], first: str, shown: bool
) -> None:
    kernel = KernelResources(name="k", registers=255, spill_bytes=8, advice=advice)
    assert keys("gluon", resources=(kernel,))[0] == first
    lines = speed.describe_resources((kernel,))
    assert (len(lines) == 2) is shown
    assert not shown or advice[0] in lines[1]
