"""One emulated thread block: partitions that take turns, and the copy engine.

Partitions are threads of which one runs at a time; at every operation that another one could
notice, a seeded draw decides who goes on, and copies complete in any order. What a GPU would get
wrong only sometimes is an error here always: who may touch shared memory is decided by what was
ordered through barriers, not by what happened to come first.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gluon_memory import Barrier, Clock, Deadlock, KernelFault, Slot, merge


@dataclass
class Partition:
    """A group of warps with a program of its own."""

    name: str
    clock: Clock = field(default_factory=dict)
    products: deque[Any] = field(default_factory=deque)
    stores: list[tuple[Slot, Callable[[], None]]] = field(default_factory=list)
    unfenced: list[Slot] = field(default_factory=list)
    waits_for: str | None = None
    is_ready: Callable[[], bool] = lambda: True
    is_done: bool = False


class Block:
    """One program of the grid."""

    def __init__(self, program: int, programs: int, seed: int) -> None:
        self.program, self.programs = program, programs
        self._random = random.Random(seed)
        self.partitions = [Partition("default")]
        self._running = self.partitions[0]
        self._copies: list[Callable[[], None]] = []
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    # --- who runs ---

    @property
    def me(self) -> Partition:
        """The partition that runs."""
        return self._running

    def specialize(self, parts: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        """Run partitions side by side until all are done."""
        start = dict(self.me.clock)
        self.partitions = [
            Partition(f"{fn.__name__}[{i}]", dict(start)) for i, (fn, _) in enumerate(parts)
        ]
        threads = [
            threading.Thread(target=self._run, args=(me, fn, args), daemon=True)
            for me, (fn, args) in zip(self.partitions, parts, strict=True)
        ]
        self._running = self.partitions[0]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, me: Partition, fn: Any, args: Sequence[Any]) -> None:
        _LOCAL.block = self
        try:
            self._await_turn(me)
            fn(*args)
            if me.products or me.stores:
                raise KernelFault(f"{me.name} ends with products or copies that it did not await")
        except BaseException as error:  # noqa: BLE001  raised again where the kernel was launched
            self._error = self._error or error
        finally:
            me.is_done = True
            self._pass_on()

    def _await_turn(self, me: Partition) -> None:
        with self._changed:
            while self._running is not me and self._error is None:
                self._changed.wait()
        if self._error is not None:
            raise KernelFault("another partition failed")

    def _pass_on(self) -> None:
        with self._changed:
            self._running = self._next() or self._running
            self._changed.notify_all()

    def _next(self) -> Partition | None:
        """Choose who runs next, after completing some copies."""
        while True:
            while self._copies and self._random.random() < 0.4:
                self._copy_one()
            waiting = [p for p in self.partitions if not p.is_done]
            ready = [p for p in waiting if p.is_ready()]
            if ready or not waiting or self._error is not None:
                return self._random.choice(ready) if ready else None
            if not self._copies:
                where = "; ".join(f"{p.name} waits for {p.waits_for}" for p in waiting)
                self._error = Deadlock(f"all partitions wait: {where}")
                return None
            self._copy_one()

    def _copy_one(self) -> None:
        self._copies.pop(self._random.randrange(len(self._copies)))()

    def turn(self) -> None:
        """Let another partition go on, perhaps."""
        if len(self.partitions) > 1:
            me = self.me
            self._pass_on()
            self._await_turn(me)

    def wait(self, barrier: Barrier, parity: int) -> None:
        """Wait until the phase of this parity is over."""
        me = self.me
        me.waits_for = f"{barrier.name} (phase {parity})"
        me.is_ready = lambda: barrier.is_over(parity)
        if len(self.partitions) > 1:
            self.turn()
        elif not barrier.is_over(parity):
            raise Deadlock(f"{me.name} waits for {me.waits_for}")
        me.waits_for, me.is_ready = None, lambda: True
        merge(me.clock, barrier.passed)

    # --- what is ordered ---

    def now(self) -> Clock:
        """Advance the running partition's clock and return it."""
        me = self.me
        me.clock[me.name] = me.clock.get(me.name, 0) + 1
        return me.clock

    def check_read(self, slot: Slot, what: str) -> None:
        """Fail unless the last write to `slot` is known to be over."""
        if slot.copying:
            raise KernelFault(f"{what} reads {slot.name} while {slot.copying} is under way")
        if slot.written is None:
            raise KernelFault(f"{what} reads {slot.name}, which nobody wrote")
        writer, time = slot.written
        if self.me.clock.get(writer, 0) < time:
            raise KernelFault(f"{what} reads {slot.name} without having awaited what wrote it")

    def check_write(self, slot: Slot, what: str) -> None:
        """Fail unless all readers and writers of `slot` are known to be done."""
        if slot.copying:
            raise KernelFault(f"{what} writes {slot.name} while {slot.copying} is under way")
        users = dict(slot.reads)
        if slot.written:
            merge(users, dict([slot.written]))
        for user, time in users.items():
            if self.me.clock.get(user, 0) < time:
                raise KernelFault(f"{what} writes {slot.name} before {user} is known to be done")

    def note_read(self, slot: Slot) -> None:
        """The running partition has read `slot`."""
        slot.reads[self.me.name] = self.now()[self.me.name]

    def note_write(self, slot: Slot) -> None:
        """The running partition has written `slot`."""
        slot.reads.clear()
        slot.written = (self.me.name, self.now()[self.me.name])

    # --- the copy engine ---

    def start_copy(self, copy: Callable[[], None]) -> None:
        """Hand a copy to the engine."""
        self._copies.append(copy)

    def finish_stores(self) -> None:
        """Wait for the running partition's copies out of shared memory."""
        for slot, store in self.me.stores:
            if store in self._copies:
                self._copies.remove(store)
                store()
            self.note_read(slot)
        self.me.stores.clear()


_LOCAL = threading.local()


def current() -> Block:
    """Return the program that the calling thread is part of."""
    block: Block = _LOCAL.block
    return block


def enter(block: Block) -> None:
    """Make `block` the program of the calling thread."""
    _LOCAL.block = block
