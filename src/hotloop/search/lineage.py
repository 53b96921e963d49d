"""Which attempt came of which, and how each ended: the bookkeeping of a strategy for models.

Hands out ids, refuses ids that it never gave out, and knows chains: a draft, a starting kernel or a
regenerated design, with all that was made of it. It decides nothing. A strategy that decides from
this record alone goes on after `restore` as if it had been told live.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hotloop.core.attempt import FREE_ACTIONS, Action, Attempt, Outcome, Proposal
from hotloop.core.space import Scalar, Space
from hotloop.core.verdict import Stage, Status, Verdict

ROOTS = frozenset({Action.START, Action.DRAFT, Action.REGENERATE})
"""Actions that begin a chain."""

KNOWN = ROOTS | {Action.SWEEP, Action.REPAIR, Action.OPTIMISE}

SWEEP_IDS = 100_001
"""Sweeps are numbered from here, all other attempts from 1: how many sweeps find room between two
calls depends on the machine, and a recording finds a call by its number."""

NOT_MENDABLE = frozenset({Status.INCONCLUSIVE, Status.COMPILED_ONLY})
"""Neither passed nor the kernel's fault: there is nothing to repair."""

NO_TRIES = frozenset({"call_failed", "refused", "not_judged"})
"""Kinds of evidence of a call that brought no kernel for reasons of its own, or one that no machine
could judge: it says nothing about the design, so it is neither repaired nor counted. The purpose
may get another call."""

_WITHOUT_TRY = frozenset({Status.NO_CODE, Status.INCONCLUSIVE})

LAPSES = 3
"""Calls for one purpose that may end so before it is left: some prompts are refused each time."""


@dataclass(slots=True, kw_only=True, eq=False)
class Station:
    """One attempt as a strategy sees it. The fields from `order` on are set by its verdict."""

    id: int
    action: Action
    parent: Station | None
    point: Mapping[str, Scalar] = field(default_factory=dict)
    order: int | None = None
    """Place among the concluded attempts, from 0; None while it is open."""
    status: Status | None = None
    stage: Stage | None = None
    evidence_kind: str = ""
    """What went wrong, as the verdict names it; empty where nothing did."""
    objective: float = math.inf
    """To be made small; infinite unless it passed and could be rated."""
    source_id: str = ""
    """The candidate: equal for equal kernels."""
    declared: Space | None = None
    mends: int = 0
    """Repairs of it that were proposed, without those whose calls failed by themselves."""
    lapses: int = 0
    """Repairs of it whose calls failed by themselves."""

    @property
    def is_call(self) -> bool:
        """Whether it costs a model call."""
        return self.action not in FREE_ACTIONS

    @property
    def is_open(self) -> bool:
        """Whether its verdict is awaited."""
        return self.order is None

    @property
    def passed(self) -> bool:
        """Whether it is known to be correct."""
        return self.status is Status.PASSED

    @property
    def is_no_try(self) -> bool:
        """Whether its call failed by itself or nobody could judge its kernel: none was tried."""
        return self.status in _WITHOUT_TRY and self.evidence_kind in NO_TRIES

    @property
    def is_mended(self) -> bool:
        """Whether a repair of it is under way or was tried."""
        return self.mends > 0

    @property
    def is_mendable(self) -> bool:
        """Whether it failed by its own fault, and calls to repair it get an answer."""
        failed = not self.is_open and not self.passed and self.status not in NOT_MENDABLE
        return failed and not self.is_no_try and self.lapses < LAPSES

    @property
    def root(self) -> Station:
        """The first attempt of its chain."""
        station = self
        while station.action not in ROOTS and station.parent is not None:
            station = station.parent
        return station

    @property
    def author(self) -> Station:
        """The attempt that wrote its source: a sweep only changes values."""
        station = self
        while station.action is Action.SWEEP and station.parent is not None:
            station = station.parent
        return station

    @property
    def repairs(self) -> int:
        """How many repairs in a row led to it, itself included."""
        count, station = 0, self
        while station.action is Action.REPAIR and station.parent is not None:
            count, station = count + 1, station.parent
        return count

    @property
    def tried_on(self) -> Station | None:
        """The author of the correct kernel that it, or what it repairs, was to make faster."""
        station = self
        while station.action is Action.REPAIR and station.parent is not None:
            station = station.parent
        if station.action is not Action.OPTIMISE or station.parent is None:
            return None
        return station.parent.author


class Lineage:
    """All attempts of a run, open and concluded."""

    def __init__(self) -> None:
        self._stations: dict[int, Station] = {}
        self._foreign: set[int] = set()
        self._concluded: list[Station] = []
        self._next_id = 1
        self._next_sweep_id = SWEEP_IDS

    @property
    def stations(self) -> list[Station]:
        """All attempts in order of id."""
        return sorted(self._stations.values(), key=lambda station: station.id)

    @property
    def concluded(self) -> list[Station]:
        """The attempts with a verdict, in the order in which they got it."""
        return list(self._concluded)

    @property
    def open_calls(self) -> int:
        """How many attempts that cost a call await their verdict."""
        return sum(station.is_open and station.is_call for station in self._stations.values())

    @property
    def start(self) -> Station | None:
        """The kernel that the user began with, once it was proposed."""
        starts = (s for s in self._stations.values() if s.action is Action.START)
        return next(starts, None)

    def propose(
        self,
        action: Action,
        parent: Station | None = None,
        point: Mapping[str, Scalar] | None = None,
    ) -> Proposal:
        """Open an attempt that builds on `parent`."""
        station_id = self._new_id(action)
        station = Station(id=station_id, action=action, parent=parent, point=dict(point or {}))
        self._add(station)
        return Proposal(
            id=station.id,
            action=action,
            point=station.point,
            parents=() if parent is None else (parent.id,),
        )

    def reserve(self) -> int:
        """Open an attempt of which only the id is kept; return it."""
        reserved = self._new_id(Action.SCHEDULE)
        self._foreign.add(reserved)
        return reserved

    def _new_id(self, action: Action) -> int:
        if action is Action.SWEEP:
            self._next_sweep_id += 1
            return self._next_sweep_id - 1
        self._next_id += 1
        return self._next_id - 1

    def tell(self, outcome: Outcome) -> Station | None:
        """Conclude an attempt; return it, or None when only its id was kept.

        Raises:
            ValueError: no such attempt is open.
        """
        station = self._stations.get(outcome.proposal_id)
        if station is not None and station.is_open:
            self._conclude(station, outcome.verdict, outcome.objective, outcome.declared)
            return station
        if outcome.proposal_id not in self._foreign:
            still_open = [s.id for s in self._stations.values() if s.is_open]
            listed = sorted([*still_open, *self._foreign])
            raise ValueError(
                f"proposal {outcome.proposal_id} is not open; open: {listed or 'none'}"
            )
        self._foreign.discard(outcome.proposal_id)
        return None

    def restore(self, attempts: Iterable[Attempt]) -> None:
        """Take over an earlier session, in the order in which its attempts were concluded.

        Attempts of unknown actions, or that build on something unknown, keep their ids only.

        Raises:
            ValueError: proposals were made before.
        """
        if (self._next_id, self._next_sweep_id) != (1, SWEEP_IDS):
            raise ValueError("expected restore() before the first ask(), got it after")
        known = sorted(attempts, key=lambda attempt: attempt.id)
        for attempt in known:
            if attempt.id < SWEEP_IDS:
                self._next_id = max(self._next_id, attempt.id + 1)
            else:
                self._next_sweep_id = max(self._next_sweep_id, attempt.id + 1)
        self._take_over(known)
        self._foreign |= {a.id for a in known if a.id not in self._stations and a.verdict is None}
        for attempt in sorted(known, key=_when_concluded):
            station = self._stations.get(attempt.id)
            if station is not None and attempt.verdict is not None:
                self._conclude(station, attempt.verdict, attempt.objective, attempt.declared)

    def _take_over(self, attempts: Iterable[Attempt]) -> None:
        """Add what is known, parents before children: a sweep's id is over that of its children."""
        left = [attempt for attempt in attempts if attempt.action in KNOWN]
        while left:
            later = [attempt for attempt in left if not self._take_over_one(attempt)]
            if len(later) == len(left):
                return
            left = later

    def _take_over_one(self, attempt: Attempt) -> bool:
        action = Action(attempt.action)
        parent = self._stations.get(attempt.parents[0]) if attempt.parents else None
        if parent is None and (attempt.parents or action not in ROOTS):
            return False
        self._add(Station(id=attempt.id, action=action, parent=parent, point=dict(attempt.point)))
        return True

    def _add(self, station: Station) -> None:
        self._stations[station.id] = station
        if station.action is Action.REPAIR and station.parent is not None:
            station.parent.mends += 1

    def _conclude(
        self, station: Station, verdict: Verdict, objective: float | None, declared: Space | None
    ) -> None:
        station.order = len(self._concluded)
        station.status, station.stage = verdict.status, verdict.stage
        station.evidence_kind = "" if verdict.evidence is None else verdict.evidence.kind
        station.source_id = verdict.candidate_id
        station.declared = declared
        if verdict.passed and objective is not None:
            station.objective = objective
        if station.is_no_try and station.action is Action.REPAIR and station.parent is not None:
            station.parent.mends -= 1
            station.parent.lapses += 1
        self._concluded.append(station)


def _when_concluded(attempt: Attempt) -> tuple[float, int]:
    return (attempt.finished_s or 0.0, attempt.id)
