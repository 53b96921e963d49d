"""Two problems, and verdicts on them, with secrets planted where a leak would show."""

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.graph import AttentionSpec
from hotloop.core.problem import (
    Policy,
    Problem,
    ProblemInfo,
    ProblemKind,
    Role,
    TensorSpec,
    Workload,
)
from hotloop.core.verdict import (
    CaseResult,
    Correctness,
    Evidence,
    KernelResources,
    Performance,
    Stage,
    Status,
    Tier,
    Verdict,
)
from hotloop.prompts.task import Task

SEED = 986421357
HELD_OUT_ROWS = 6173
TOLERANCE = "4.5678e-05"
HOST_FOLDER = "/home/judge-host/hotloop-secret-place"
FORBIDDEN = (str(SEED), str(HELD_OUT_ROWS), TOLERANCE, "4.5678", "judge-host", "secret-place",
             "held_out", "buffer_seed", "workloads")  # fmt: skip

ENVIRONMENT = {"gpu": "NVIDIA H200", "torch": "2.11.0", "triton": "3.6.0", "cuda": "13.0",
               "driver": "580", "isolation": "T1"}  # fmt: skip

NORM_SOURCE = f'''"""Layer normalisation over each row."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 4096, 2048
workloads = [
    {{"ROWS": {HELD_OUT_ROWS}, "role": "held_out", "name": "odd"}},
]
tolerances = {{"atol": {TOLERANCE}, "rtol": {TOLERANCE}}}
buffer_seed = {SEED}


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
'''

WORDS = """Please write a GPU attention kernel to support relative position encodings.

def relative_positional(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""

KERNEL = """import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def norm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        return y
"""


def spec(name, shape, dtype="float32"):
    return TensorSpec(name=name, shape=shape, dtype=dtype, strides=())


def norm_task(language="triton"):
    problem = Problem(
        name="layer_norm",
        kind=ProblemKind.NATIVE,
        source=NORM_SOURCE,
        policy=Policy(shape_scope="generic"),
        workloads=(
            Workload(name="nominal", role=Role.NOMINAL),
            Workload(name="odd", role=Role.HELD_OUT, settings={"ROWS": HELD_OUT_ROWS}),
        ),
        tolerances={"atol": float(TOLERANCE), "rtol": float(TOLERANCE)},
    )
    info = ProblemInfo(
        problem_id=problem.id, device="cuda", inputs=(spec("x", (4096, 2048)),),
        outputs=(spec("output0", (4096, 2048)),),
        parameters=(spec("norm.weight", (2048,)), spec("norm.bias", (2048,))),
        graph=None, attention=None, flops=None, io_bytes=2 * 4 * 4096 * 2048, rankable=True,
        baselines_ms={"eager": 0.031, "compile": 0.0255}, environment=ENVIRONMENT,
    )  # fmt: skip
    return Task(problem=problem, info=info, language=language)


def attention_task(language="triton"):
    problem = Problem(
        name="relative", kind=ProblemKind.ATTENTION, source="B, H, S, D = 4, 16, 4096, 128\n",
        policy=Policy(library_calls="none"), prompt=WORDS,
    )  # fmt: skip
    attention = AttentionSpec(
        B=4, H=16, Hkv=16, S=4096, Skv=4096, D=128, dtype="bfloat16", scale=128**-0.5
    )
    qkv = tuple(spec(n, (4, 16, 4096, 128), "bfloat16") for n in "qkv")
    info = ProblemInfo(
        problem_id=problem.id, device="cuda", inputs=qkv,
        outputs=(spec("output0", (4, 16, 4096, 128), "bfloat16"),), parameters=(), graph=None,
        attention=attention, flops=5.5e11, io_bytes=268435456, rankable=True,
        baselines_ms={"flex": 1.41}, environment=ENVIRONMENT,
    )  # fmt: skip
    return Task(problem=problem, info=info, language=language)


def candidate(text=KERNEL):
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))


def verdict(status=Status.PASSED, *, stage=Stage.CORRECTNESS, tier=Tier.FAST, **fields):
    evidence, message = None, fields.pop("message", "it failed")
    if status is not Status.PASSED:
        evidence = Evidence(
            kind=fields.pop("kind", "exception"),
            message=message,
            details=fields.pop("details", {}),
        )
    return Verdict(
        status=status, stage=stage, tier=tier, message="see evidence", candidate_id="c" * 16,
        problem_id="p" * 16, device=fields.pop("device", "cuda"), evidence=evidence, **fields,
    )  # fmt: skip


def case(**fields):
    known = dict(
        workload="nominal", profile="normal", output="output0", passed=False, rule="bulk",
        rmse=0.02, max_abs=0.5, eager_rmse=0.0004, eager_max_abs=0.01, golden_rms=1.0,
        mismatches=0, worst_index=(0, 0),
    )  # fmt: skip
    return CaseResult(**known | fields)


def wrong_values(details=None, *, tier=Tier.FAST, **fields):
    details = {"profile": "normal", "output": "output0", "shape": [4096, 2048],
               "mismatches": 0, "samples": []} | (details or {})  # fmt: skip
    return verdict(
        Status.INCORRECT_NUMERICAL, kind="wrong_values", details=details, tier=tier,
        correctness=Correctness(cases=(case(**fields),), deterministic=None),
        stage_s={"gpu": 1.0},
    )  # fmt: skip


def passed():
    return verdict(
        stage=Stage.PERFORMANCE,
        performance=Performance(
            latency_ms=0.0281, spread_ms=0.0004, samples=25, timer="cupti", l2="cold",
            baselines={"eager": 0.031, "compile": 0.0255}, roofline_frac=0.56,
            peak_memory_bytes=100 << 20,
        ),
        resources=(
            KernelResources(name="norm_kernel", registers=168, spill_bytes=64, shared_bytes=65536,
                            num_warps=8, num_stages=3),
        ),
    )  # fmt: skip


SECRET_DETAILS = {
    "traceback": f'  File "{HOST_FOLDER}/hotloop/worker/candidate.py", line 80, in call\n'
    f"    run(seed={SEED})\n"
    f'  File "{HOST_FOLDER}/kernel.py", line 12, in norm_kernel\n    tl.store(y_ptr + i, x)\n'
    f"ValueError: seed={SEED}, atol={TOLERANCE}, see {HOST_FOLDER}/log\n",
}
"""Evidence with everything that must not come through."""
