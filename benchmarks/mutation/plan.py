"""What is to be judged: the mutants of each substrate, and the file that remembers what is done."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutation.cuda_rule import cuda_mutants
from benchmarks.mutation.rule import Mutant, Rule, canonical, difference, mutants
from benchmarks.mutation.substrates import Substrate
from benchmarks.results_file import commit

Row = dict[str, Any]
CUDA_FACTOR = 2
"""A CUDA source gets so many times the mutants of a Triton one: there are fewer of them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which mutants of a kernel are taken."""

    rules: Sequence[Rule]
    per_rule: int | None
    per_kernel: int | None
    seed: int
    cuda_rules: Sequence[str] = ()
    final_share: float = 0.0
    """How many of the counted mutants go to the final tier too, from 0 to 1."""

    def of(self, source: str, language: str = "triton") -> list[Mutant]:
        """Return the chosen mutants of a kernel's source; rules take turns up to `per_kernel`."""
        limit, per_rule = self.limit_of(language), self.per_rule
        if language == "cuda":
            more = None if per_rule is None else CUDA_FACTOR * per_rule
            found = cuda_mutants(source, self.cuda_rules, per_rule=more, seed=self.seed)
        else:
            found = mutants(source, self.rules, per_rule=per_rule, seed=self.seed)
        if limit is None or len(found) <= limit:
            return found
        turns: dict[str, int] = {}
        keyed = []
        for mutant in found:
            turn = turns.get(mutant.rule, 0)
            turns[mutant.rule] = turn + 1
            keyed.append((turn, mutant.digest, mutant))
        return [mutant for _, _, mutant in sorted(keyed, key=lambda k: k[:2])[:limit]]

    def limit_of(self, language: str) -> int | None:
        """Return how many mutants of one kernel are taken at most; None: all."""
        factor = CUDA_FACTOR if language == "cuda" else 1
        return None if self.per_kernel is None else factor * self.per_kernel

    def in_final_sample(self, key: str) -> bool:
        """Whether a mutant, if it counts, goes to the final tier: by its key and the seed alone."""
        digest = hashlib.sha256(f"{self.seed} {key}".encode()).digest()
        return int.from_bytes(digest[:4], "big") < self.final_share * 2**32

    def is_done(self, row: Row | None) -> bool:
        """Whether nothing is left to be judged of a mutant's row."""
        if row is None or "fault" in row:
            return False
        counts = row["oracle"]["outcome"] == "shown"
        return "final" in row or not (counts and self.in_final_sample(row["key"]))


def written(substrate: Substrate, source: str) -> str:
    """Return a kernel's source as its mutants are written: a Triton file without comments."""
    return source if substrate.language == "cuda" else canonical(source)


class Chosen:
    """The chosen mutants of each kernel, made once for all workers."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._lock = threading.Lock()
        self._known: dict[str, list[Mutant]] = {}

    def of(self, substrate: Substrate, source: str) -> list[Mutant]:
        """Return the mutants of a kernel."""
        with self._lock:
            if substrate.name not in self._known:
                self._known[substrate.name] = self._choice.of(source, substrate.language)
            return self._known[substrate.name]


class Progress:
    """Rows of judged mutants in a JSON Lines file; each is written when it is known."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._machine = path, path.with_suffix(".machine.json")
        self._lock = threading.Lock()
        self.rows: dict[str, Row] = {}
        self.begun: set[str] = set()
        """Kernels of which an earlier run judged something."""
        if path.exists():
            whole, _, cut = path.read_text(encoding="utf-8").rpartition("\n")
            for line in whole.splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row
                self.begun.add(row["substrate"])
            if cut:  # the run was stopped while it wrote: that mutant is judged again
                path.write_text(whole + "\n" if whole else "", encoding="utf-8")

    def add(self, row: Row) -> None:
        """Remember a row."""
        with self._lock:
            self.rows[row["key"]] = row
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def machine(self, found: Row) -> Row:
        """Keep what a judge said of its machine; returns that of an earlier run if none did."""
        if found:
            found = {**found, "cpu_count": os.cpu_count()}
            self._machine.write_text(json.dumps(found), encoding="utf-8")
        elif self._machine.exists():
            return dict(json.loads(self._machine.read_text(encoding="utf-8")))
        return found


def row_of(substrate: Substrate, source: str, mutant: Mutant) -> Row:
    """Return the row of a mutant that nobody has judged yet."""
    return {
        "key": f"{substrate.name}/{mutant.digest}",
        "substrate": substrate.name,
        "family": substrate.family,
        "problem": substrate.problem,
        "language": substrate.language,
        "rule": mutant.rule,
        "group": mutant.group,
        "diff": difference(source, mutant.source, substrate.language),
        "commit": commit(),  # a run that goes on after a change has rows of several
    }
