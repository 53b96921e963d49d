"""The two files that travel between a search and a judge that it cannot reach.

    bundle     problems and the candidates that await a verdict: `hotloop bundle` writes it
    verdicts   what `hotloop judge --bundle` found: problem infos, verdicts, errors

`bundle_lines` has their format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop import errors
from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import ProblemError
from hotloop.verify.bundle_lines import BUNDLE, VERDICTS, VERSION, read_lines, write_lines

ANY_TIME_MS = 1e12
"""Longer than any kernel that is judged."""

Key = tuple[str, str | None, Tier | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to be judged: a candidate at a tier, or only the problem to be loaded."""

    problem_id: str
    candidate: Candidate | None = None
    """None: load the problem, nothing else."""
    tier: Tier | None = None
    """None exactly when there is no candidate."""
    incumbent_ms: float | None = None
    """Best fast time of the run so far: slower candidates need no hardware counters."""
    asked: int = 1
    """How often it was asked for, this time included: more than once where the other machine could
    not judge it."""
    wants_counters: bool = True
    """False where the run's prompts never show any."""
    short: bool = False  # whether the final tier is to be the short one

    def __post_init__(self) -> None:
        if (self.candidate is None) != (self.tier is None):
            raise ValueError("expected a candidate and a tier, or neither")

    @property
    def profile_below_ms(self) -> float:
        """Counters are read of a candidate that is faster than this, in milliseconds."""
        if not self.wants_counters:
            return 0.0
        return ANY_TIME_MS if self.incumbent_ms is None else self.incumbent_ms

    @property
    def key(self) -> Key:
        """What makes two items the same: problem, candidate, tier."""
        return self.problem_id, self.candidate.id if self.candidate else None, self.tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Problems by id, and what is to be judged of them."""

    problems: Mapping[str, Problem] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict)
    """Of earlier loads, by problem id: not made again where they hold."""

    def __post_init__(self) -> None:
        for problem_id, problem in self.problems.items():
            if problem.id != problem_id:
                raise ValueError(f"problem {problem.id} is filed as {problem_id}")
        named = {item.problem_id for item in self.items} | set(self.audits)
        missing = sorted(named - set(self.problems))
        if missing:
            raise ValueError(f"it speaks of problems that are not in it: {', '.join(missing)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeError:
    """A problem that could not be loaded, or a candidate that the machine could not judge."""

    problem_id: str
    candidate_id: str | None
    """None: the problem's load failed."""
    error: str
    """Name of a class in `hotloop.errors`."""
    message: str
    tier: Tier | None = None
    """At which the candidate could not be judged; None where that is not known."""
    asked: int = 1
    """`Item.asked` of what could not be judged."""

    @property
    def problem_error(self) -> type[ProblemError] | None:
        """The class, where the problem itself is broken; None where the machine was at fault."""
        found = getattr(errors, self.error, None)
        is_one = isinstance(found, type) and issubclass(found, ProblemError)
        return found if is_one and self.candidate_id is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What was found about a bundle, or about a part of it."""

    infos: Mapping[str, ProblemInfo] = field(default_factory=dict)
    """By problem id."""
    verdicts: tuple[Verdict, ...] = ()
    errors: tuple[JudgeError, ...] = ()


def write_bundle(path: Path, bundle: Bundle) -> None:
    """Write a bundle whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    records = [{"problem_id": p.id, "problem": to_json(p)} for p in bundle.problems.values()]
    records += [_item_record(item) for item in bundle.items]
    records += [{"problem_id": i, "audit": to_json(audit)} for i, audit in bundle.audits.items()]
    head = {
        BUNDLE: VERSION,
        "problem": len(bundle.problems),
        "item": len(bundle.items),
        "audit": len(bundle.audits),
    }
    write_lines(path, [head, *records])


def read_bundle(path: Path) -> Bundle:
    """Read a bundle; every id is checked against the content that it names.

    Raises:
        ConfigError: the file is missing, of another kind or version, or damaged.
    """
    problems: dict[str, Problem] = {}
    items: dict[Key, Item] = {}
    audits: dict[str, Audit] = {}
    for line in read_lines(path, BUNDLE):
        if "problem" in line.record:
            problem = line.parse(Problem, "problem")
            line.check("problem_id", problem.id)
            problems[problem.id] = problem
        elif "audit" in line.record:
            about = str(line.record.get("problem_id"))
            line.check_known(about, problems)
            audits[about] = line.parse(Audit, "audit")
        else:
            item = line.parse(Item, "item")
            line.check("candidate_id", item.candidate.id if item.candidate else None)
            line.check_known(item.problem_id, problems)
            items[item.key] = item
    return Bundle(problems=problems, items=tuple(items.values()), audits=audits)


def write_verdicts(path: Path, verdicts: Verdicts) -> None:
    """Write a verdict file whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    head = {
        VERDICTS: VERSION,
        "info": len(verdicts.infos),
        "verdict": len(verdicts.verdicts),
        "error": len(verdicts.errors),
    }
    records = [{"info": to_json(info)} for info in verdicts.infos.values()]
    records += [{"verdict": to_json(verdict)} for verdict in verdicts.verdicts]
    records += [{"error": to_json(error)} for error in verdicts.errors]
    write_lines(path, [head, *records])


def read_verdicts(path: Path) -> Verdicts:
    """Read a verdict file.

    Raises:
        ConfigError: the file is missing, of another kind or version, or damaged.
    """
    infos: dict[str, ProblemInfo] = {}
    verdicts: list[Verdict] = []
    failures: list[JudgeError] = []
    for line in read_lines(path, VERDICTS):
        if "info" in line.record:
            info = line.parse(ProblemInfo, "info")
            infos[info.problem_id] = info
        elif "verdict" in line.record:
            verdicts.append(line.parse(Verdict, "verdict"))
        else:
            failures.append(line.parse(JudgeError, "error"))
    return Verdicts(infos=infos, verdicts=tuple(verdicts), errors=tuple(failures))


def _item_record(item: Item) -> dict[str, Any]:
    _, candidate_id, _ = item.key
    return {"candidate_id": candidate_id, "item": to_json(item)}
