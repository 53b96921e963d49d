"""A long search over fakes in this process: does anything grow that should not?"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.core.attempt import Budget
from hotloop.core.event import Event
from hotloop.core.space import Dimension, Space
from hotloop.core.statistics import median
from hotloop.engine import Parts, run_search
from hotloop.search.random_search import RandomStrategy
from hotloop.store.snapshots import SNAPSHOT_FOLDER
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import FakeGenerator, FakeVerifier, make_problem, make_spec

SAMPLE_EVERY = 500
FEWEST = 6 * SAMPLE_EVERY
"""Evaluations below which there are too few samples for a slope."""
WARM_UP_FRAC = 0.2
"""The first samples are left out of slopes: interpreters and caches fill up."""
SPACE = Space(
    dimensions=(
        Dimension(name="BLOCK", choices=tuple(range(16, 1616)), ordered=True),
        Dimension(name="num_warps", choices=tuple(range(1, 33)), ordered=True),
        Dimension(name="split", choices=(False,)),
    )
)
SNAPSHOT_S = 5.0
"""More often than a run does it, so that a soak of a minute has some."""
Sample = dict[str, float]


def soak(evaluations: int, watch: Callable[[Sample], None] = lambda sample: None) -> dict[str, Any]:
    """Verify this many fake candidates in one run on disk; return how things grew.

    Slopes are over 1000 evaluations, by the median of the slopes of all pairs of samples.
    """
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        concluded = 0

        def listen(event: Event) -> None:
            nonlocal concluded
            if event.kind != "finished":
                return
            concluded += 1
            if concluded % SAMPLE_EVERY == 0:
                samples.append({"evaluations": concluded, **_measure(folder)})
                watch(samples[-1])

        verifier, problem = FakeVerifier(), make_problem()
        verifier.on_verify = lambda candidate, tier: verifier.calls.clear()  # its own record
        spec = make_spec(problem, budget=Budget(max_candidates=evaluations))
        began_s = time.monotonic()
        with SqliteStore(folder, snapshot_every_s=SNAPSHOT_S) as store:
            parts = Parts(
                generator=FakeGenerator(SPACE),
                strategy=RandomStrategy,
                verifier=verifier,
                store=store,
            )
            result = run_search(problem, parts, spec=spec, listen=listen, clock=verifier.clock)
        took_s = time.monotonic() - began_s
        with SqliteStore(folder) as store:
            kept = sum(attempt.verdict is not None for attempt in store.attempts())
    settled = [s for s in samples if s["evaluations"] >= WARM_UP_FRAC * evaluations]
    return {
        "evaluations": len(result.attempts),
        "evaluations_kept": kept,
        "seconds": round(took_s, 1),
        "rss_mib_per_1000": round(_slope(settled, "rss_mib"), 3),
        "journal_kib_per_1000_first_half": round(_slope(_half(settled, 0), "journal_kib"), 1),
        "journal_kib_per_1000_second_half": round(_slope(_half(settled, 1), "journal_kib"), 1),
        **{f"{name}_growth": _growth(settled, name) for name in ("files_open", "threads")},
        **{f"{name}_most": max(s[name] for s in samples) for name in ("children", "snapshots")},
        "temporary_left": samples[-1]["temporary"],
        "samples": samples,
    }


def _measure(folder: Path) -> Sample:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (rss_kib,) = (int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return {
        "rss_mib": rss_kib / 1024,
        "journal_kib": (folder / JOURNAL_FILE).stat().st_size / 1024,
        "files_open": len(os.listdir("/proc/self/fd")),
        "snapshots": len(list((folder / SNAPSHOT_FOLDER).glob("*.sqlite"))),
        "threads": threading.active_count(),
        "children": len(children.split()),
        "temporary": len(list(folder.rglob("*.tmp*"))),
    }


def _half(samples: list[Sample], number: int) -> list[Sample]:
    middle = len(samples) // 2
    return samples[middle:] if number else samples[: middle + 1]


def _growth(samples: list[Sample], name: str) -> float:
    # A snapshot that is being taken opens files for a moment: the least of each half counts.
    first, second = (min(s[name] for s in _half(samples, number)) for number in (0, 1))
    return second - first


def _slope(samples: list[Sample], name: str) -> float:
    pairs = [(a, b) for i, a in enumerate(samples) for b in samples[i + 1 :]]
    steps = [1000 * (b[name] - a[name]) / (b["evaluations"] - a["evaluations"]) for a, b in pairs]
    return median(steps)
