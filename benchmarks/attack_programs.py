"""The programs of `tests/attacks` as one list: cheats, honest kernels beside them, misuse of a GPU.

    own      cheats that go with the catalogue of reward hacks (`tests/attacks/cheats`)
    blind    cheats by people who had not seen the guards (`tests/attacks/blind`)
    gpu      kernels that hang, fault or leave work behind, and candidates that could take a machine
             down (`tests/attacks/gpu`); the latter are judged by their text alone and never run
    honest   right kernels that look like cheats (`tests/attacks/honest`)

The corpora are read by their own modules, which belong to the tests.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results_file import ROOT
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status

CORPUS = ROOT / "tests" / "attacks"
CORPORA = ("own", "blind", "gpu", "honest")
HONEST = "honest"
STATIC = "static"
NO_REFUSAL = (Status.PASSED, Status.INCONCLUSIVE, Status.COMPILED_ONLY)
REFUSALS = tuple(status.value for status in Status if status not in NO_REFUSAL)
"""Statuses that say that a candidate is at fault."""
GPU_SIZES = {"ROWS": 1021, "COLUMNS": 1000}
GPU_NUMBERS = {"on_another_stream": (11,), "in_a_thread": (12,), "in_a_graph": (20,),
               "one_call_late": (7,)}  # fmt: skip
"""Entries of the catalogue that work left behind stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program, its problem and the statuses that are right answers."""

    name: str
    corpus: str
    problem: Path
    candidate: Candidate
    right: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    """Entries of the catalogue of reward hacks."""
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    needs_gpu: bool = False
    by_text: bool = False
    """Has to be refused by its text, and is never run."""
    settled: str | None = None
    """Why PASSED is a right answer although its author expected otherwise."""
    call_s: float | None = None
    """Deadline of a call; None: the benchmark's own."""
    least_ms: float | None = None
    """PASSED is a right answer too where the reported time is at least this."""

    @property
    def key(self) -> str:
        """Return a name that no other program has."""
        return f"{self.corpus}/{self.name}"

    @property
    def is_attack(self) -> bool:
        """Whether it has to be refused."""
        return self.corpus != HONEST and Status.PASSED not in self.right


def programs(scratch: Path) -> list[Program]:
    """Return all programs, those of one problem together.

    Args:
        scratch: a folder that the problem of the GPU's attacks is written into.

    Raises:
        ValueError: two have one name.
    """
    found = [*_own(), *_blind(), *_gpu(scratch)]
    keys = [program.key for program in found]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"expected a name for each program, these stand for several: {twice}")
    return sorted(found, key=lambda p: (str(p.problem), p.call_s is not None))


def chosen(found: Sequence[Program], names: str, limit: int | None) -> list[Program]:
    """Return the programs of these names, corpora, problems or catalogue numbers; all for "".

    Args:
        found: to choose from.
        names: with commas between.
        limit: no more than this, spread evenly over what was chosen; None: all.

    Raises:
        ValueError: nothing is called that, or the limit is under 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"expected a limit of 1 or more programs, got {limit}")
    wanted = {name for name in names.split(",") if name}
    known = {title for program in found for title in _titles(program)}
    if unknown := sorted(wanted - known):
        raise ValueError(
            f"expected names of programs or problems, numbers of the catalogue or corpora of "
            f"{', '.join(CORPORA)}; got {', '.join(unknown)}"
        )
    picked = [p for p in found if not wanted or wanted & _titles(p)]
    if limit is None or limit >= len(picked):
        return picked
    return [picked[i * len(picked) // limit] for i in range(limit)]


def _titles(program: Program) -> set[str]:
    numbers = map(str, program.numbers)
    return {program.name, program.key, program.corpus, program.problem.stem, *numbers}


def _own() -> Iterator[Program]:
    corpus = _module("corpus", CORPUS / "cheats")
    for folder, name in (("cheats", "own"), ("honest", HONEST)):
        for row in corpus.load_rows(CORPUS / folder):
            yield Program(
                name=row.name,
                corpus=name,
                problem=CORPUS / "cheats" / "problems" / f"{row.problem}.py",
                candidate=row.candidate(),
                right=tuple(row.expect),
                numbers=tuple(row.numbers),
                needs_gpu=row.device == "cuda",
                by_text=row.stage == STATIC,
            )


def _blind() -> Iterator[Program]:
    folder = CORPUS / "blind"
    for case in tomllib.loads((folder / "table.toml").read_text(encoding="utf-8"))["case"]:
        text = (folder / "programs" / f"{case['name']}.py").read_text(encoding="utf-8")
        source = SourceFile(path="kernel.py", text=text)
        passes = Status.PASSED in case["accept"]
        yield Program(
            name=case["name"],
            corpus="blind",
            problem=folder / "problems" / f"{case['problem']}.py",
            candidate=Candidate(language="triton", sources=(source,)),
            right=tuple(case["accept"]),
            needs_gpu=case["device"] == "gpu",
            settled=case["settled"] if passes else None,
        )


def _gpu(scratch: Path) -> Iterator[Program]:
    shared = _module("scaled_rows", ROOT / "tests" / "worker")
    attacks = _module("gpu_attacks", CORPUS / "gpu")
    unread = _module("test_refused_before_running", CORPUS / "gpu")
    scratch.mkdir(parents=True, exist_ok=True)
    path = shared.write_problem(scratch)

    def make(name: str, candidate: Candidate, right: tuple[str, ...], **more: Any) -> Program:
        return Program(
            name=name, corpus="gpu", problem=path, candidate=candidate, right=right,
            settings=GPU_SIZES, **more,
        )  # fmt: skip

    for name, candidate in unread.DEADLY.items():
        yield make(name, candidate, (Status.REJECTED_STATIC.value,), by_text=True)
    for name, candidate in attacks.HANGS.items():
        right = (Status.TIMEOUT.value,)
        yield make(f"hangs: {name}", candidate, right, needs_gpu=True, call_s=attacks.CALL_S)
    for name, attack in attacks.FAULTS.items():
        yield make(name, attack.candidate, (attack.status.value,), needs_gpu=True)
    for name, candidate in attacks.LEFT_WORK.items():
        numbers = GPU_NUMBERS[name]
        yield make(name, candidate, REFUSALS, needs_gpu=True, numbers=numbers)
    least_ms = attacks.BURNT_MS / 4
    yield make("burns", attacks.BURNS, REFUSALS, needs_gpu=True, least_ms=least_ms)


def _module(name: str, folder: Path) -> Any:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)
