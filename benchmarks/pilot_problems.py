"""The problems of the model pilot, drawn with a fixed seed across classes of operators.

Twelve problems of each KernelBench level, the six attention variants; 6 of these 30 again in CUDA,
12 of them in the ablation. Nothing is chosen by hand and nothing is left out: a problem that can be
faked is drawn like any other, and the judge says that it is not rankable.

The draw takes problems in the order of a hash of the seed and their name, so it is the same with
every version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hotloop.problems.kernelbench import KernelBenchEntry, list_kernelbench
from hotloop.suite.figures_classes import operator_class

SEED = 0
PER_LEVEL = 12
ATTENTION_VARIANTS = ("full", "causal", "relative", "alibi", "document", "softcap")
ATTENTION_SETTINGS: Mapping[str, int] = {"D": 128, "S": 4096}
IN_CUDA = {0: 2, 1: 2, 2: 2}
"""How many of each level are asked for in CUDA again; level 0 stands for attention."""
IN_ABLATION = {0: 2, 1: 5, 2: 5}
"""12 of 30, in proportion: 2.4, 4.8 and 4.8, rounded to the nearest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotProblem:
    """One problem of the pilot."""

    name: str
    """`attention/causal` or `kernelbench/1/19`."""
    level: int
    """Of KernelBench; 0 for attention."""
    problem_id: int | None
    title: str
    operator_class: str

    @property
    def settings(self) -> dict[str, int | float | str]:
        """Sizes that replace those of the file."""
        return dict(ATTENTION_SETTINGS) if self.level == 0 else {}

    @property
    def slug(self) -> str:
        """Its name as a file name."""
        return self.name.replace("/", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotDraw:
    """All that was drawn."""

    problems: tuple[PilotProblem, ...]
    cuda: tuple[PilotProblem, ...]
    ablation: tuple[PilotProblem, ...]


def draw_pilot(data: str | Path) -> PilotDraw:
    """Return the pilot's problems from the KernelBench data set at `data`.

    Raises:
        ConfigError: the data set is missing or damaged.
    """
    return draw(list_kernelbench(data))


def draw(entries: Iterable[KernelBenchEntry], *, seed: int = SEED) -> PilotDraw:
    """Return the pilot's problems from a catalogue."""
    chosen = [_attention(variant) for variant in ATTENTION_VARIANTS]
    catalogue = [_problem(entry) for entry in entries]
    for level in (1, 2):
        listed = [p for p in catalogue if p.level == level]
        chosen += _stratified(listed, PER_LEVEL, seed=seed)
    return PilotDraw(
        problems=tuple(chosen),
        cuda=tuple(_of_each_level(chosen, IN_CUDA, f"{seed}/cuda")),
        ablation=tuple(_of_each_level(chosen, IN_ABLATION, f"{seed}/ablation")),
    )


def allot(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Return how many to draw of each class: in proportion, but at least one of each.

    What proportions leave over goes to the largest remainders; while there are more classes than
    places, the smallest classes get none.
    """
    count = sum(sizes.values())
    kept = sorted(sizes, key=lambda name: (-sizes[name], name))[:total]
    share = {name: Fraction(total * sizes[name], count) for name in kept}
    given = {name: min(sizes[name], max(1, int(share[name]))) for name in kept}
    while sum(given.values()) > total:
        over = max(
            (n for n in kept if given[n] > 1), key=lambda n: (given[n] - share[n], sizes[n], n)
        )
        given[over] -= 1
    while sum(given.values()) < min(total, count):
        room = [n for n in kept if given[n] < sizes[n]]
        given[max(room, key=lambda n: (share[n] - given[n], sizes[n], n))] += 1
    return given


def _problem(entry: KernelBenchEntry) -> PilotProblem:
    return PilotProblem(
        name=entry.name,
        level=entry.level,
        problem_id=entry.problem_id,
        title=entry.title,
        operator_class=operator_class(entry.level, entry.title),
    )


def _attention(variant: str) -> PilotProblem:
    return PilotProblem(
        name=f"attention/{variant}",
        level=0,
        problem_id=None,
        title=variant,
        operator_class="attention",
    )


def _stratified(listed: Sequence[PilotProblem], total: int, *, seed: int) -> list[PilotProblem]:
    classes: dict[str, list[PilotProblem]] = {}
    for problem in _shuffled(listed, f"{seed}/draw"):
        classes.setdefault(problem.operator_class, []).append(problem)
    shares = allot({name: len(members) for name, members in classes.items()}, total)
    chosen = [p for name, count in shares.items() for p in classes[name][:count]]
    return sorted(chosen, key=lambda p: p.problem_id or 0)


def _of_each_level(
    problems: Sequence[PilotProblem], counts: Mapping[int, int], salt: str
) -> list[PilotProblem]:
    chosen: list[PilotProblem] = []
    for level, count in counts.items():
        chosen += _shuffled([p for p in problems if p.level == level], salt)[:count]
    return [p for p in problems if p in chosen]


def _shuffled(problems: Iterable[PilotProblem], salt: str) -> list[PilotProblem]:
    def place(problem: PilotProblem) -> str:
        return hashlib.sha256(f"{salt}/{problem.name}".encode()).hexdigest()

    return sorted(problems, key=place)
