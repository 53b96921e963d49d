"""Which hardware counters are read, and how ncu's table of them becomes a few plain shares.

The names are those of Nsight Compute's metrics for compute capability 7.0 and later ("Metrics
Reference" of its Profiling Guide); what a version or a chip does not know is left out, never
guessed. Only arithmetic on text: `profile_ncu.py` runs the tool.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

TIME = "gpu__time_duration.sum"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
L2_HIT = "lts__t_sector_hit_rate.pct"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
)
"""All tensor instructions, and those on floating-point operands; chips differ in what they know."""
LOAD_USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
STALL_TOTAL = "smsp__average_warp_latency_per_inst_issued.ratio"
STALL_REASONS = (
    "long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle",
    "math_pipe_throttle", "wait", "gmma",
)  # fmt: skip

CORE_METRICS = (TIME, DRAM, L2_HIT, SM, TENSOR[0], OCCUPANCY)
"""What every chip has."""

_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_PLAIN = {
    DRAM: "dram_throughput_frac",
    L2_HIT: "l2_hit_frac",
    SM: "sm_throughput_frac",
    OCCUPANCY: "achieved_occupancy_frac",
}
MAX_NAME_CHARS = 80


def stall(reason: str) -> str:
    """Return the metric of one reason to wait, in warps per issued instruction."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


ALL_METRICS = (
    *CORE_METRICS, TENSOR[1], LOAD_USED, CONFLICTS, WAVEFRONTS, STALL_TOTAL,
    *(stall(reason) for reason in STALL_REASONS),
)  # fmt: skip
_NOT_EVERYWHERE = (TENSOR[1], LOAD_USED, stall("gmma"))
METRIC_SETS = (
    ALL_METRICS,
    tuple(metric for metric in ALL_METRICS if metric not in _NOT_EVERYWHERE),
    CORE_METRICS,
)
"""Asked for in turn until one gives counters: one unknown name may spoil a whole set."""


@dataclass(slots=True)
class Profiled:
    """One profiled launch."""

    kernel: str
    metrics: dict[str, float] = field(default_factory=dict)
    """By ncu's names; the duration in nanoseconds."""


def read_table(text: str) -> list[Profiled]:
    """Return the launches in what `ncu --csv` wrote, in order; none where there is no table.

    Two layouts exist: `--page raw` has a column for each metric and a row of units below the
    header, the other pages a row for each metric. Lines of the tool's own begin with `==`.
    """
    lines = iter(text.split("\n"))  # nothing else ends a line: names may hold what looks like it
    header = next((line for line in lines if line.startswith('"ID"')), None)
    if header is None:
        return []
    body = [line for line in lines if line.startswith('"')]
    rows = list(csv.DictReader([header, *body], restval=""))
    if rows and "Metric Name" in rows[0]:
        return list(_long(rows).values())
    return list(_wide(rows))


def _wide(rows: list[dict[str, str]]) -> Iterator[Profiled]:
    units = rows[0] if rows and not rows[0].get("ID", "").strip() else {}
    for row in rows[1:] if units else rows:
        launch = Profiled(_kernel_name(row))
        for column, text in row.items():
            name = (column or "").split(" [")[0]
            _add(launch, name, text, units.get(column, ""))
        yield launch


def _long(rows: list[dict[str, str]]) -> dict[str, Profiled]:
    found: dict[str, Profiled] = {}
    for row in rows:
        launch = found.setdefault(row.get("ID", ""), Profiled(_kernel_name(row)))
        _add(launch, row["Metric Name"], row.get("Metric Value", ""), row.get("Metric Unit", ""))
    return found


def _kernel_name(row: dict[str, str]) -> str:
    """Return one short line without control characters: a candidate chooses its kernels' names."""
    name = row.get("Kernel Name", "")
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME_CHARS]


def _add(launch: Profiled, name: str, text: object, unit: str) -> None:
    """Note a metric; what is no finite number (`n/a`, text) is left out."""
    if "__" not in name or not isinstance(text, str):
        return
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return
    if name == TIME:
        value *= _NS.get(_short(unit), 1.0)
    if math.isfinite(value):
        launch.metrics[name] = value


def _short(unit: str) -> str:
    """Return a unit of time in short: versions write `ns`, `nsecond` or `second`."""
    unit = unit.strip()
    return unit.removesuffix("econd") if unit.endswith("second") else unit


def summarise(launches: list[Profiled]) -> tuple[str, dict[str, float]]:
    """Return the slowest launch's kernel and its plain counters (`Performance.counters`).

    Raises:
        ValueError: no launch has any counter.
    """
    useful = [launch for launch in launches if set(launch.metrics) - {TIME}]
    if not useful:
        raise ValueError("no launch has counters")
    slowest = max(useful, key=lambda launch: launch.metrics.get(TIME, 0.0))
    counters = dict(_shares(slowest.metrics))
    total_ns = sum(launch.metrics.get(TIME, 0.0) for launch in launches)
    if len(launches) > 1 and total_ns > 0:
        counters["time_share_frac"] = slowest.metrics.get(TIME, 0.0) / total_ns
    return slowest.kernel, {name: round(value, 4) for name, value in counters.items()}


def _shares(metrics: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for name, plain in _PLAIN.items():
        if name in metrics:
            yield plain, _frac(metrics[name])
    tensor = [metrics[name] for name in TENSOR if name in metrics]
    if tensor:
        yield "tensor_pipe_frac", _frac(max(tensor))
    if metrics.get(LOAD_USED, 0.0) > 0:  # 0: nothing is loaded this way (TMA goes another)
        yield "global_load_used_frac", _frac(metrics[LOAD_USED])
    if CONFLICTS in metrics and metrics.get(WAVEFRONTS, 0.0) > 0:
        yield "shared_conflict_frac", min(1.0, metrics[CONFLICTS] / metrics[WAVEFRONTS])
    waiting = {r: metrics[stall(r)] for r in STALL_REASONS if metrics.get(stall(r), 0.0) > 0}
    if waiting and metrics.get(STALL_TOTAL, 0.0) > 0:
        reason = max(waiting, key=lambda r: waiting[r])
        yield f"stall_{reason}_frac", min(1.0, waiting[reason] / metrics[STALL_TOTAL])


def _frac(percent: float) -> float:
    return min(1.0, max(0.0, percent / 100.0))
