"""The task as a prompt states it: reference, sizes, policy and device, without what is secret.

A problem file may also say how it is judged: workloads (some held out), tolerances, the seed of the
timed buffers. Those statements are taken out of the shown source. The user's own prompt, where
there is one, is shown word for word.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.core.graph import AttentionSpec
from hotloop.core.language import TRITON, runs_on_cpu
from hotloop.core.problem import Policy, Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.python_source import parse_python
from hotloop.errors import ProblemError
from hotloop.prompts.roofline import describe_bound
from hotloop.prompts.untrusted import one_line

HIDDEN_NAMES = frozenset({"workloads", "tolerances", "policy", "buffer_seed"})
"""Module constants of a problem file that say how it is judged."""
MAX_TENSORS = 24

PRECISIONS: Mapping[str, str] = {
    "as_shipped": "as eager PyTorch runs it by default: float32 matrix products are full float32 "
    "(no TF32)",
    "strict": "full precision everywhere, in convolutions too: no TF32, no 16-bit product of "
    "float32 values; split operands (3xTF32) count where their error is that of float32",
    "tf32": "TF32 products of float32 values are allowed; PyTorch's own matrix products and "
    "convolutions may use it here too, and all other arithmetic is float32",
    "bf16": "products may be made in bfloat16, accumulated in float32",
    "fp16": "products may be made in float16, accumulated in float32",
}
EAGER_TF32: Mapping[bool | None, str] = {
    None: "",
    True: "; its float32 convolutions are rounded to TF32 here, so TF32 is exact enough for them",
    False: "; its float32 convolutions are full float32 too at these sizes, and TF32 products are "
    "not accurate enough",
}
"""By `ProblemInfo.eager_tf32`."""
TF32_CONVOLUTIONS: Mapping[bool | None, str] = {
    **EAGER_TF32,
    False: "; its float32 convolutions are full float32 at these sizes nevertheless, and TF32 is "
    "not accurate enough for them",
}
"""The same where TF32 products are allowed."""
LIBRARY_CALLS: Mapping[str, str] = {
    "none": "no library call may do the work: no matmul, linear, conv, softmax, layer_norm, "
    "scaled_dot_product_attention, flex_attention",
    "anchored": "a matrix product or convolution may stay a PyTorch call only beside a kernel of "
    "your own that does part of the arithmetic; library calls alone do not count",
}
SHAPE_SCOPES: Mapping[str, str] = {
    "nominal": "only the sizes stated here must work; you may rely on them",
    "generic": "other sizes are checked too: take sizes from the tensors, mask the ends, and "
    "assume no alignment of sizes or addresses",
}

DEVICE_FACTS: Mapping[str, tuple[str, ...]] = {
    "H200": (
        "132 multiprocessors, compute capability 9.0 (sm_90a), 50 MiB L2, 141 GB memory",
        "a multiprocessor: 64 K registers, 228 KiB shared memory (227 KiB a block), 64 warps",
        "measured: 690 TFLOP/s dense bf16, 4.26 TB/s copy (read and write)",
    ),
    "H100": (
        "132 multiprocessors (SXM), compute capability 9.0 (sm_90a), 50 MiB L2, 80 GB memory",
        "a multiprocessor: 64 K registers, 228 KiB shared memory (227 KiB a block), 64 warps",
    ),
}
"""By a word in the GPU's name. NVIDIA's data sheets and CUDA C++ Programming Guide, "Compute
Capabilities"; rates of the H200: medians of ours on one machine (8192^3 product; 1 GiB copy)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What every prompt of a run is about."""

    problem: Problem
    info: ProblemInfo
    language: str
    """A name of `core.language`."""


def shown_source(problem: Problem) -> str:
    """Return the problem's source without the statements that say how it is judged.

    Raises:
        ProblemError: the source is no Python.
    """
    try:
        tree = parse_python(problem.source)
    except SyntaxError as exc:
        text = f"{problem.name}: expected Python, line {exc.lineno}: {exc.msg}"
        raise ProblemError(text) from exc
    lines = problem.source.split("\n")
    for node in reversed(tree.body):
        if HIDDEN_NAMES & _bound(node):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip("\n")


def size_lines(info: ProblemInfo) -> list[str]:
    """Return the sizes at the nominal workload: attention's letters, or the tensors."""
    if info.attention is not None:
        a = info.attention
        keys = f"(B {a.B}, Hkv {a.Hkv}, Skv {a.Skv}, D {a.D})"
        if a.page_size is not None:
            keys = f"a paged cache ({a.pages} pages, Hkv {a.Hkv}, {a.page_size} keys, D {a.D})"
        return [
            f"q is (B {a.B}, H {a.H}, S {a.S}, D {a.D}), k and v are {keys}, the output is as q; "
            f"all contiguous, {a.dtype}",
            *_page_lines(a),
            f"scores are scaled by {a.scale:.8g} before score_mod; normalisation: {a.normalize}",
            *(f"captured tensor `{b.name}`: {_shape(b.shape)}, {b.dtype}" for b in a.buffers),
        ]
    groups = (("input", info.inputs), ("parameter", info.parameters), ("output", info.outputs))
    lines = [_tensor(kind, spec) for kind, specs in groups for spec in specs]
    cut = len(lines) - MAX_TENSORS
    return [*lines[:MAX_TENSORS], *([f"... and {cut} tensors more"] if cut > 0 else [])]


def captured_names(info: ProblemInfo) -> list[str]:
    """Return the names of attention's buffers: the page table, then what the functions capture."""
    if info.attention is None:
        return []
    table = [] if info.attention.page_size is None else ["page_table"]
    return [*table, *(b.name for b in info.attention.buffers)]


def policy_lines(policy: Policy, info: ProblemInfo) -> list[str]:
    """Return what a candidate may do, a line each."""
    precision = PRECISIONS.get(policy.precision, policy.precision)
    convolutions = (TF32_CONVOLUTIONS if policy.precision == "tf32" else EAGER_TF32)[
        info.eager_tf32
    ]
    return [
        f"precision: {precision}{convolutions}",
        f"library calls: {LIBRARY_CALLS.get(policy.library_calls, policy.library_calls)}",
        f"sizes: {SHAPE_SCOPES.get(policy.shape_scope, policy.shape_scope)}",
    ]


def device_lines(info: ProblemInfo, language: str = TRITON.name) -> list[str]:
    """Return what is known of the device: a few facts, versions, and PyTorch's own times."""
    if info.device != "cuda":
        runs = "kernels run in Triton's interpreter on small sizes and are compiled for sm_90"
        only = "kernels are compiled for sm_90 and not run"
        return [f"no GPU here: {runs if runs_on_cpu(language) else only}; nothing is timed"]
    gpu = str(info.environment.get("gpu") or "a CUDA GPU")
    facts = next((f for word, f in DEVICE_FACTS.items() if word in gpu), ())
    versions = [
        f"{n} {info.environment[n]}" for n in ("torch", "triton", "cuda") if info.environment.get(n)
    ]
    lines = [one_line(gpu, 80), *facts]
    if versions:
        lines.append(one_line(", ".join(versions), 200))
    if info.baselines_ms:
        times = ", ".join(f"{name} {ms:.4g} ms" for name, ms in sorted(info.baselines_ms.items()))
        lines.append(f"PyTorch's own times for this problem: {times}")
    least = describe_bound(info)
    return [*lines, least] if least else lines


def interface_kind(problem: Problem) -> str:
    """Return which contract holds: `attention` or `model`."""
    return "attention" if problem.kind is ProblemKind.ATTENTION else "model"


def _page_lines(spec: AttentionSpec) -> list[str]:
    """Return the layout of a paged cache; nothing where k and v are contiguous."""
    size = spec.page_size
    if size is None:
        return []
    return [
        f"each batch has Skv {spec.Skv} keys; captured tensor `page_table`: "
        f"{_shape((spec.B, spec.Skv // size))}, int32: row i % {size} of page "
        f"page_table[b, i // {size}] holds key i of batch b",
        "pages lie in any order, none is in the table twice, and some are not in it; the table is "
        "drawn anew for every check",
    ]


def _tensor(kind: str, spec: TensorSpec) -> str:
    line = f"{kind} `{spec.name}`: {_shape(spec.shape)}, {spec.dtype}"
    if kind == "output" or not spec.strides or spec.strides == _contiguous(spec.shape):
        return line
    return f"{line}, strides {_shape(spec.strides)}"


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor."""
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _bound(node: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        targets = [node.target]
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
