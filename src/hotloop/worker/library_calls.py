"""Library calls of a candidate's forward: what torch computed, and whether it is the answer.

A dispatch mode sees every ATen operation, however it was named. An operation that only moves or
makes values is left out. The others are noted with their size; the result of one that does not
depend on a kernel is held against the outputs: where they are alike, torch computed that output,
and kernels at most copied it. A kernel whose result is a copy of one of its arguments adds nothing.

A guard must not fail a kernel for what it cannot read: such tensors count as a kernel's.

Covered: aliases, `getattr`, modules of torch, operators by name, C++ that calls ATen, results that
are copied, transposed, cast or hardly changed by a kernel. Not covered: results that a kernel
scales and another undoes, and whatever does not go through torch (`numpy` in host memory).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hotloop.worker import poison
from hotloop.worker.census import NO_ARITHMETIC
from hotloop.worker.fingerprint import Fingerprint

KEPT = 64
"""Results that are kept to be compared; those of the last operations."""
MAX_LAUNCHES = 256
MAX_BYTES = 256 << 30
"""Launches, and bytes of their arguments, that are looked at; later ones count as work."""
NAMESPACES = frozenset({"aten", "prim", "prims", "mkldnn", "mkl", "sparse", "quantized"})
"""Of torch's own operators."""
MAX_TABLE = 4096
"""Elements of an argument of 8-byte integers that may be addresses, as grouped products take."""


class LibraryCalls(TorchDispatchMode):
    """Notes what torch computes under it."""

    def __init__(self, outputs: Sequence[torch.Tensor], shared: range) -> None:
        """Watch a forward.

        Args:
            outputs: of an earlier call; the shapes and dtypes to look for.
            shared: addresses of the judge's memory, which no kernel may write.
        """
        super().__init__()
        self.largest: dict[str, int] = {}
        """Operation -> most elements of a tensor that it read or wrote."""
        self._wanted = [(t.numel(), t.dtype) for t in outputs]
        self._shared = shared
        # Storages, by address: a kernel computed them, wrote them at all, torch gave them values.
        self._computed: set[int] = set()
        self._written: set[int] = set()
        self._filled: set[int] = set()
        self._history: dict[int, dict[str, int]] = {}  # of a storage: operations behind its values
        self._taken: dict[str, int] = {}  # those behind what kernels were given
        self._pointed: set[int] = set()  # addresses that kernels were given inside tensors
        self.is_in_kernel = False
        """The interpreter multiplies tiles with torch, too."""
        self._launches = 0
        self._bytes = 0
        self._results: deque[tuple[str, int, Fingerprint]] = deque(maxlen=KEPT)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True wraps this mode for torch.compile, whose import takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` unchanged and note it."""
        kwargs = kwargs or {}
        backend = None if func.namespace in NAMESPACES else _backend((args, kwargs))
        if backend is not None and not self.is_in_kernel:
            with self:  # an operator of the candidate's own: what it calls is what counts
                return func.redispatch(torch._C.DispatchKeySet(backend), *args, **kwargs)
        out = func(*args, **kwargs)
        if self.is_in_kernel:
            return out
        with suppress(RuntimeError, TypeError, AttributeError):  # of tensors without a storage
            self._note(func, args, kwargs, out)
        return out

    def _note(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        name = func.overloadpacket.__name__
        plain = name.rstrip("_") or name
        read = list(_tensors((args, kwargs)))
        made = list(_tensors(out))
        # A copy takes its target over; whatever else writes in place depends on what was there.
        sources = list(_tensors(args[1:])) if plain == "copy" else read
        depends = self._pass_on(self._computed, sources, made)
        self._pass_on(self._written, sources, made)
        for tensor in made:
            if "empty" in plain:
                self._filled.discard(_address(tensor))
                poison.fill_otherwise(tensor)
            else:
                self._filled.add(_address(tensor))
        size = max((t.numel() for t in (*read, *made)), default=0)
        own = {} if plain in NO_ARITHMETIC else {plain: size}
        history = _merged([*(self._history.get(_address(t), {}) for t in sources), own])
        for tensor in made:
            self._history[_address(tensor)] = history
        if not own or not made:
            return
        self.largest[plain] = max(size, self.largest.get(plain, 0))
        if not depends:
            self._keep(plain, made)

    def before_launch(self, tensors: list[torch.Tensor]) -> Callable[[], None]:
        """Look at a kernel's arguments; the result looks again once it has run."""
        self._launches += 1
        self._taken = _merged([self._taken, *(self._history.pop(_address(t), {}) for t in tensors)])
        self._bytes += sum(t.numel() * t.element_size() for t in tensors)
        if self._launches > MAX_LAUNCHES or self._bytes > MAX_BYTES:
            self.is_in_kernel = True
            return lambda: self._believe(tensors)
        self.is_in_kernel = True
        before = [Fingerprint.of(t) for t in tensors]
        self._pointed.update(*(_addresses_in(t) for t in tensors))

        def after() -> None:
            for tensor, old in zip(tensors, before, strict=True):
                address, new = _address(tensor), Fingerprint.of(tensor)
                # A buffer may have held the very values that are written: those of a call ago.
                was_read = new == old and address in self._filled
                if was_read or address in self._shared:
                    continue
                self._written.add(address)
                copied = any(
                    new.is_like(other)
                    for source, other in zip(tensors, before, strict=True)
                    if _address(source) != address and _address(source) not in self._computed
                )
                if not copied:
                    self._computed.add(address)
            self.is_in_kernel = False

        return after

    def used(self, outputs: Sequence[torch.Tensor]) -> dict[str, int]:
        """Return operations whose results reach an output, or a kernel: name -> most elements."""
        return _merged([self._taken, *(self._history.get(_address(t), {}) for t in outputs)])

    def answers(self, outputs: Sequence[torch.Tensor]) -> list[tuple[str, int]]:
        """Return (operation, output) for each output that torch alone computed."""
        found = []
        for i, output in enumerate(outputs):
            wanted = Fingerprint.of(output)
            found += [(n, i) for n, at, seen in self._results if at == i and seen.is_like(wanted)]
        return list(dict.fromkeys(found))

    def is_from_kernels(self, output: torch.Tensor) -> bool:
        """Whether a kernel wrote the output, or something that torch made it from."""
        start = _address(output)
        end = start + output.untyped_storage().nbytes()
        return start in self._written or any(start <= at < end for at in self._pointed)

    def _believe(self, tensors: Sequence[torch.Tensor]) -> None:
        self.is_in_kernel = False
        found = {a for a in map(_address, tensors) if a not in self._shared}
        self._written |= found
        self._computed |= found

    @staticmethod
    def _pass_on(
        marked: set[int], sources: Sequence[torch.Tensor], made: Sequence[torch.Tensor]
    ) -> bool:
        """Mark what was made where a source is marked; return whether one is."""
        depends = any(_address(t) in marked for t in sources)
        for tensor in made:
            (marked.add if depends else marked.discard)(_address(tensor))
        return depends

    def _keep(self, name: str, made: Sequence[torch.Tensor]) -> None:
        for tensor in made:
            for i, (numel, dtype) in enumerate(self._wanted):
                if tensor.numel() == numel and not tensor.is_complex():
                    self._results.append((name, i, Fingerprint.of(tensor.to(dtype))))


def _merged(histories: Sequence[Mapping[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for history in histories:
        for name, size in history.items():
            merged[name] = max(size, merged.get(name, 0))
    return merged


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor))


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse: no storage of its own
        return id(tensor)


def _backend(values: Any) -> Any:
    """Return the dispatch key of the device that the tensors are on; None where there are none."""
    first = next(_tensors(values), None)
    if first is None or first.device.type not in ("cpu", "cuda"):
        return None
    return getattr(torch._C.DispatchKey, first.device.type.upper())


def _addresses_in(tensor: torch.Tensor) -> list[int]:
    if tensor.element_size() != 8 or tensor.is_floating_point() or tensor.is_complex():
        return []
    found: list[int] = tensor.flatten().tolist() if tensor.numel() <= MAX_TABLE else []
    return found
