"""What a cage costs: the start of a candidate's process at each tier, and a kernel's time inside.

The way is the judge's own: a zygote forks, the child enters its cage, maps the judge's buffers and
answers. Tiers take turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks.results_file import Row
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.units import s_to_ms
from hotloop.sandbox import require_sound
from hotloop.worker.arena import Arena, Layout
from hotloop.worker.board import Board
from hotloop.worker.device import gpu_address
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.patience import Patience
from hotloop.worker.workroom import Workroom

NO_GPU = "not measured: no GPU"
WARM_STARTS = 3
"""Starts of each tier that are not counted: the first ones wait for the zygotes' imports."""
KERNEL_PROCESSES, WARM_CALLS, TIMED_CALLS = 5, 5, 50
ELEMENTS = {"cpu": 1 << 10, "cuda": 1 << 26}
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
CANDIDATE = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=KERNEL),))


class Range:
    """Workrooms of all tiers, and one set of buffers that every candidate maps."""

    def __init__(self, device: str, tiers: Sequence[str]) -> None:
        self.device = device
        gpu = gpu_address() if device == "cuda" else None
        layout = Layout()
        x, y = (layout.place((ELEMENTS[device],), (1,), torch.float32) for _ in range(2))
        arena = Arena.create(device, layout.size_bytes)
        arena.view(x).fill_(1.0)
        self.board = Board(arena, layout, {}, [([x], [y])], 0)
        self.rooms = {tier: Workroom(device, tier=tier, gpu=gpu) for tier in tiers}

    def close(self) -> None:
        """End the zygotes."""
        for room in self.rooms.values():
            room.close()

    @contextmanager
    def started(self, tier: str) -> Iterator[tuple[Evaluation, float]]:
        """Start a candidate's process; also how long it took to its first answer, in ms."""
        room = self.rooms[tier]
        folder = room.folder("cost")
        start = time.perf_counter()
        evaluation = Evaluation.start(
            room, self.board, CANDIDATE, folder=folder, patience=Patience()
        )
        try:
            evaluation.attach()
            yield evaluation, s_to_ms(time.perf_counter() - start)
        finally:
            evaluation.close()
            room.discard(folder)

    def starts_ms(self, count: int) -> dict[str, list[float]]:
        """Time `count` starts a tier: fork, cage, buffers mapped, first answer (CUDA ready)."""
        samples: dict[str, list[float]] = {tier: [] for tier in self.rooms}
        for turn in range(WARM_STARTS + count):
            for tier, taken in samples.items():
                with self.started(tier) as (_, ms):
                    if turn >= WARM_STARTS:
                        taken.append(ms)
        return samples

    def calls(self, tier: str) -> list[float]:
        """Run the fixed kernel in a fresh process and check it; return its times in ms (GPU)."""
        with self.started(tier) as (evaluation, _):
            evaluation.load(())
            evaluation.call(0)
            if not bool((self.board.outputs(0)[0] == 2.0).all()):
                raise SystemExit(f"expected the fixed kernel to double its input at {tier}")
            if self.device != "cuda":
                return []
            times = [evaluation.timed_call(0).elapsed_ms for _ in range(WARM_CALLS + TIMED_CALLS)]
            return times[WARM_CALLS:]

    def kernel_ms(self) -> dict[str, list[float]] | str:
        """Return the medians of each tier's processes; on a CPU there is no kernel time."""
        if self.device != "cuda":
            return NO_GPU
        medians: dict[str, list[float]] = {tier: [] for tier in self.rooms}
        for _ in range(KERNEL_PROCESSES):
            for tier, found in medians.items():
                found.append(statistics.median(self.calls(tier)))
        return medians

    def canaries_ms(self, count: int) -> dict[str, list[float]]:
        """Time the attacks that a judge makes on its own cages when it starts."""
        samples: dict[str, list[float]] = {tier: [] for tier in self.rooms if tier != "T0"}
        for _ in range(count):
            for tier, taken in samples.items():
                room, nowhere = self.rooms[tier], Path(self.rooms[tier].folder("x"))
                start = time.perf_counter()
                require_sound(room.candidate_cage(nowhere), room.lane_cage(nowhere))
                taken.append(s_to_ms(time.perf_counter() - start))
                room.discard(nowhere)
        return samples


def spread(samples_ms: Sequence[float]) -> Row:
    """Return the least, median and 90th percentile, in ms, and how many there were."""
    ordered = sorted(samples_ms)
    p90 = ordered[max(0, -(-9 * len(ordered) // 10) - 1)]
    return {
        "count": len(ordered),
        "min_ms": round(ordered[0], 3),
        "median_ms": round(statistics.median(ordered), 3),
        "p90_ms": round(p90, 3),
    }


def cost_of(samples: dict[str, list[float]]) -> Row:
    """Return each tier's spread, and what its median has over that of T0."""
    found = {tier: spread(taken) for tier, taken in samples.items()}
    for tier in [t for t in found if t != "T0"]:
        over = found[tier]["median_ms"] - found["T0"]["median_ms"]
        found[tier]["over_t0_ms"] = round(over, 3)
    return found


def measure(device: str, tiers: Sequence[str], count: int) -> Row:
    """Measure on one device; the keys are those of the results file."""
    place = Range(device, tiers)
    try:
        starts = place.starts_ms(count)
        for tier in tiers:
            place.calls(tier)
        kernel = place.kernel_ms()
        canaries = place.canaries_ms(count)
    finally:
        place.close()
    return {
        "device": device,
        "start_of_a_candidate": cost_of(starts),
        "kernel": kernel if isinstance(kernel, str) else cost_of(kernel),
        "attacks_at_the_start_of_a_judge": {t: spread(s) for t, s in canaries.items()},
        "start_samples_ms": {t: [round(ms, 3) for ms in s] for t, s in starts.items()},
    }
