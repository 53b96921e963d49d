"""A judge that checks correctness alone: the product's own, without its clocks.

A mutation score says nothing of speed, and a GPU is rented by the minute: baselines are not
compiled or timed when a problem is loaded, and a kernel that is correct is not timed. All checks
before that are the product's, unchanged. The checks of timed calls' outputs are left out with the
timing, so what this judge kills the product's kills too.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")  # many judges share the cores
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

from typing import Any

from hotloop.core.verdict import Tier
from hotloop.worker import judge
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.session import Session
from hotloop.worker.verification import Verification


class UntimedSession(Session):
    """A session without baselines."""

    def _prepare_timing(self) -> None:
        pass


class UntimedVerification(Verification):
    """The ladder without its last stage."""

    def _time(self, evaluation: Evaluation, tier: Tier) -> dict[str, Any]:
        del evaluation, tier
        return {}


def main() -> None:
    """Serve as `hotloop.worker.judge` does."""
    judge.Session = UntimedSession  # type: ignore[attr-defined]
    judge.Verification = UntimedVerification  # type: ignore[attr-defined]
    judge.main()


if __name__ == "__main__":
    main()
