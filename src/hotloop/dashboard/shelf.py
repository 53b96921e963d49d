"""What was read of each folder, kept until its journal changes. Safe to use from many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from hotloop.dashboard.tail import signature
from hotloop.dashboard.trouble import PageTrouble, readable

T = TypeVar("T")
MOST = 400
"""Folders that are kept; the one that was not asked for longest goes first."""


@dataclass(slots=True)
class _Kept(Generic[T]):
    seen: Hashable
    value: T | PageTrouble


class Shelf(Generic[T]):
    """Reads folders, one at a time, and keeps what it read."""

    def __init__(
        self,
        read: Callable[[Path, T | None], T],
        sign: Callable[[Path], Hashable] = signature,
    ) -> None:
        """Take what reads a folder, given what was read before, and what says that it changed."""
        self._read = read
        self._sign = sign
        self._kept: OrderedDict[Path, _Kept[T]] = OrderedDict()
        self._mutex = threading.Lock()
        self._locks: dict[Path, threading.Lock] = {}
        self._waiting: set[Path] = set()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dashboard-read")

    def get(self, folder: Path) -> T:
        """Return what a folder holds now.

        Raises:
            PageTrouble: it cannot be read.
        """
        with self._mutex:
            lock = self._locks.setdefault(folder, threading.Lock())
        with lock:
            found = self._sign(folder)  # before the reading, so that nothing is missed
            kept = self._look(folder)
            if kept is None or kept.seen != found:
                kept = _Kept(found, self._try(folder, kept))
                self._keep(folder, kept)
        if isinstance(kept.value, PageTrouble):
            raise kept.value
        return kept.value

    def peek(self, folder: Path) -> T | PageTrouble | None:
        """Return what was read of a folder and is still so; None where that is being found out."""
        kept = self._look(folder)
        if kept is not None and kept.seen == self._sign(folder):
            return kept.value
        with self._mutex:
            if folder in self._waiting:
                return None
            self._waiting.add(folder)
        self._pool.submit(self._fetch, folder)
        return None

    def has_read(self, folder: Path) -> bool:
        """Whether what is kept of a folder is how it is now."""
        kept = self._look(folder)
        return kept is not None and kept.seen == self._sign(folder)

    def close(self) -> None:
        """Give up what was to be read."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, folder: Path) -> None:
        try:
            self.get(folder)
        except PageTrouble:
            pass  # kept: whoever looks next sees it
        finally:
            with self._mutex:
                self._waiting.discard(folder)

    def _try(self, folder: Path, kept: _Kept[T] | None) -> T | PageTrouble:
        former = None if kept is None or isinstance(kept.value, PageTrouble) else kept.value
        try:
            with readable(folder):
                return self._read(folder, former)
        except PageTrouble as trouble:
            return trouble
        except Exception as exc:  # noqa: BLE001  kept like any other: nobody waits for it in vain
            told = " ".join(f"{type(exc).__name__}: {exc}".split())[:300]
            return PageTrouble(500, "Cannot be shown", f"{folder} cannot be shown ({told})")

    def _look(self, folder: Path) -> _Kept[T] | None:
        with self._mutex:
            if folder in self._kept:
                self._kept.move_to_end(folder)
            return self._kept.get(folder)

    def _keep(self, folder: Path, kept: _Kept[T]) -> None:
        with self._mutex:
            self._kept[folder] = kept
            while len(self._kept) > MOST:
                gone, _ = self._kept.popitem(last=False)
                self._locks.pop(gone, None)
