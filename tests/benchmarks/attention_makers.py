"""Made-up rows of the attention benchmark."""

from benchmarks.attention_cases import Case
from benchmarks.attention_plan import budget_of
from benchmarks.attention_session import Machine

ENVIRONMENT = {"gpu": "NVIDIA H200", "driver": "580.1", "torch": "2.11.0", "triton": "3.6.0"}
DIGEST = "0123abcd"


def made_row(case, ratios=None, **changes):
    """Return a row that passed; `ratios` are over each baseline, our time is 1 ms."""
    ratios = {"flex": 1.3, "flex_max_autotune": 1.2} if ratios is None else ratios
    row = {
        "row": case.key,
        "problem": f"attention/{case.variant}",
        "generator": "builtin",
        "packing": case.packing,
        "timed_profile": case.profile,
        "workload": {"B": case.B, "H": 16, "S": case.S, "D": case.D, "dtype": "bfloat16"},
        "status": "PASSED",
        "tier": "final",
        "mode": "replay",
        "family": "portable",
        "candidates": 30,
        "wall_s": 70.0,
        "budget": budget_of(case),
        "source_digest": DIGEST,
        "gpu_uuid": "GPU-1",
        "schedule": {},
        "error": None,
        "environment": ENVIRONMENT,
        "missing_baselines": {},
        "performance": {
            "latency_ms": 1.0,
            "spread_ms": 0.002,
            "prepare_ms": 0.01,
            "wall_check_ms": 1.01,
            "baselines": dict(ratios),
            "speedup": dict(ratios),
            "speedup_ci": {name: [r - 0.01, r + 0.01] for name, r in ratios.items()},
            "baseline_prepare_ms": {},
            "speedup_with_prepare": {},
            "roofline_frac": 0.7,
            "timing_checks": {},
        },
    }
    return row | changes


def failed_row(case, error="exit code 3: no GPU"):
    """Return a row of a run that failed."""
    return made_row(case) | {"status": "ERROR", "tier": None, "performance": None, "error": error}


def machine(run_row, *, environment=ENVIRONMENT, digest=lambda: DIGEST):
    """Return a machine whose rows come from `run_row(case, gpu, options)`."""
    return Machine(run_row=run_row, environment=lambda: environment, digest=digest)


def slower(row, latency_ms, **changes):
    """Return the row with another time of ours, everything else as it was."""
    performance = row["performance"] | {"latency_ms": latency_ms} | changes
    return row | {"performance": performance}


def results_of(rows, **changes):
    """Return a results file that holds the rows."""
    record = {
        "command": "make bench-attention",
        "commit": "abc",
        "date": "2026-01-01",
        "environment": ENVIRONMENT,
        "rows": rows,
        "summary": {},
    }
    return record | changes


FULL = Case("full", 128)
