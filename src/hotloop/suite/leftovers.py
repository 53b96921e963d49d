"""Leftovers: hands out the time that problems left over, one slice at a time.

What is granted is written down before it is spent, so that the same command goes on with the same
limits after a kill. Which problem gets it is `sharing.py`'s to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from hotloop.suite.folder import Granted, Suite
from hotloop.suite.planning import Job, with_wall
from hotloop.suite.sharing import MIN_SLICE_FRAC, Claim, claim_of, next_grant
from hotloop.suite.standing import Standing, read_standing

POLL_S = 0.2
"""How often who waits for a grant looks whether the suite was stopped."""


class Leftovers:
    """The jobs after all had their share; thread-safe."""

    def __init__(
        self,
        suite: Suite,
        jobs: Sequence[Job],
        standings: Sequence[Standing],
        *,
        is_over: Callable[[], bool],
    ) -> None:
        """Grant nothing yet.

        Args:
            suite: where grants are written down.
            jobs: those that can be run, with their share as their limit; at least one.
            standings: of all problems of the suite, which nobody runs now.
            is_over: whether nothing more is to be begun.
        """
        share_s = jobs[0].plan.spec.budget.wall_s
        assert share_s is not None, "a run's settings always have one"
        self._suite, self._share_s, self._is_over = suite, share_s, is_over
        self._jobs = {job.member.name: job for job in jobs}
        self._changed = threading.Condition()
        self._claims = {row.member.name: self._claim(row) for row in standings}
        self._running: dict[str, Claim] = {}
        """What each had before the slice that it spends now."""

    def take(self) -> Job | None:
        """Return the next job with its larger limit, once there is one; None when none will come.

        Raises:
            StoreError: the grant cannot be written down.
        """
        with self._changed:
            while not self._is_over():
                grant = next_grant(list(self._claims.values()), self._share_s)
                if grant is not None and grant.name in self._jobs:
                    return self._begin(grant.name, grant.limit_s)
                if not self._running:
                    return None
                self._changed.wait(POLL_S)
            return None

    def done(self, job: Job) -> None:
        """Take in what came of a slice."""
        name = job.member.name
        trouble = self._suite.record.troubles.get(name)
        standing = read_standing(self._suite.run_folder(job.member), job.member, trouble)
        with self._changed:
            before, claim = self._running.pop(name), self._claim(standing)
            used_s = claim.spent_s - before.spent_s
            if used_s < MIN_SLICE_FRAC * (claim.limit_s - before.limit_s):
                claim = replace(claim, gain=0.0)  # it cannot use time, and would be asked for ever
            self._claims[name] = claim
            self._changed.notify_all()

    def _begin(self, name: str, limit_s: float) -> Job:
        slices = self._granted(name).slices + 1
        self._suite.grant(name, Granted(wall_s=limit_s - self._share_s, slices=slices))
        self._running[name] = self._claims[name]
        self._claims[name] = replace(self._claims[name], limit_s=limit_s, is_over=False, gain=0.0)
        return with_wall(self._jobs[name], limit_s)

    def _claim(self, standing: Standing) -> Claim:
        granted = self._granted(standing.member.name)
        return claim_of(
            standing, share_s=self._share_s, granted_s=granted.wall_s, slices=granted.slices
        )

    def _granted(self, name: str) -> Granted:
        return self._suite.record.grants.get(name, Granted(wall_s=0.0, slices=0))
