"""Operators of the candidate's own: what they call is what counts.

A dispatch mode is off while an operator that it was shown runs. Torch's own operators compute
there; one of a candidate's runs its code, so it runs with the mode on, below autograd. Its own is
an operator that was not there when this process began, and one of torch's that got another body:
one that `torch.library` tells of, or one that the dispatcher alone knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from hotloop.worker.dispatched import NAMESPACES, Dispatched

_KEYS = ("BackendSelect", "Undefined")
_DUMP = "dump "
_ELSEWHERE = ("Meta", "Sparse", "Quantized", "Mkldnn", "Func", "Tracer")
"""Keys whose bodies may be added late, by torch itself, and do not run on plain tensors here."""
_dump = torch._C._dispatch_dump  # bound before a candidate can put another in its place


def known_operators() -> frozenset[str]:
    """Return the names of all operators and of all bodies in Python, and a mark of each's bodies.

    Takes about 60 ms.
    """
    names = torch._C._dispatch_get_all_op_names()
    marks = (_mark(name) for name in names)
    return frozenset(names) | frozenset(torch.library._impls) | frozenset(marks)


class OwnOperators:
    """Tells a candidate's operators from torch's."""

    def __init__(self, before: frozenset[str], device: str) -> None:
        """Compare with what was there before, on a device of the problem."""
        self._before = before
        changed = (i.split("/") for i in frozenset(torch.library._impls) - before)
        self._changed = {f"{p[0]}::{p[1].split('.')[0]}" for p in changed if p[-1] != "Meta"}
        self._device = device

    def key(self, operator: Dispatched, tensors: Iterable[torch.Tensor]) -> Any:
        """Return the dispatch key that runs an operator's body; None for one of torch's."""
        name = operator.packet + (f".{operator.overload}" if operator.overload else "")
        if not self._is_own(operator.packet, name):
            return None
        devices = {t.device.type for t in tensors} or {self._device}
        first = next((d for d in ("meta", "cuda", "cpu") if d in devices), self._device)
        for key in ({"meta": "Meta", "cuda": "CUDA"}.get(first, "CPU"), *_KEYS):
            if torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, key):
                return getattr(torch._C.DispatchKey, key)
        return None

    def _is_own(self, packet: str, name: str) -> bool:
        if packet in self._changed:
            return True
        if not self._before:
            return packet.partition("::")[0] not in NAMESPACES
        return not {name, _mark(name)} <= self._before


def _mark(name: str) -> str:
    """Return a name of an operator's bodies, which is another one once another body is added."""
    lines = _dump(name).splitlines()[3:]
    bodies = [line for line in lines if not line.startswith(_ELSEWHERE)]
    return f"{_DUMP}{name} {hash(tuple(bodies))}"
