"""Library calls of a candidate's forward: what torch computed, and whether it is the answer.

A dispatch mode sees every ATen operation, however it was named. An operation that only moves or
makes values is left out. The others are noted with their sizes, summed over the call; results that
do not depend on a kernel are held against the outputs, whole (`fingerprint.py`) and as sets of
values (`value_sets.py`): where they are alike, torch computed that output, and kernels at most
copied it. A kernel whose result is a copy of one of its arguments adds nothing.

A guard must not fail a kernel for what it cannot read: such tensors count as a kernel's.

Covered: aliases, `getattr`, modules of torch, operators by name, C++ that calls ATen, results that
are copied, transposed, cast, put together from pieces or hardly changed by a kernel. Not covered:
results that a kernel scales and another undoes, and whatever does not go through torch (`numpy` in
host memory).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker import poison
from hotloop.worker.call_memory import CallMemory
from hotloop.worker.call_sites import is_kernels
from hotloop.worker.call_values import CallValues
from hotloop.worker.census import GATHERING, NO_ARITHMETIC, REARRANGING
from hotloop.worker.device_reads import DeviceReads
from hotloop.worker.dispatch_witness import ours
from hotloop.worker.dispatched import Dispatched, dispatched
from hotloop.worker.element_widths import ElementWidths
from hotloop.worker.fingerprint import Fingerprint, bytes_of
from hotloop.worker.movements import Movements
from hotloop.worker.operation import Operation, address_of
from hotloop.worker.operation_history import OperationHistory
from hotloop.worker.own_operators import OwnOperators
from hotloop.worker.tensors_in import addresses_in, tensors_in
from hotloop.worker.unknown_operators import OF_PARTS, OF_WIDER
from hotloop.worker.value_sets import ValueSets

KEPT = 64
"""Results of each operation that are kept to be compared whole; the last of them."""
MAX_LAUNCHES = 256
MAX_BYTES = 256 << 30
"""Launches, and bytes of their arguments, that are looked at; later ones count as work."""
_ON_VALUES = " on values"
"""After the name of an operation that took values of the call (`call_values.py`)."""
Answers = list[tuple[str, int]]
"""(operation, output)."""


class LibraryCalls(TorchDispatchMode):
    """Notes what torch computes under it."""

    def __init__(
        self, outputs: Sequence[torch.Tensor], shared: range, known: frozenset[str] = frozenset()
    ) -> None:
        """Watch a forward.

        Args:
            outputs: of an earlier call; the shapes and dtypes to look for.
            shared: addresses of the judge's memory, which no kernel may write.
            known: operators from before the candidate (`known_operators`); with none, all in
                torch's namespaces are torch's.
        """
        super().__init__()
        self.totals: dict[str, int] = {}
        """Operation -> elements that its calls touched, in each the largest tensor."""
        self._wanted = [(t.numel(), t.dtype) for t in outputs]
        self._shared = shared
        self.slots: Mapping[int, torch.Tensor] = {}
        """The judge's tensors, by their addresses in its memory."""
        self.values = CallValues(shared, max((t.numel() for t in outputs), default=0) // 2)
        self._widths = ElementWidths(shared)
        self._own = OwnOperators(known, outputs[0].device.type if outputs else "cpu")
        # Storages, by address: a kernel computed them, wrote them at all, torch gave them values.
        self._computed: set[int] = set()
        self._written: set[int] = set()
        self._filled: set[int] = set()
        self._history = OperationHistory()
        self._pointed: set[int] = set()  # addresses that kernels were given inside tensors
        self.is_in_kernel = False
        """The interpreter multiplies tiles with torch, too; what others ask for is noted."""
        self.in_kernels: dict[str, int] = {}
        """Operation -> elements, of what other code asked for inside launches."""
        self.look: Callable[[], None] = lambda: None  # is all that the watch reads by what it was?
        self.is_noting = False
        """What is read meanwhile is read for the watch."""
        self.points: Callable[[], bool] = lambda: False  # may a launch read what it was not given?
        self.looks = True
        """Whether values are read; without, every launch counts as work."""
        self._launches = 0
        self._bytes = 0
        self.host_reads = DeviceReads(shared)
        """Values that left the device, and single ones that left tensors, below torch's methods."""
        self._results: dict[str, deque[tuple[int, Fingerprint]]] = {}
        self._sets = ValueSets(outputs)
        self._movements = Movements(self._wanted)
        self.memory = CallMemory(shared)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True wraps this mode for torch.compile, whose import takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator that `func` names and note it."""
        kwargs = kwargs or {}
        operator = dispatched(func)
        if operator is None:
            raise TypeError(f"expected an operator of torch, got {type(func).__name__}")
        if self.is_in_kernel and is_kernels(sys._getframe(1), is_work=operator.is_work):
            return operator.run(*args, **kwargs)
        self.look()
        hook = sys.getprofile()
        sys.setprofile(None)  # it would see nothing but this watch, and triple its time
        try:
            read = list(tensors_in((args, kwargs)))
            key = self._own.key(operator, read)
            if key is None:
                return self._run(operator, args, kwargs, read)
        finally:
            sys.setprofile(hook)
        with self:  # an operator of the candidate's own: what it calls is what counts
            return operator.redispatch(key, *args, **kwargs)

    def _run(self, operator: Dispatched, args: Any, kwargs: Any, read: list[torch.Tensor]) -> Any:
        before = {address_of(t) for t in read}
        out = operator.run(*args, **kwargs)
        self.is_noting = True
        # Tensors without a storage raise.
        with ours(), suppress(RuntimeError, TypeError, AttributeError):
            for done in Operation.all_of(operator, args, kwargs, out):
                self._note(done, before)
        self.is_noting = False
        return out

    def _note(self, done: Operation, before: set[int]) -> None:
        name, made, sources = done.name, done.made, [address_of(t) for t in done.sources]
        at = [address_of(t) for t in made]
        new = set(at) - before
        self.host_reads.note(done)
        self.memory.note(done, new, at)
        depends = self._pass_on(self._computed, sources, made, partly=done.is_partial)
        self._pass_on(self._written, sources, made, partly=done.is_partial)
        for tensor in made:
            if "empty" in name:
                self._filled.discard(address_of(tensor))
                poison.fill_otherwise(tensor)
            elif done.writes or address_of(tensor) in new:  # a view fills nothing
                self._filled.add(address_of(tensor))
        is_work = name not in NO_ARITHMETIC
        on_values = self.values.note(done, self.slots)
        is_wider = self._widths.note(done, new, self.slots)
        if not depends and done.joins_parts(self._shared, self.slots):
            name += OF_PARTS
        elif not depends and is_wider:
            name += OF_WIDER
        noted = (name + _ON_VALUES if on_values else name) if is_work else None
        self._history.note(noted, done.size, sources, at, partly=done.is_partial)
        if self.looks:
            self._movements.note(done, new, made, is_work=is_work)
        if not is_work or not made:
            return
        for found in (self.totals, self.in_kernels) if self.is_in_kernel else (self.totals,):
            found[name] = done.size + found.get(name, 0)
        if self.looks and not depends:
            self._keep(name, made)

    def before_launch(self, tensors: list[torch.Tensor]) -> Callable[[], None]:
        """Look at a kernel's arguments; the result looks again once it has run.

        Neither raises: what cannot be looked at was written, and is nobody's work.
        """
        if self.looks:  # a kernel that times itself is not held up
            self.look()
        self.is_in_kernel = True
        try:
            look: Callable[[], None] = self._look(tensors)
        except Exception:  # noqa: BLE001 - a candidate chooses what a tensor holds
            look = partial(self._write, tensors)

        def after() -> None:
            try:
                look()
            except Exception:  # noqa: BLE001
                self._write(tensors)
            finally:
                self.is_in_kernel = False
                if self.points():
                    self._history.take_all()

        return after

    def _look(self, tensors: list[torch.Tensor]) -> Callable[[], None]:
        """Look at a kernel's arguments; the result looks again and tells what it wrote."""
        self._launches += 1
        self._history.take(address_of(t) for t in tensors)
        self._bytes += sum(bytes_of(t) for t in tensors)
        if not self.looks or self._launches > MAX_LAUNCHES or self._bytes > MAX_BYTES:
            return lambda: self._believe(tensors)
        self._movements.give(tensors)
        before = [Fingerprint.of(t) for t in tensors]
        self._pointed.update(*(addresses_in(t) for t in tensors))
        return lambda: self._compare(tensors, before)

    def _compare(self, tensors: Sequence[torch.Tensor], before: Sequence[Fingerprint]) -> None:
        for tensor, old in zip(tensors, before, strict=True):
            address, new = address_of(tensor), Fingerprint.of(tensor)
            # A buffer may have held the very values that are written: those of a call ago.
            was_read = new == old and address in self._filled
            if was_read or address in self._shared:
                continue
            self._write([tensor])
            if new != old:
                self.memory.write(address)
                self.host_reads.note_foreign([tensor])
            copied = any(
                new.is_like(other)
                for source, other in zip(tensors, before, strict=True)
                if address_of(source) != address and address_of(source) not in self._computed
            )
            if not copied:
                self._computed.add(address)
            self._movements.take(tensor, tensors, is_copied=copied)

    def used(self, outputs: Sequence[torch.Tensor]) -> dict[str, int]:
        """Return operations whose results reach an output, or a kernel: name -> elements."""
        found: dict[str, int] = {}
        for name, size in self._history.behind(address_of(t) for t in outputs).items():
            plain = name.removesuffix(_ON_VALUES)
            found[plain] = found.get(plain, 0) + size
        return found

    def on_values(self, outputs: Sequence[torch.Tensor]) -> dict[str, int]:
        """Return those of `used` that took values of the call's tensors or of kernels."""
        found = self._history.behind(address_of(t) for t in outputs).items()
        return {n.removesuffix(_ON_VALUES): s for n, s in found if n.endswith(_ON_VALUES)}

    def answers(self, outputs: Sequence[torch.Tensor]) -> Answers:
        """Return (operation, output) for each output that torch alone computed."""
        found = self._sets.answers(outputs)
        found += [(name, i) for name, i in self._movements.answers(outputs) if name in GATHERING]
        for i, output in enumerate(outputs):
            wanted = Fingerprint.of(output)
            for name, results in self._results.items():
                found += [(name, i) for at, seen in results if at == i and seen.is_like(wanted)]
        return list(dict.fromkeys(found))

    def moved(self, outputs: Sequence[torch.Tensor]) -> Answers:
        """Return (operation, output) for each output whose values torch moved to their places."""
        return self._movements.answers(outputs)

    def is_from_kernels(self, output: torch.Tensor) -> bool:
        """Whether a kernel wrote the output, or something that torch made it from."""
        start = address_of(output)
        end = start + output.untyped_storage().nbytes()
        return start in self._written or any(start <= at < end for at in self._pointed)

    def _believe(self, tensors: Sequence[torch.Tensor]) -> None:
        self._write(tensors)
        self._computed |= {a for a in map(address_of, tensors) if a not in self._shared}

    def _write(self, tensors: Sequence[torch.Tensor]) -> None:
        for tensor in (t for t in tensors if address_of(t) not in self._shared):
            self._written.add(address_of(tensor))
            self.values.write(tensor)
            self._widths.write(tensor)

    @staticmethod
    def _pass_on(
        marked: set[int], sources: Sequence[int], made: Sequence[torch.Tensor], *, partly: bool
    ) -> bool:
        """Mark what was made where a source is marked; return whether one is."""
        depends = any(a in marked for a in sources)
        for tensor in made:
            if depends:
                marked.add(address_of(tensor))
            elif not partly:
                marked.discard(address_of(tensor))
        return depends

    def _keep(self, name: str, made: Sequence[torch.Tensor]) -> None:
        for tensor in made:
            if name not in REARRANGING:
                self._sets.keep(name, tensor)
            for i, (numel, dtype) in enumerate(self._wanted):
                if tensor.numel() == numel and not tensor.is_complex():
                    kept = self._results.setdefault(name, deque(maxlen=KEPT))
                    kept.append((i, Fingerprint.of(tensor.to(dtype))))
