"""The corpus: cheats and honest kernels as rows of TOML tables, made into candidates.

A row's fields

numbers    which entries of the catalogue of reward hacks it stands for (cheats only)
problem    stem of a file in `problems/`; kernels that belong to it lie in `kernels/`
expect     statuses that it may get, one of which it must (honest rows: PASSED)
stage      `static` where it must be refused by its text alone
device     `cuda` where only a GPU can tell; default `cpu`
language   `cuda` for a `.cu` source; default `triton`
quick      true: verified in the default tests; the others are `slow`
code       what follows the problem's kernels; `MODEL:` stands for the head of `ModelNew`
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem
from hotloop.problems import load_problem_spec

HERE = Path(__file__).parent
HEAD = "\n\nclass ModelNew(torch.nn.Module):\n"
INIT = "    def __init__(self):\n        super().__init__()\n        {line}\n\n"
STATE = {
    "scaled": "self.scale = torch.nn.Parameter(torch.empty(48))",
    "linear": "self.linear = torch.nn.Linear(96, 24)",
    "biased_norm": "self.linear = torch.nn.Linear(96, 48)",
    "rows_apart": "self.w = torch.nn.Parameter(torch.empty(32, 1024))",
    "gates": "self.w = torch.nn.Parameter(torch.empty(32, 64))",
}
"""What the constructor of a problem's `ModelNew` makes, where it has parameters."""


@dataclass(frozen=True, slots=True)
class Row:
    """One program of the corpus."""

    name: str
    problem: str
    code: str
    expect: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    stage: str | None = None
    device: str = "cpu"
    language: str = "triton"
    quick: bool = False

    def candidate(self) -> Candidate:
        """Return the program as a candidate."""
        if self.language == "cuda":
            source = SourceFile(path="kernel.cu", text=self.code)
            return Candidate(language="cuda", sources=(source,), entry="kernel.cu")
        kernels = "shapes" if self.problem == "shapes" else self.problem
        text = kernel_text(kernels) + "\n\n" + self.code.replace("MODEL:\n", self._head())
        return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))

    def _head(self) -> str:
        line = STATE.get(self.problem)
        return HEAD + (INIT.format(line=line) if line and "__init__" not in self.code else "")


def kernel_text(problem: str) -> str:
    """Return the right kernels of a problem."""
    name = {"shapes": "softmax"}.get(problem, problem)
    return (HERE / "kernels" / f"{name}.py").read_text(encoding="utf-8")


def load_rows(folder: Path) -> list[Row]:
    """Return the rows of all tables in a folder, those of one problem together."""
    rows = []
    for path in sorted(folder.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            expect = tuple(fields.pop("expect", ("PASSED",)))
            numbers = tuple(fields.pop("numbers", ()))
            rows.append(Row(name=name, expect=expect, numbers=numbers, **fields))
    return sorted(rows, key=lambda row: (not row.quick, row.problem, row.name))


def load_problem(name: str, device: str = "cpu") -> Problem:
    """Return a problem of the corpus."""
    return load_problem_spec(HERE / "problems" / f"{name}.py", device=device, settings={})
