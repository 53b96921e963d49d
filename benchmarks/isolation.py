"""Attacks the cage and times it: writes benchmarks/results/isolation.json.

    python -m benchmarks.isolation [--count 40] [--device auto] [--out FILE]

One row for every attack of the suite and every tier that it is for: how the program must end, how
it ended, what it reached. They run in throw-away namespaces, where a way out leads nowhere; where
this machine has none, only the harmless ones run. Then the cost of a tier for each candidate, and
what a fixed kernel takes inside, which needs a GPU. Nothing here says how fast a kernel is.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_pool import gpu_slug
from benchmarks.isolation_cost import measure
from benchmarks.results_file import RESULTS, Row, commit, write_results
from hotloop.sandbox import CageSpec, Capabilities, Tier, probe, readable_by_uid
from hotloop.selftest import CASES, Outcome, Result
from hotloop.selftest.case import Case
from hotloop.selftest.machine import cages, reason_not_to, unmet
from hotloop.selftest.runner import Setting, run_cases
from hotloop.worker.device import environment as of_device

FILE = RESULTS / "isolation.json"
ATTACKS_S = 240.0
FEWEST = 30
SHIPPED = "as shipped"
OTHER_USER = "without the paths that the other user cannot read"
"""Where root's Python is closed to others, the shipped cage keeps uid 0: what holds by the dropped
user alone is attacked in a cage that can drop it."""


def attack_rows(machine: Capabilities) -> list[Row]:
    """Run every attack at every tier that this machine has; return the rows of the file."""
    rows = []
    for tier in (Tier.EMBEDDED, Tier.NAMESPACES):
        cases = [case for case in CASES if tier in case.tiers]
        if machine.best_tier < tier:
            why = f"{tier} cannot be had: {'; '.join(machine.missing)}"
            rows += [row_of(case, _not_run(case, tier, why), SHIPPED) for case in cases]
            continue
        rows += _rows_at(tier, cases, private=machine.best_tier is Tier.NAMESPACES)
    return rows


def _rows_at(tier: Tier, cases: Sequence[Case], *, private: bool) -> list[Row]:
    """Run attacks at one tier, those of one cage below one host; return rows in their order.

    A host of its own for each would give victims the numbers that processes have inside of T2.
    """
    placed = [(case, *_placed(case, tier, private=private)) for case in cases]
    found: dict[str, Result] = {}
    for way in (SHIPPED, OTHER_USER):
        here = [(case, specs) for case, specs, name, why in placed if name == way and not why]
        if here:
            setting = Setting(here[0][1], private=private)
            results = run_cases([case for case, _ in here], setting, deadline_s=ATTACKS_S)
            found |= {result.name: result for result in results}
    return [
        row_of(case, found.get(case.name) or _not_run(case, tier, why), way)
        for case, _, way, why in placed
    ]


def _placed(case: Case, tier: Tier, *, private: bool) -> tuple[dict[str, CageSpec], str, str]:
    """Return the cages in which a case can be judged, their name, and why there are none."""
    specs, uid = cages(tier), os.geteuid()
    if not private:
        return specs, SHIPPED, reason_not_to(case, specs, uid)
    reason = unmet(case, specs[case.stage], planter=uid, attacker=uid)
    if reason and uid == 0:
        narrow = {stage: _readable(spec) for stage, spec in specs.items()}
        return narrow, OTHER_USER, unmet(case, narrow[case.stage], planter=0, attacker=0)
    return specs, SHIPPED, reason


def _readable(spec: CageSpec) -> CageSpec:
    uid = spec.drop_uid
    if uid is None:
        return spec
    paths = tuple(path for path in spec.read_paths if readable_by_uid(uid, [path]))
    return replace(spec, read_paths=paths)


def _not_run(case: Case, tier: Tier, reason: str) -> Result:
    return Result(case.number, case.name, case.stage, tier, Outcome.NOT_RUN, reason=reason)


def row_of(case: Case, result: Result, way: str) -> Row:
    """Return one attack at one tier as a row of the file."""
    return {
        "number": case.number,
        "attack": case.name,
        "stage": case.stage,
        "tier": str(result.tier),
        "cage": way,
        "expected": str(case.expect),
        "got": result.end or None,
        "outcome": str(result.outcome),
        "reached": list(result.found),
        "reason": result.reason or None,
        "processes_left": result.left,
        "wall_s": result.wall_s,
        "steps": dict(result.steps),
    }


def summarise(rows: Sequence[Row], cost: Row) -> Row:
    """Return the figures that the project claims."""
    attacks: dict[str, dict[str, int]] = {}
    for tier in sorted({row["tier"] for row in rows}):
        counts = Counter(row["outcome"] for row in rows if row["tier"] == tier)
        attacks[tier] = {str(outcome): counts[outcome] for outcome in Outcome}
    return {
        "attacks": attacks,
        "open": sorted({row["attack"] for row in rows if row["outcome"] == Outcome.OPEN}),
        "processes_left": sum(row["processes_left"] for row in rows),
        "cost": cost,
    }


def environment(machine: Capabilities, device: str) -> dict[str, Any]:
    """Return what the figures depend on."""
    found = of_device(device, str(machine.best_tier))
    return {
        **{name: found[name] for name in ("gpu", "driver", "cuda", "torch", "triton", "python")},
        "cpu_cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "kernel": machine.kernel,
        "landlock_abi": machine.landlock_abi,
        "started_as_root": machine.root,
        "best_tier": str(machine.best_tier),
        "weaker": list(machine.missing),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40, help="starts of a candidate a tier")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--out", type=Path, help=f"by default {FILE.name}, isolation_GPU.json on one"
    )
    asked = parser.parse_args()
    if asked.count < FEWEST:
        parser.error(f"--count: expected at least {FEWEST}, got {asked.count}")
    commit()  # found now: what is measured is what is there now
    device = asked.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    machine = probe()
    began_s = time.monotonic()
    there = environment(machine, device)
    rows = attack_rows(machine)
    print(summarise(rows, {}), flush=True)
    tiers = [str(tier) for tier in Tier if tier <= machine.best_tier]
    cost = measure(device, tiers, asked.count)
    summary = summarise(rows, cost)
    write_results(
        asked.out or (RESULTS / f"isolation_{gpu_slug()}.json" if device == "cuda" else FILE),
        command=f"make bench-isolation ARGS='--count {asked.count}'",
        environment=there,
        rows=rows,
        summary=summary,
    )
    print(f"{time.monotonic() - began_s:.0f} s; {summary['attacks']}, open: {summary['open']}")


if __name__ == "__main__":
    main()
