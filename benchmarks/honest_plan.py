"""Which kernel runs when: jobs that share one load of a problem, rounds with new seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.honest_catalogue import HonestKernel
from benchmarks.results_file import Row
from hotloop.core.verdict import Tier

TIERS = (Tier.FAST, Tier.FINAL)


@dataclass(frozen=True, slots=True)
class Job:
    """One load of a problem and the kernels that are judged on it."""

    problem: str
    round: int
    device: str
    kernels: tuple[HonestKernel, ...]
    tiers: tuple[Tier, ...] = TIERS


@dataclass(frozen=True, slots=True)
class Run:
    """One verdict."""

    key: str
    kernel: HonestKernel
    tier: Tier


def plan(
    kernels: Sequence[HonestKernel], device: str, rounds: int, tiers: tuple[Tier, ...] = TIERS
) -> list[Job]:
    """Return the jobs in the order they are taken: round by round, those with most work first.

    Without a GPU, kernels that need one are left out. Modules that are built with torch's headers
    take half a minute of compilation, so that their jobs lead.
    """
    groups: dict[tuple[str, tuple[tuple[str, int | str], ...]], list[HonestKernel]] = {}
    for kernel in kernels:
        if device == "cuda" or not kernel.needs_gpu:
            sizes = tuple(sorted(kernel.settings.items()))
            groups.setdefault((kernel.problem, sizes), []).append(kernel)
    ordered = sorted(groups.values(), key=lambda group: (-_slow(group), -len(group)))
    return [
        Job(group[0].problem, number, device, tuple(sorted(group, key=_is_module)), tiers)
        for number in range(rounds)
        for group in ordered
    ]


def runs_of(job: Job) -> Iterator[Run]:
    """Yield the runs of a job: of each kernel fast, then final, which shares its build.

    What the contract refuses is judged by its text, so once is enough.
    """
    tiers = job.tiers if job.device == "cuda" else (Tier.FAST,)
    for kernel in job.kernels:
        if kernel.by_design:
            if job.round == 0:
                yield Run(f"{kernel.name}/static", kernel, Tier.FAST)
            continue
        for tier in tiers:
            yield Run(f"{kernel.name}/{tier.value}/{job.round}", kernel, tier)


def fresh(rows: Mapping[str, Row], runs: Sequence[Run]) -> dict[str, Row]:
    """Return the rows without those of runs whose kernel's text is another one now.

    The commit tells that Python files changed; tables of kernels are none.
    """
    kept = dict(rows)
    for run in runs:
        row = kept.get(run.key)
        if row is None or run.kernel.text is None:
            continue
        if row.get("candidate_id") != run.kernel.candidate().id:
            del kept[run.key]
    return kept


def keys_of(job: Job) -> list[str]:
    """Return the keys of a job's rows."""
    return [run.key for run in runs_of(job)]


def _is_module(kernel: HonestKernel) -> bool:
    return "cuda_module" in kernel.families


def _slow(group: Sequence[HonestKernel]) -> int:
    return sum(_is_module(kernel) for kernel in group)
