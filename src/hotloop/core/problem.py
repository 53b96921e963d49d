"""Problem, Workload, Policy, and what a judge learns about a problem by loading it.

A `Problem` is what the coordinator knows without running any of the user's code: the text of the
file and its settings. A `ProblemInfo` is what the judge found by running it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hotloop.core.audit import Audit
from hotloop.core.graph import AttentionSpec, Graph
from hotloop.core.record import digest


class ProblemKind(StrEnum):
    """How the problem's file states its reference."""

    KERNELBENCH = "kernelbench"
    """`Model`, `get_inputs`, `get_init_inputs`."""
    NATIVE = "native"
    """The same, plus `workloads`, `policy` or `tolerances`."""
    ATTENTION = "attention"
    """`score_mod` and/or `mask_mod` plus sizes; the reference is exact attention."""


class Role(StrEnum):
    """What a workload is used for."""

    NOMINAL = "nominal"
    """Timed, and checked for correctness."""
    BOUNDARY = "boundary"
    """Checked for correctness only."""
    HELD_OUT = "held_out"
    """Final tier only; never shown to a model."""


NOTHING_TELLS = "no values can tell a right result from a wrong one"
"""How the `ProblemError` of a reference begins that nobody can be judged by: its output is random,
constant or ill-conditioned on all inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One set of sizes of a problem."""

    name: str
    """`nominal`, `boundary/0`, ..."""
    role: Role
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    """Module-level size constants (or attention sizes) that replace the file's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a candidate may do, and by which precision it is judged."""

    languages: tuple[str, ...] = ("triton", "cuda")
    """What candidates may be written in; a language allows its dialects (`language.is_allowed`)."""
    precision: str = "as_shipped"
    """`as_shipped` (what eager does as the file runs), `strict` (no lower precision anywhere),
    `tf32`, `bf16`, `fp16`. The same policy holds for envelope and baselines."""
    library_calls: str = "anchored"
    """`none`: no vendor library call; `anchored`: vendor matmul and convolution beside a kernel of
    the candidate's own that does part of the arithmetic."""
    shape_scope: str = "nominal"
    """`nominal`: only the problem's own sizes must work; `generic`: all workloads must pass."""

    @property
    def allows_tf32_products(self) -> bool:
        """Whether float32 matrix products may round their operands to TF32."""
        return self.precision == "tf32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What to compute. Frozen and content-hashed; holds text, never live objects."""

    name: str
    """`attention/causal`, `kernelbench/1/19`, or the file's stem."""
    kind: ProblemKind
    source: str
    """Python source of the problem file; runs in the judge only."""
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    """Values of `--set K=V`, replacing module-level constants or attention sizes."""
    policy: Policy = Policy()
    workloads: tuple[Workload, ...] = (Workload(name="nominal", role=Role.NOMINAL),)
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """`atol` and `rtol` of the problem file, checked as well: they can only tighten the gate."""
    prompt: str | None = None
    """The user's own words, verbatim, when the problem came from a prompt."""

    @property
    def id(self) -> str:
        """16 hex digits over everything that changes what is computed or how it is judged."""
        judged_by = [self.settings, self.policy, self.workloads, self.tolerances]
        return digest([self.kind, self.source, *judged_by])


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape and dtype of one input, output, parameter or buffer."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """`float32`, `bfloat16`, `int64`, ..."""
    strides: tuple[int, ...]
    """In elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemInfo:
    """What the judge found by loading the problem on its device, at the nominal workload."""

    problem_id: str
    device: str
    """`cuda` or `cpu`."""
    inputs: tuple[TensorSpec, ...]
    """Tensor arguments of `forward`, in order; other arguments stay in the reference."""
    outputs: tuple[TensorSpec, ...]
    parameters: tuple[TensorSpec, ...]
    """Parameters and buffers of the reference by name."""
    graph: Graph | None
    """The traced op graph of `forward`; None when it cannot be traced or is attention."""
    attention: AttentionSpec | None
    """Sizes and traced modifications; None unless the kind is attention."""
    flops: float | None
    """Dense matmul and convolution operations of one call; None when unknown."""
    io_bytes: int
    """Inputs, parameters and outputs, once each."""
    rankable: bool
    """False when the output can be faked or is degenerate; `audit` has the reasons."""
    notes: tuple[str, ...] = ()
    """Why it is not rankable, which profiles were dropped and why; no prompt has them."""
    baselines_ms: Mapping[str, float] = field(default_factory=dict)
    """Median kernel time of each baseline measured at set-up; empty on `cpu`."""
    missing_baselines: Mapping[str, str] = field(default_factory=dict)
    """Baselines that do not apply or failed, with the reason."""
    peaks: Mapping[str, float] = field(default_factory=dict)
    """Measured ceilings of the device that the roofline share is of: `copy_gbps` (read and write)
    and `matmul_tflops` in the dtype of the output; empty on `cpu`."""
    useful_flops: float | None = None
    """FLOPs without those that a mask leaves out; None when they are the same or unknown."""
    useful_bytes: int | None = None
    """`io_bytes` without keys that no query sees at the timed values; None without masks.
    For the roofline alone: what must fit in memory, and what no call can exceed, is `io_bytes`."""
    eager_tf32: bool | None = None
    """Whether eager's float32 convolutions are rounded to TF32 at these sizes; None where the
    policy forbids it, there are none, or it was not measured."""
    setup_s: float = 0.0
    environment: Mapping[str, Any] = field(default_factory=dict)
    """gpu, driver, cuda, torch, triton, python, isolation of the judge; strings or None."""
    envelope: tuple[str, ...] = ()
    """Legitimate implementations whose worst error candidates are held against, by name; `eager`
    alone where every operation is rounded correctly, or has one order only."""
    audit: Audit | None = None
    """Which fakes the checks refuse, and what follows; None from a hotloop that did not ask."""
