"""Who judges what of a bundle next: groups of one problem, shared out over the GPUs.

A problem is loaded once on one GPU and all its candidates follow there. An idle GPU joins a problem
that another one is at only where that saves more time than the second load takes. Thread-safe.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.verdict import Tier
from hotloop.verify.bundle import Bundle, Item

LOAD_GUESS_S = 60.0
"""Reference, goldens and compiled baselines of one problem on an H200, until one was measured."""
FAST_GUESS_S = 8.0
FINAL_GUESS_S = 30.0
SPARE = 1.5
"""What is started must fit in so many times its usual duration."""
TRY_S = 10.0
"""What was not seen yet is tried where so much time is left: it costs nothing but that time."""
LOOK_S = 1.0
"""How often an idle GPU looks whether it can help."""
MAX_FAILED_LOADS = 2
"""GPUs that may fail to load a problem before it is given up, where there are so many."""


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """One problem and what is left of it to be handed out."""

    problem: Problem
    waiting: deque[Item]
    is_load_only: bool
    judges: int = 0
    """GPUs that load it or have it loaded."""
    loaded: int = 0
    """GPUs that have it loaded."""
    failed_loads: int = 0
    is_closed: bool = False
    """Nothing more is handed out: it is done, broken, or there is no time."""


class Usual:
    """The mean duration of something, or a guess before it was seen."""

    def __init__(self, guess_s: float) -> None:
        self._guess_s = guess_s
        self._sum_s = 0.0
        self._count = 0

    def add(self, seconds: float) -> None:
        """Take in one duration."""
        self._sum_s += seconds
        self._count += 1

    @property
    def s(self) -> float:
        """Seconds."""
        return self._sum_s / self._count if self._count else self._guess_s

    @property
    def needed_s(self) -> float:
        """Seconds that must be left to start it."""
        return SPARE * self.s if self._count else TRY_S


@dataclass(slots=True)
class Durations:
    """What loading and judging usually take on this machine."""

    load: Usual = field(default_factory=lambda: Usual(LOAD_GUESS_S))
    fast: Usual = field(default_factory=lambda: Usual(FAST_GUESS_S))
    final: Usual = field(default_factory=lambda: Usual(FINAL_GUESS_S))

    def of(self, tier: Tier | None) -> Usual:
        """Return that of a tier; None is the load."""
        if tier is None:
            return self.load
        return self.fast if tier is Tier.FAST else self.final


class Plan:
    """Hands out groups, and items of them."""

    def __init__(self, bundle: Bundle, remaining_s: Callable[[], float], *, seats: int) -> None:
        """Sort the work: most items first, fast before final.

        Args:
            bundle: what is to be judged.
            remaining_s: seconds until nothing may run any more.
            seats: how many GPUs ask for work.
        """
        self._max_failed_loads = min(MAX_FAILED_LOADS, seats)
        self._remaining_s = remaining_s
        self._changed = threading.Condition()
        self._durations = Durations()
        self._groups = _groups_of(bundle)
        self.audits = bundle.audits
        self._is_stopped = False

    def next_group(self, failed: Sequence[Group] = ()) -> Group | None:
        """Return a group to load and serve; waits while one may still need help.

        None when nothing is left, or nothing fits into the time that is left.

        Args:
            failed: what the GPU that asks could not load: that is for the others.
        """
        with self._changed:
            groups = [group for group in self._groups if group not in failed]
            while not self._is_stopped:
                group = self._free_group(groups) or self._group_to_join(groups)
                if group is not None:
                    group.judges += 1
                    return group
                if not any(g.judges for g in groups):
                    return None
                self._changed.wait(LOOK_S)
            return None

    def next_candidates(self, group: Group, count: int) -> list[Candidate]:
        """Return the candidates of up to `count` items that come first; claims none."""
        with self._changed:
            items = list(group.waiting)[:count]
        return [item.candidate for item in items if item.candidate is not None]

    def claim(self, group: Group, count: int) -> list[Item]:
        """Return up to `count` items, fewer when several GPUs share what is left."""
        with self._changed:
            if group.is_closed or self._is_stopped:
                return []
            share = math.ceil(len(group.waiting) / (2 * max(1, group.judges)))
            taken = min(count, len(group.waiting), share if group.judges > 1 else count)
            return [group.waiting.popleft() for _ in range(taken)]

    def put_back(self, group: Group, items: Sequence[Item]) -> None:
        """Return items that were claimed and not judged."""
        with self._changed:
            group.waiting.extendleft(reversed(items))

    def leave(self, group: Group, *, is_loaded: bool) -> None:
        """One GPU less works at the group; what is left of it may go to another."""
        with self._changed:
            group.judges -= 1
            group.loaded -= is_loaded
            group.is_closed = group.is_closed or (is_loaded and not group.waiting)
            self._changed.notify_all()

    def loaded(self, group: Group) -> None:
        """One GPU has it loaded: it can be done, whatever others said of it."""
        with self._changed:
            group.loaded += 1
            group.is_closed = False

    def load_failed(self, group: Group) -> None:
        """One GPU could not load it; after some of these nobody tries again."""
        with self._changed:
            group.failed_loads += 1
            is_hopeless = group.failed_loads >= self._max_failed_loads
            group.is_closed = group.is_closed or (is_hopeless and not group.loaded)

    def close(self, group: Group) -> bool:
        """Hand out nothing more of a group whose problem is broken; return whether it is.

        It is not where another GPU has it loaded.
        """
        with self._changed:
            group.is_closed = group.is_closed or not group.loaded
            return group.is_closed

    def stop(self) -> None:
        """Hand out nothing more at all."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def took(self, tier: Tier | None, seconds: float) -> None:
        """Take in how long one load (None) or verification took."""
        with self._changed:
            self._durations.of(tier).add(seconds)

    def fits(self, tier: Tier | None) -> bool:
        """Whether a load (None) or a verification may still be started."""
        return self._remaining_s() >= self._durations.of(tier).needed_s

    def _free_group(self, groups: Sequence[Group]) -> Group | None:
        free = (g for g in groups if not g.is_closed and g.judges == 0)
        return next((g for g in free if self._fits_with_load(g)), None)

    def _fits_with_load(self, group: Group) -> bool:
        durations = self._durations
        first_s = 0.0 if group.is_load_only else durations.of(group.waiting[0].tier).needed_s
        return self._remaining_s() >= durations.load.needed_s + first_s

    def _group_to_join(self, groups: Sequence[Group]) -> Group | None:
        best, best_s = None, 0.0
        for group in groups:
            if group.is_closed or len(group.waiting) < 2 or group.judges == 0:
                continue
            work_s = sum(self._durations.of(item.tier).s for item in group.waiting)
            left_s = work_s / group.judges  # until those at work are done without help
            if left_s > best_s and left_s > self._durations.load.s + self._durations.fast.s:
                best, best_s = group, left_s
        return best if best is not None and self._fits_with_load(best) else None


def _groups_of(bundle: Bundle) -> list[Group]:
    groups = []
    for problem_id, problem in bundle.problems.items():
        unique = {item.key: item for item in bundle.items if item.problem_id == problem_id}
        items = [item for item in unique.values() if item.candidate is not None]
        if not unique:
            continue
        items.sort(key=lambda item: item.tier is Tier.FINAL)
        groups.append(
            Group(
                problem=problem,
                waiting=deque(items),
                is_load_only=not items,
            )
        )
    return sorted(groups, key=lambda group: -len(group.waiting))
