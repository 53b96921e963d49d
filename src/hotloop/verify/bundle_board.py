"""What was found of a bundle so far, and the verdict file that holds it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.errors import HotloopError
from hotloop.verify.bundle import Bundle, Item, JudgeError, Key, Verdicts, write_verdicts
from hotloop.verify.seat_use import SeatUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of a bundle."""

    verdicts: Verdicts
    items: int
    """Different ones in the bundle; loads count where nothing else is asked of a problem."""
    answered: int
    """Those with a verdict, an info, or the reason why the problem cannot be loaded."""
    use: Mapping[str, SeatUse] = field(default_factory=dict)
    """What each GPU did, by its name; `cpu` where there is none."""

    @property
    def pending(self) -> int:
        """Items without an answer."""
        return self.items - self.answered


class Board:
    """What was found so far, and its file; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._infos: dict[str, ProblemInfo] = {}
        self._verdicts: dict[Key, Verdict] = {}
        self._errors: dict[tuple[str, str | None], JudgeError] = {}
        self._is_new = True

    def loaded(self, info: ProblemInfo) -> None:
        """Keep the first info of each problem."""
        with self._lock:
            self._infos.setdefault(info.problem_id, info)
            self._errors.pop((info.problem_id, None), None)
            self._is_new = True

    def judged_one(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self._lock:
            self._verdicts[(verdict.problem_id, verdict.candidate_id, verdict.tier)] = verdict
            self._is_new = True

    def failed(self, problem: Problem, item: Item | None, exc: HotloopError) -> None:
        """Keep why there is no info, or no verdict on an item's candidate."""
        with self._lock:
            candidate = None if item is None else item.candidate
            candidate_id = None if candidate is None else candidate.id
            if candidate is None and problem.id in self._infos:
                return  # another GPU could load it
            self._errors[(problem.id, candidate_id)] = JudgeError(
                problem_id=problem.id,
                candidate_id=candidate_id,
                error=type(exc).__name__,
                message=str(exc),
                tier=None if item is None else item.tier,
                asked=1 if item is None else item.asked,
            )
            self._is_new = True

    def write(self) -> None:
        """Write the file where something came since the last time.

        Raises:
            ConfigError: it cannot be written.
        """
        with self._lock:
            if self._is_new:
                write_verdicts(self._path, self._content())
                self._is_new = False

    def judged(self, bundle: Bundle) -> Judged:
        """Return what became of the bundle."""
        with self._lock:
            content = self._content()
            keys = {item.key for item in bundle.items}
            # A load is asked for by itself only where no candidate of the problem is.
            with_candidates = {problem_id for problem_id, candidate, _ in keys if candidate}
            keys = {k for k in keys if k[1] is not None or k[0] not in with_candidates}
            answered = sum(self._is_answered(key) for key in keys)
        return Judged(verdicts=content, items=len(keys), answered=answered)

    def _is_answered(self, key: Key) -> bool:
        problem_id, candidate_id, _ = key
        if candidate_id is not None:
            return key in self._verdicts
        failure = self._errors.get((problem_id, None))
        is_broken = failure is not None and failure.problem_error is not None
        return is_broken or problem_id in self._infos

    def _content(self) -> Verdicts:
        return Verdicts(
            infos=dict(self._infos),
            verdicts=tuple(self._verdicts.values()),
            errors=tuple(self._errors.values()),
        )
