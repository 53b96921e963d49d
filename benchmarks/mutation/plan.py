"""What is to be judged: the mutants of each substrate, and the file that remembers what is done."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutation.rule import Mutant, Rule, difference, mutants
from benchmarks.mutation.substrates import Substrate

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which mutants of a kernel are taken."""

    rules: Sequence[Rule]
    per_rule: int | None
    per_kernel: int | None
    seed: int

    def of(self, source: str) -> list[Mutant]:
        """Return the chosen mutants of a kernel's source; rules take turns up to `per_kernel`."""
        found = mutants(source, self.rules, per_rule=self.per_rule, seed=self.seed)
        if self.per_kernel is None or len(found) <= self.per_kernel:
            return found
        turns: dict[str, int] = {}
        keyed = []
        for mutant in found:
            turn = turns.get(mutant.rule, 0)
            turns[mutant.rule] = turn + 1
            keyed.append((turn, mutant.digest, mutant))
        return [mutant for _, _, mutant in sorted(keyed, key=lambda k: k[:2])[: self.per_kernel]]


class Progress:
    """Rows of judged mutants in a JSON Lines file; each is written when it is known."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = threading.Lock()
        self.rows: dict[str, Row] = {}
        if path.exists():
            whole, _, cut = path.read_text(encoding="utf-8").rpartition("\n")
            for line in whole.splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row
            if cut:  # the run was stopped while it wrote: that mutant is judged again
                path.write_text(whole + "\n" if whole else "", encoding="utf-8")

    def add(self, row: Row) -> None:
        """Remember a row."""
        with self._lock:
            self.rows[row["key"]] = row
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def row_of(substrate: Substrate, source: str, mutant: Mutant) -> Row:
    """Return the row of a mutant that nobody has judged yet."""
    return {
        "key": f"{substrate.name}/{mutant.digest}",
        "substrate": substrate.name,
        "family": substrate.family,
        "problem": substrate.problem,
        "rule": mutant.rule,
        "group": mutant.group,
        "diff": difference(source, mutant.source),
    }
