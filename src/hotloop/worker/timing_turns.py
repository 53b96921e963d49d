"""Timing turns: judges that share a GPU work beside each other, and each is alone when it times.

    beside   the judge uses the GPU for goldens and checks; any number may
    alone    it times something; no other of these judges uses the GPU
    away     it does not use the GPU: it waits for a compiler, or has nothing to do

Both are kernel locks (flock(2)) on files of one folder, which end with their process however that
ends. Who times goes first: it holds `wanted` shared from the moment it asks, and who wants to come
beside has to get `wanted` whole for a moment. So those that are ready to time do it one after
another as soon as the last one beside is done. One that stays alone keeps all others waiting.

Not covered: programs that know nothing of the folder (`gpu_watch.py` tells of them), and what a
candidate's process does on its own between two calls.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path


class Where(Enum):
    """What a judge may do on the GPU."""

    AWAY = auto()
    BESIDE = auto()
    ALONE = auto()


class NoTurns:
    """Those of a judge that has its GPU to itself: nothing waits."""

    judges = 1
    """How many share the GPU."""

    @property
    def shares(self) -> bool:
        """Whether there are others."""
        return self.judges > 1

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Use the GPU in the block."""
        yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Time something in the block."""
        yield

    @contextmanager
    def alone_later(self) -> Iterator[Callable[[], None]]:
        """Yield what begins to be alone, until the block ends."""
        yield lambda: None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Leave the GPU to others in the block."""
        yield

    def stay_alone(self) -> None:
        """Let nobody in before `release`."""

    def release(self) -> None:
        """Leave the GPU after `stay_alone`."""

    def close(self) -> None:
        """Leave for good. Idempotent."""


class TimingTurns(NoTurns):
    """One judge's place among those that share its GPU. For one thread."""

    def __init__(self, folder: Path, gpu: str, *, judges: int, settle: Callable[[], None]) -> None:
        """Join; the GPU is not waited for yet.

        Args:
            folder: that all judges of this GPU were given; only their user may write there.
            gpu: the GPU's UUID.
            judges: how many they are.
            settle: returns when this process has no work left on the GPU.

        Raises:
            OSError: the folder is not there, or not ours.
        """
        self.judges = judges
        self._settle = settle
        self._gpu = _open(folder / f"{gpu}.gpu")
        self._wanted = _open(folder / f"{gpu}.wanted")
        self._where = Where.AWAY
        self._stays = False

    @property
    def where(self) -> Where:
        """What this judge may do now."""
        return self._where

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Use the GPU in the block; waits while somebody times. Blocks may be nested."""
        before = self._where
        if before is Where.AWAY:
            self._become(Where.BESIDE)
        try:
            yield
        finally:
            self._go_back(before)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be alone on the GPU in the block; waits until all others have left it."""
        before = self._where
        self._become(Where.ALONE)
        try:
            yield
        finally:
            self._go_back(before)

    @contextmanager
    def alone_later(self) -> Iterator[Callable[[], None]]:
        """Yield what begins to be alone, until the block ends; it may be called again."""
        before = self._where
        try:
            yield lambda: self._become(Where.ALONE)
        finally:
            self._go_back(before)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Leave the GPU to others in the block; who stays alone, stays."""
        before = self._where
        self._go_back(Where.AWAY)
        try:
            yield
        finally:
            self._become(before)

    def stay_alone(self) -> None:
        """Be alone from now on, also between blocks, until `release`: others' memory may not do."""
        self._become(Where.ALONE)
        self._stays = True

    def release(self) -> None:
        """Leave the GPU after `stay_alone`; not within a block."""
        self._stays = False
        self._become(Where.AWAY)

    def close(self) -> None:
        """Leave for good. Idempotent."""
        for fd in (self._gpu, self._wanted):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._where = Where.AWAY

    def _go_back(self, before: Where) -> None:
        if not self._stays:
            self._become(before)

    def _become(self, wanted: Where) -> None:
        """Leave, and come back as what is wanted; nothing happens where that is so already.

        Nobody waits while it holds the GPU: two that did would wait for each other.
        """
        if wanted is self._where:
            return
        if self._where is not Where.AWAY:
            self._settle()
            self._where = Where.AWAY
            fcntl.flock(self._gpu, fcntl.LOCK_UN)
            fcntl.flock(self._wanted, fcntl.LOCK_UN)
        if wanted is Where.ALONE:
            fcntl.flock(self._wanted, fcntl.LOCK_SH)
            fcntl.flock(self._gpu, fcntl.LOCK_EX)
        elif wanted is Where.BESIDE:
            fcntl.flock(self._wanted, fcntl.LOCK_EX)
            fcntl.flock(self._gpu, fcntl.LOCK_SH)
            fcntl.flock(self._wanted, fcntl.LOCK_UN)
        self._where = wanted


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
