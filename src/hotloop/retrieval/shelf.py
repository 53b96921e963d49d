"""Shelf: the best verified kernel of each run in some folders, and which of them fits a problem.

Journals are read only, also those of runs that go on; one that cannot be read is passed over. A
problem never sees kernels of itself, whatever its sizes or policy, and never any from across a
held-out split: neither that of its own run nor that of the run where a kernel was found.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hotloop.core.attempt import RunSpec
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.python_source import Unparsable, parse_python
from hotloop.core.record import from_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import HotloopError
from hotloop.prompts.example import Example
from hotloop.retrieval.kinship import distance, leading, likeness, operators
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE

MIN_LIKENESS = 0.2
"""Below this share of common operators a kernel says too little about another problem's."""
MIN_SPEEDUP = 1.0
"""A kernel that is slower than PyTorch's fastest is no example of how to be fast."""
MAX_CHARS = 10_000
"""Of a kernel's source; cut code helps nobody, so a longer one is no example."""
EXAMPLES = "examples"
"""Option of a run's spec: the folders."""
DISTANCE_STEP = 2.0
"""Problems within a factor of four of each other count as equally far from a third."""
HELD_OUT = "held_out"
"""Option of a run's spec: names of the problems that its suite holds out."""
FOREIGN = (ValueError, KeyError, TypeError)
"""What reading a record raises that another version wrote."""
_KEPT_RUNS = 1024

Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shelved:
    """One run's best kernel."""

    example: Example
    info: ProblemInfo
    """What the judge found of its problem."""
    found: Counter[str]
    """The operators of its problem."""
    language: str
    held_out: frozenset[str]
    """Names of the problems that its run's suite holds out."""
    program: str
    """Its problem's source without constants."""


class Shelf:
    """Implements `prompts.example.Examples` with the journals of other runs."""

    def __init__(self, folders: Sequence[Path], spec: RunSpec, problem: Problem) -> None:
        """Look at no journal yet.

        Args:
            folders: runs, suites, or folders of runs; one that is missing has none.
            spec: the run that examples are for.
            problem: its problem.
        """
        self._folders = tuple(folders)
        self._spec = spec
        self._program = _program(problem.source)

    def find(self, info: ProblemInfo, shown: frozenset[str]) -> Example | None:
        """Return the most alike kernel. See `prompts.example.Examples`.

        By common operators, then by tier, then by size and operations per byte, then the fastest.
        """
        mine = operators(info)
        fitting = []
        for shelved in self._kernels():
            alike = likeness(mine, shelved.found)
            if not self._may_show(shelved) or shelved.example.mark in shown:
                continue
            if alike < MIN_LIKENESS or leading(shelved.found) != leading(mine):
                continue
            example = shelved.example
            ratio = example.speedup[1] if example.speedup is not None else 0.0
            order = (
                -round(alike, 1),
                example.tier is not Tier.FINAL,
                distance(info, shelved.info) // DISTANCE_STEP,
                -ratio,
                example.mark,
            )
            fitting.append((order, example))
        return min(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _may_show(self, shelved: _Shelved) -> bool:
        mine, theirs = self._spec.problem_name, shelved.example.problem.name
        is_mine = mine == theirs or shelved.program == self._program
        splits = (_held_out(self._spec), shelved.held_out)
        is_across = any((mine in split) != (theirs in split) for split in splits)
        return shelved.language == self._spec.language and not is_mine and not is_across

    def _kernels(self) -> list[_Shelved]:
        found = [_read(folder, _stamp(folder)) for folder in _run_folders(self._folders)]
        return [shelved for shelved in found if shelved is not None]


def open_shelf(spec: RunSpec, problem: Problem) -> Shelf | None:
    """Return the shelf that a run asked for; None where it asked for no examples."""
    folders = spec.options.get(EXAMPLES)
    return Shelf([Path(folder) for folder in folders], spec, problem) if folders else None


def _held_out(spec: RunSpec) -> frozenset[str]:
    return frozenset(spec.options.get(HELD_OUT) or ())


def _program(source: str) -> str | None:
    """Return what a problem computes whatever its constants: the dump of its tree without them.

    None where it is no Python: then no prompt can show it either.
    """
    try:
        tree = parse_python(source)
    except (Unparsable, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = None
    return ast.dump(tree)


def _run_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the folders with a journal: these, those below, and those of a suite."""
    found: dict[Path, None] = {}
    for folder in folders:
        for pattern in (JOURNAL_FILE, f"*/{JOURNAL_FILE}", f"*/*/{JOURNAL_FILE}"):
            found.update(dict.fromkeys(path.parent for path in sorted(folder.glob(pattern))))
    return list(found)


def _stamp(folder: Path) -> Stamp:
    """Return what changes whenever a journal does."""
    stamps = []
    for name in (JOURNAL_FILE, f"{JOURNAL_FILE}-wal"):
        try:
            stat = (folder / name).stat()
            stamps.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamps.append((0, 0))
    return tuple(stamps)


@lru_cache(maxsize=_KEPT_RUNS)
def _read(folder: Path, stamp: Stamp) -> _Shelved | None:
    """Return a run's best kernel; None where none passed, or the journal cannot be read.

    A suite asks for each problem's prompt: without the cache each of 200 runs would be read 200
    times. `stamp` is part of the key only.
    """
    del stamp
    try:
        with RunReader(folder) as reader:
            setups = reader.notes("setup")
            best = _best(reader) if setups else None
            if best is None:
                return None
            info = from_json(ProblemInfo, setups[-1]["info"])
            candidate = reader.candidate(best.candidate_id)
            spec, problem = reader.spec(), reader.problem()
    except (HotloopError, *FOREIGN):
        return None
    if sum(len(source.text) for source in candidate.sources) > MAX_CHARS:
        return None
    found, slowest, program = operators(info), _speedup(best), _program(problem.source)
    if program is None or (slowest is not None and slowest[1] < MIN_SPEEDUP):
        return None
    return _Shelved(
        example=Example(
            problem=problem,
            candidate=candidate,
            operators=tuple(found),
            tier=best.tier,
            speedup=slowest,
        ),
        info=info,
        found=found,
        language=spec.language,
        held_out=_held_out(spec),
        program=program,
    )


def _best(reader: RunReader) -> Verdict | None:
    """Return the fastest passed verdict of the highest tier; a refusal there counts."""
    noted = [from_json(Verdict, note["verdict"]) for note in reader.notes("final")]
    finals = {verdict.candidate_id: verdict for verdict in noted}.values()  # the last one counts
    refused = {verdict.candidate_id for verdict in finals if not verdict.passed}
    passed = [verdict for verdict in finals if verdict.passed]
    if not passed:
        fast = [a.verdict for a in reader.attempts() if a.verdict is not None]
        passed = [v for v in fast if v.passed and v.candidate_id not in refused]
    return min(passed, key=_latency_ms, default=None)


def _speedup(verdict: Verdict) -> tuple[str, float] | None:
    """Return the fastest baseline's name and ratio: of a final verdict, what it claims."""
    performance = verdict.performance
    if performance is None:
        return None
    is_claimed = performance.speedup_ci if verdict.tier is Tier.FINAL else performance.speedup
    ratios = {n: ratio for n, ratio in performance.speedup.items() if n in is_claimed}
    return min(ratios.items(), key=lambda item: item[1]) if ratios else None


def _latency_ms(verdict: Verdict) -> float:
    return verdict.performance.latency_ms if verdict.performance is not None else float("inf")
