"""Verdict: what the verifier found. The only truth there is.

Illegal verdicts cannot be built: performance exists only with PASSED on a GPU, evidence exists
whenever the status is not PASSED. Absent is None; there are no sentinels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """The outcome of one verification (FlashInfer-Trace's strings where it has them)."""

    PASSED = "PASSED"
    NO_CODE = "NO_CODE"
    REJECTED_STATIC = "REJECTED_STATIC"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INPUT_MODIFIED = "INPUT_MODIFIED"
    REWARD_HACK = "REWARD_HACK"
    INCONCLUSIVE = "INCONCLUSIVE"
    COMPILED_ONLY = "COMPILED_ONLY"


class Stage(StrEnum):
    """The ladder; the first failing stage is the verdict."""

    EXTRACT = "extract"
    STATIC = "static"
    COMPILE = "compile"
    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"


class Tier(StrEnum):
    """How much of the protocol ran."""

    FAST = "fast"
    """In the loop."""
    FINAL = "final"
    """Fresh process, new seeds, held-out shapes, sanitizers, interleaved timing, replay. Only these
    numbers are reported as results."""


class Rigour(StrEnum):
    """Which of the gate's rules an output was held to."""

    FULL = "full"
    """All of them: as exact as legitimate implementations are."""
    ROUGH = "rough"
    """Bulk and tail with wider bounds, and no rule for tiles."""
    GROSS = "gross"
    """NaN and Inf in the right places, and few elements that are off by half the output's own
    spread."""
    CUT = "cut"
    """The values' own, without what cutting operands to TF32 did where eager rounds them. Only an
    output that passed so has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a verdict is not PASSED."""

    kind: str
    """`compile_error`, `oom_gpu`, `cuda_error`, `timeout_host`, `timeout_gpu`, `crash`,
    `exception`, `output_limit`, `policy_violation`, `wrong_values`, `nonfinite`, ..."""
    message: str
    """One or a few lines, safe to show."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values: traceback, log, positions, samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The error of one checked call (one workload, value profile and seed)."""

    workload: str
    profile: str
    """`shipped`, `normal`, `positive_mean`, `large`, `far`, `integers`, `needles`, ..."""
    output: str
    passed: bool
    rule: str | None
    """The rule that failed: `bulk`, `tail`, `tile`, `exact`, `nonfinite`, ...; None if passed."""
    rmse: float | None
    """Root mean square of (candidate - fp64 golden); None when a value is not finite."""
    max_abs: float | None
    eager_rmse: float
    """The same of the worst legitimate implementation (the envelope)."""
    eager_max_abs: float
    golden_rms: float
    mismatches: int
    """Elements beyond the tail bound."""
    worst_index: tuple[int, ...]
    """Of the largest error; where the rule is `tile` or `part`, among those that failed."""
    rigour: Rigour | None = None
    """Which rules it was held to; None in verdicts that were written before this was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherShape:
    """One shape besides the problem's own that a kernel was run on: reported, deciding nothing."""

    role: str
    """`boundary`, or `held_out`: then nothing else is said of it."""
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    """Sizes, and `input_offset` where the inputs did not begin at aligned addresses."""
    status: Status
    """PASSED, or how the kernel failed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """All checked calls of one verification."""

    cases: tuple[CaseResult, ...]
    deterministic: bool | None
    """Whether repeated calls agreed bit for bit; None when not checked."""
    timed_calls_checked: int = 0
    other_shapes: tuple[OtherShape, ...] = ()
    """Final tier, where only the problem's own sizes must work: whether others do too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What the compiler says of one kernel."""

    name: str
    registers: int | None = None
    """Per thread."""
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    """Static and dynamic, per block."""
    num_warps: int | None = None
    num_stages: int | None = None
    cubin_sha256: str | None = None
    compile_s: float | None = None
    advice: tuple[str, ...] = ()
    """What the assembler says it lost, as `C7511: wgmma.mma_async instructions are serialized due
    to ...`; empty where it says nothing, or the binary came from a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """Measured time; exists only if the status is PASSED and the device is a GPU."""

    latency_ms: float
    """Median kernel time of one call."""
    spread_ms: float
    """Interquartile range."""
    samples: int
    timer: str
    """`cupti`, `cuda_event`, `wall` (the judge's own clock), `replay`."""
    l2: str
    """`cold` (flushed before each call) or `warm`."""
    wall_check_ms: float | None = None
    """Per call, by the judge's clock over a batch of fresh inputs; None when not taken."""
    prepare_ms: float | None = None
    peak_memory_bytes: int | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)
    """Median ms of each baseline in the same session."""
    speedup: Mapping[str, float] = field(default_factory=dict)
    """Ratio of medians, baseline over candidate."""
    speedup_ci: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """95 % bootstrap interval [low, high] of each ratio; final tier only."""
    baseline_prepare_ms: Mapping[str, float] = field(default_factory=dict)
    """Wall clock of what a baseline makes ahead (FlexAttention's block mask), where it does."""
    speedup_with_prepare: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Ratio with both sides' work ahead spread over 1 and over 32 calls: {name: {"1": x, ...}}."""
    host_path_reason: str | None = None
    """Why the final tier could not replay the kernels; None when it did, or at the fast tier."""
    roofline_frac: float | None = None
    """Share of the device's bound by FLOPs or bytes, whichever is tighter."""
    tflops: float | None = None
    """Dense FLOPs over the median."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Hardware counters of the slowest kernel, from a profiler's own run of the recorded launches;
    no time is taken from it. Empty when not asked for or refused. `dram_throughput_frac`,
    `l2_hit_frac`, `sm_throughput_frac`, `tensor_pipe_frac`, `achieved_occupancy_frac`,
    `global_load_used_frac` (share of fetched bytes that were asked for), `shared_conflict_frac`
    (share of shared-memory passes that repeat another for a bank), `stall_<reason>_frac` (the
    reason that warps wait for most), `time_share_frac` (that kernel's share, when there are
    more), `zero_inputs` (1 where the run had no inputs of the judge's and worked on zeros)."""
    counters_kernel: str | None = None
    """Name of the kernel that `counters` are of."""
    counters_refused: str | None = None
    """Why counters were asked for and are not here; one line."""
    timing_checks: Mapping[str, Any] = field(default_factory=dict)
    """What else looked at the time, JSON values: `floor` (the least time possible), `launch_bound`
    (under 3 us); at the final tier `control` (a baseline against itself), `clocks` (graph slope and
    blocked stream, under 20 us) and `doubts`: why no interval of the speed-up is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of verifying one candidate on one problem."""

    status: Status
    stage: Stage
    """The stage that failed, or the last one that ran."""
    message: str
    candidate_id: str
    problem_id: str
    tier: Tier
    device: str
    evidence: Evidence | None = None
    isolation: str = "T0"
    mode: str | None = None
    """`replay` or `host_path` at the final tier; None at the fast tier."""
    precision_policy: str = "as_shipped"
    shape_scope: str = "nominal"
    deterministic: bool | None = None
    correctness: Correctness | None = None
    resources: tuple[KernelResources, ...] = ()
    performance: Performance | None = None
    checks: tuple[str, ...] = ()
    """Names of the checks that ran."""
    checks_skipped: Mapping[str, str] = field(default_factory=dict)
    """Checks of this tier that did not run or gave no answer, each with the reason."""
    short: bool = False
    """The short final tier: no sanitizers, no shapes that decide nothing, half the rounds."""
    stage_s: Mapping[str, float] = field(default_factory=dict)
    """Wall seconds of each stage; `gpu` is the time the GPU was held."""
    environment: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse verdicts that contradict themselves."""
        if self.status is Status.PASSED and self.evidence is not None:
            raise ValueError("a PASSED verdict carries no evidence")
        if self.status is not Status.PASSED and self.evidence is None:
            raise ValueError(f"a {self.status} verdict needs evidence")
        if self.performance is not None and self.status is not Status.PASSED:
            raise ValueError(f"a {self.status} verdict carries no performance")
        if self.short and self.tier is not Tier.FINAL:
            raise ValueError(f"there is no short {self.tier} tier")
        if self.performance is not None and self.device != "cuda":
            raise ValueError(f"there is no performance on {self.device!r}")

    @property
    def passed(self) -> bool:
        """Whether the status is PASSED."""
        return self.status is Status.PASSED
