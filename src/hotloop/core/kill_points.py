"""Named points at which a process can be made to die, so that tests can prove that nothing is lost.

    HOTLOOP_CRASH_AT=after-response:2 hotloop optimize ...

dies by SIGKILL the second time it comes to `after-response`. Without the variable a point costs
one comparison. A kill leaves no handler, no `finally` and no flush: only what is on disk counts.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal, get_args

VARIABLE = "HOTLOOP_CRASH_AT"

KillPoint = Literal[
    "before-lock",
    "after-lock",
    "before-migration",
    "inside-migration",
    "after-migration",
    "before-run",
    "after-run",
    "before-prompt",
    "before-intent",
    "after-intent",
    "before-response",
    "after-response",
    "prompt-withdrawn",
    "successor-put",
    "before-parse",
    "after-parse",
    "before-cost",
    "after-cost",
    "before-blob-rename",
    "after-blob-rename",
    "before-rows",
    "inside-rows",
    "after-rows",
    "before-propose",
    "after-propose",
    "before-lease",
    "after-lease",
    "before-verify",
    "after-verify",
    "before-result",
    "after-result",
    "before-verdict",
    "after-verdict",
    "after-score",
    "before-final",
    "after-final",
    "before-spend",
    "after-spend",
    "before-snapshot",
    "snapshot-written",
    "after-snapshot",
    "before-stopped",
    "after-stopped",
    "before-best",
    "best-written",
    "best-moved-away",
    "after-best",
]
"""`rows` is every transaction of the journal: before it begins, before and after its commit."""

NAMES: tuple[str, ...] = get_args(KillPoint)

_act: Callable[[str], None] | None = None


def reach(name: KillPoint) -> None:
    """Say that the process has come to a point; the name is written out where it is called."""
    if _act is not None:
        _act(name)


def act_with(act: Callable[[str], None] | None) -> None:
    """Call `act` with the name of every point from now on; None ends that."""
    global _act  # noqa: PLW0603  one process, one fate
    _act = act


def at(wanted: str, act: Callable[[], None]) -> Callable[[str], None]:
    """Return what calls `act` once, the Nth time that the point of `NAME:N` is reached.

    Raises:
        ValueError: it is not a name of `NAMES`, a colon and a number from 1.
    """
    name, _, number = wanted.partition(":")
    if name not in NAMES or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ValueError(
            f"{VARIABLE}: expected NAME:N with N from 1 and NAME one of {', '.join(NAMES)}; "
            f"got {wanted!r}"
        )
    reached: Counter[str] = Counter()
    mutex = threading.Lock()

    def count(point: str) -> None:
        if point == name:
            with mutex:
                reached[point] += 1
                is_now = reached[point] == int(number)
            if is_now:
                act()

    return count


def die() -> None:
    """End this process as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


if _wanted := os.environ.get(VARIABLE):
    act_with(at(_wanted, die))
