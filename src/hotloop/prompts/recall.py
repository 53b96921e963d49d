"""What a run's attempts say for its next prompt: which kernel to change, and what was tried.

Reads the journal's concluded attempts; a change that is still under way counts only as asked for,
so that two calls at a time do not ask for the same. A chain of repairs counts as one try of what
its first attempt was to do. Calls that failed by themselves are no tries at all.

Never in it: seeds, limits of the gate, held-out sizes, paths; what failed is told by its status
and, where a prompt may show it, the first line of its message, cleaned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hotloop.core.attempt import Action, Asked, Attempt
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.units import format_ms
from hotloop.core.verdict import Evidence, Status, Verdict
from hotloop.prompts.feedback import concerns_held_out
from hotloop.prompts.memory import Entry, Memory, Result
from hotloop.prompts.said import said_in
from hotloop.prompts.speed import moves
from hotloop.prompts.untrusted import one_line

CALL_FAILED = "call_failed"
REFUSED = "refused"
NOT_JUDGED = "not_judged"
NO_TRIES = frozenset({CALL_FAILED, REFUSED, NOT_JUDGED})
"""Kinds of evidence of attempts in which no kernel was tried: a call that failed by itself, and a
kernel that no machine could judge."""
REASON_CHARS = 80

_FAILED: Mapping[Status, str] = {
    Status.NO_CODE: "the reply held no kernel",
    Status.REJECTED_STATIC: "breaks a rule",
    Status.COMPILE_ERROR: "does not compile",
    Status.RUNTIME_ERROR: "fails when it runs",
    Status.TIMEOUT: "does not finish",
    Status.INCORRECT_SHAPE: "wrong shape",
    Status.INCORRECT_DTYPE: "wrong dtype",
    Status.INCORRECT_NUMERICAL: "wrong values",
    Status.INPUT_MODIFIED: "writes to an input",
    Status.REWARD_HACK: "does not do the work",
    Status.INCONCLUSIVE: "could not be judged on these inputs",
    Status.COMPILED_ONLY: "compiled, not run",
}
_WITH_REASON = frozenset(
    {Status.REJECTED_STATIC, Status.COMPILE_ERROR, Status.RUNTIME_ERROR, Status.REWARD_HACK}
)
"""Statuses whose message prompts show; that of wrong values may state a limit."""


class Recall:
    """The attempts of one run."""

    def __init__(
        self,
        attempts: Sequence[Attempt],
        asked: Mapping[int, Asked],
        problem: Problem,
        language: str,
    ) -> None:
        """Take the journal's attempts.

        Args:
            attempts: all of them, in order of id.
            asked: what each attempt was asked, those under way included.
            problem: knows which sizes are held out.
            language: that the run's kernels are in.
        """
        self._by_id = {a.id: a for a in attempts}
        self._asked, self._problem, self._language = asked, problem, language
        concluded = [a for a in attempts if a.verdict is not None]
        self._tries = sorted(
            (a for a in concluded if not _is_no_try(a)), key=lambda a: (a.finished_s or 0.0, a.id)
        )

    def subject(self, attempt_id: int) -> Attempt | None:
        """Return the attempt whose kernel is to be changed: this one, or its nearest ancestor.

        None when none of them has a candidate and a verdict.
        """
        line = (a for a in self._line(attempt_id) if a.candidate_id and a.verdict)
        return next((a for a in line if not _is_no_try(a)), None)

    def lapse(self, attempt_id: int) -> Verdict | None:
        """Return the verdict on a reply without a kernel, if that is what this attempt was."""
        attempt = self._by_id.get(attempt_id)
        verdict = attempt.verdict if attempt is not None else None
        if attempt is None or verdict is None or _is_no_try(attempt):
            return None
        return verdict if verdict.status is Status.NO_CODE else None

    def idea(self, attempt_id: int) -> str | None:
        """Return the idea that this attempt, or one before it, was to carry out."""
        ideas = (self._asked[a.id].idea for a in self._line(attempt_id) if a.id in self._asked)
        return next((idea for idea in ideas if idea), None)

    def incumbent(self) -> Attempt | None:
        """Return the best correct attempt; None when there is none."""
        passed = [a for a in self._tries if a.objective is not None]
        return min(passed, key=lambda a: (a.objective or 0.0, a.id), default=None)

    def beats(self, attempt_id: int) -> str:
        """Return the incumbent in words, if this attempt was to beat one; else nothing."""
        root = self._root(attempt_id)
        best = self.incumbent()
        ambitious = root is not None and root.action in (Action.OPTIMISE, Action.REGENERATE)
        return _told_best(best) or "not timed" if ambitious and best is not None else ""

    def mends(self, subject_id: int) -> tuple[str, ...]:
        """Return what repairs that led to this kernel, or began with it, did and how they ended."""
        chain = []
        for attempt in self._line(subject_id):
            if attempt.action != Action.REPAIR:
                break
            chain.append(attempt.id)
        repairs = [a for a in self._tries if a.action == Action.REPAIR and a.candidate_id]
        about = [a for a in repairs if a.id in chain or subject_id in a.parents]
        failed = [a for a in about if a.objective is None]
        return tuple(f"{said_in(a.notes) or 'a repair'} -> {self._told_failure(a)}" for a in failed)

    def memory(self, subject_id: int | None, info: ProblemInfo) -> Memory:
        """Return what the run remembers, for a prompt about `subject_id`."""
        written = [a for a in self._tries if a.action != Action.SWEEP and a.verdict is not None]
        best = self.incumbent()
        return Memory(
            attempts=len(written),
            statuses=Counter(a.verdict.status.value for a in written if a.verdict),
            entries=tuple(self._entries(info)),
            asked=self._moves_asked(subject_id),
            best=_told_best(best) if best is not None else "",
        )

    def _line(self, attempt_id: int) -> Iterator[Attempt]:
        """Yield an attempt and its ancestors, nearest first, along first parents."""
        seen: set[int] = set()
        attempt = self._by_id.get(attempt_id)
        while attempt is not None and attempt.id not in seen:
            seen.add(attempt.id)
            yield attempt
            attempt = self._by_id.get(attempt.parents[0]) if attempt.parents else None

    def _root(self, attempt_id: int) -> Attempt | None:
        """Return the attempt that a chain of repairs began with."""
        root = None
        for root in self._line(attempt_id):
            if root.action != Action.REPAIR:
                break
        return root

    def _author(self, attempt_id: int) -> int:
        """Return the attempt that wrote this one's source: a sweep only changes values."""
        line = self._line(attempt_id)
        return next((a.id for a in line if a.action != Action.SWEEP), attempt_id)

    def _moves_asked(self, subject_id: int | None) -> frozenset[str]:
        """Return the moves that were asked of this attempt's source and of its ancestors'."""
        line = {a.id for a in self._line(subject_id)} if subject_id is not None else set()
        about = {i: {i, *map(self._author, a.parents)} for i, a in self._by_id.items()}
        moves_of = (self._asked[i].move for i in about if i in self._asked and line & about[i])
        return frozenset(move for move in moves_of if move)

    def _entries(self, info: ProblemInfo) -> list[Entry]:
        wins = self._wins()
        chains: dict[int, list[Attempt]] = {}
        for attempt in self._tries:
            is_sweep = attempt.action == Action.SWEEP
            root = self._by_id.get(attempt.parents[0]) if is_sweep and attempt.parents else None
            root = root or self._root(attempt.id) or attempt
            key = -root.id if is_sweep else root.id  # a sweep is an entry beside its parent's
            members = chains.pop(key, [])
            chains[key] = [*members, attempt]  # the latest comes last
        entries = [
            _sweep_entry(members, wins) if key < 0 else self._entry(members, wins, info)
            for key, members in chains.items()
        ]
        return _merged(entries)

    def _wins(self) -> frozenset[int]:
        """Return the attempts that were the best when they were concluded."""
        best: float | None = None
        wins = set()
        for attempt in self._tries:
            if attempt.objective is not None and (best is None or attempt.objective < best):
                best = attempt.objective
                wins.add(attempt.id)
        return frozenset(wins)

    def _entry(self, members: list[Attempt], wins: frozenset[int], info: ProblemInfo) -> Entry:
        words = self._words(members, info)
        passed = [a for a in members if a.objective is not None]
        if passed:
            best = min(passed, key=lambda a: (a.objective or 0.0, a.id))
            return Entry(idea=words, result=_result(passed, wins), told=_told_time(best))
        with_code = [a for a in members if a.candidate_id] or members
        told = self._told_failure(with_code[-1])
        return Entry(idea=words, result=Result.FAILED, told=told, count=len(members))

    def _words(self, members: list[Attempt], info: ProblemInfo) -> str:
        """Return what a chain of attempts was to do: the idea, else the model's words, else ours.

        The words of a repair tell of a mistake, so those of its root count.
        """
        root = self._root(members[0].id) or members[0]
        asked = self._asked.get(root.id)
        if asked is not None and asked.idea:
            return asked.idea
        said = said_in(root.notes)
        if root.action == Action.START:
            return "the kernel that the user began with"
        if said:
            return f"another design: {said}" if root.action == Action.REGENERATE else said
        if root.action == Action.OPTIMISE:
            return self._move_words(root, asked, info)
        return "another design" if root.action == Action.REGENERATE else "a first kernel"

    def _move_words(self, root: Attempt, asked: Asked | None, info: ProblemInfo) -> str:
        if asked is None or asked.move is None:
            return "a change of its own choice"
        parent = self.subject(root.parents[0]) if root.parents else None
        known = moves(parent.verdict, info, self._language) if parent and parent.verdict else []
        told = next((move.text for move in known if move.key == asked.move), None)
        return told or asked.move.replace("_", " ")

    def _told_failure(self, attempt: Attempt) -> str:
        verdict = attempt.verdict
        assert verdict is not None  # noqa: S101  only concluded attempts are tries
        if concerns_held_out(verdict, self._problem):
            return "fails on sizes that are not shown"
        told = _FAILED.get(verdict.status, "fails")
        evidence = verdict.evidence or Evidence(kind="", message="")
        lines = [line for line in evidence.message.split("\n") if line.strip()]
        if verdict.status not in _WITH_REASON or not lines:
            return told
        return f"{told}: {one_line(lines[0], REASON_CHARS)}"


def _is_no_try(attempt: Attempt) -> bool:
    verdict = attempt.verdict
    evidence = verdict.evidence if verdict is not None else None
    may_be = verdict is not None and verdict.status in (Status.NO_CODE, Status.INCONCLUSIVE)
    return may_be and evidence is not None and evidence.kind in NO_TRIES


def _sweep_entry(members: list[Attempt], wins: frozenset[int]) -> Entry:
    names = list(dict.fromkeys(name for a in members for name in a.point))
    varied = [n for n in names if len({str(a.point.get(n)) for a in members}) > 1] or names
    points = "1 point" if len(members) == 1 else f"{len(members)} points"
    words = f"swept {' x '.join(varied)} over {points}"
    passed = [a for a in members if a.objective is not None]
    if not passed:
        return Entry(idea=words, result=Result.FAILED, told="no point is correct")
    best = min(passed, key=lambda a: (a.objective or 0.0, a.id))
    values = ", ".join(f"{name} = {best.point.get(name)}" for name in varied)
    time = _told_time(best)
    told = f"best: {values}" + (f", {time}" if time else "")
    return Entry(idea=words, result=_result(passed, wins), told=told)


def _result(passed: list[Attempt], wins: frozenset[int]) -> Result:
    if any(_latency_ms(a) is None for a in passed):
        return Result.CORRECT
    return Result.WON if any(a.id in wins for a in passed) else Result.SLOWER


def _merged(entries: list[Entry]) -> list[Entry]:
    """Return one entry for each idea and result; the latest words on how it ended count."""
    found: dict[tuple[str, Result], Entry] = {}
    for entry in entries:
        earlier = found.pop((entry.idea, entry.result), None)
        count = entry.count + (earlier.count if earlier else 0)
        found[entry.idea, entry.result] = Entry(
            idea=entry.idea, result=entry.result, told=entry.told, count=count
        )
    return list(found.values())


def _told_best(best: Attempt) -> str:
    """Return its time beside the fastest baseline's; empty where nothing is timed."""
    latency_ms = _latency_ms(best)
    if latency_ms is None or best.verdict is None or best.verdict.performance is None:
        return ""
    told = f"{format_ms(latency_ms)} a call"
    baselines = best.verdict.performance.baselines
    if baselines:
        name = min(baselines, key=lambda n: (baselines[n], n))
        told += f", fastest baseline ({name}) {format_ms(baselines[name])}"
    return told


def _told_time(attempt: Attempt) -> str:
    latency_ms = _latency_ms(attempt)
    return format_ms(latency_ms) if latency_ms is not None else ""


def _latency_ms(attempt: Attempt) -> float | None:
    performance = attempt.verdict.performance if attempt.verdict is not None else None
    return performance.latency_ms if performance is not None else None
