"""A search over fakes in a real run folder that kills itself at a named point.

    python crash_child.py FOLDER [POINT:N]

dies by SIGKILL the Nth time it comes to POINT. What it verified goes to FOLDER.log, a line each,
written before the verification starts.
"""

import os
import signal
import sys
from pathlib import Path

from hotloop.core.attempt import Budget
from hotloop.core.space import Dimension, Space
from hotloop.engine import Parts, run_search
from hotloop.search.random_search import RandomStrategy
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import FakeGenerator, FakeVerifier, make_problem, make_spec

SPACE = Space(
    dimensions=(
        Dimension(name="BLOCK", choices=(16, 32, 64, 128), ordered=True),
        Dimension(name="num_warps", choices=(1, 4, 8), ordered=True),
        Dimension(name="split", choices=(False,)),
    )
)


class Fate:
    """Counts how often each point was reached, and kills the process at the chosen one."""

    def __init__(self, wanted: str) -> None:
        self.point, _, number = wanted.partition(":")
        self.left = int(number or 0)

    def reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DoomedStore(SqliteStore):
    """The real store with points before and after each write."""

    fate: Fate


def doom(name: str) -> None:
    real = getattr(SqliteStore, name)

    def call(self, *args):
        detail = f"{name}-{args[0]}" if name == "note" else name
        self.fate.reach(f"before-{detail}")
        value = real(self, *args)
        self.fate.reach(f"after-{detail}")
        return value

    setattr(DoomedStore, name, call)


def wrap(module: object, name: str, fate: Fate, point: str) -> None:
    real = getattr(module, name)

    def call(*args, **kwargs):
        fate.reach(f"before-{point}")
        value = real(*args, **kwargs)
        fate.reach(f"after-{point}")
        return value

    setattr(module, name, call)


def main() -> None:
    folder = Path(sys.argv[1])
    fate = Fate(sys.argv[2] if len(sys.argv) > 2 else "")
    for name in ("begin", "propose", "conclude", "note", "spend"):
        doom(name)
    wrap(os, "replace", fate, "rename")
    wrap(os, "fsync", fate, "fsync")
    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def on_verify(candidate, tier):
        os.write(log, f"{tier.value} {candidate.id}\n".encode())
        fate.reach(f"verify-{tier.value}")

    verifier = FakeVerifier(on_verify=on_verify, on_build=lambda candidate: fate.reach("build"))
    problem = make_problem()
    store = DoomedStore(folder)
    store.fate = fate
    parts = Parts(
        generator=FakeGenerator(SPACE), strategy=RandomStrategy, verifier=verifier, store=store
    )
    result = run_search(
        problem, parts, spec=make_spec(problem, budget=Budget(wall_s=1e6)), clock=verifier.clock
    )
    store.close()
    assert result.passed


if __name__ == "__main__":
    main()
