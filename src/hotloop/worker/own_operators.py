"""Operators of the candidate's own: what they call is what counts.

A dispatch mode is off while an operator that it was shown runs. Torch's own operators compute
there; one of a candidate's runs its code, so it runs with the mode on, below autograd. Its own is
an operator that was not there when this process began, and one of torch's that got another body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

NAMESPACES = frozenset({"aten", "prim", "prims", "mkldnn", "mkl", "sparse", "quantized"})
"""Of torch's own operators."""
_KEYS = ("BackendSelect", "Undefined")


def known_operators() -> frozenset[str]:
    """Return the names of all operators and of all bodies in Python, as they are now."""
    names = torch._C._dispatch_get_all_op_names()
    return frozenset(names) | frozenset(torch.library._impls)


class OwnOperators:
    """Tells a candidate's operators from torch's."""

    def __init__(self, before: frozenset[str], device: str) -> None:
        """Compare with what was there before, on a device of the problem."""
        self._before = before
        changed = (i.split("/") for i in frozenset(torch.library._impls) - before)
        self._changed = {f"{p[0]}::{p[1].split('.')[0]}" for p in changed if p[-1] != "Meta"}
        self._device = device

    def key(self, func: Any, tensors: Iterable[torch.Tensor]) -> Any:
        """Return the dispatch key that runs an operator's body; None for one of torch's."""
        packet = func._schema.name
        name = f"{packet}.{func._overloadname}".removesuffix(".default")
        is_torchs = func.namespace in NAMESPACES and (not self._before or name in self._before)
        if is_torchs and packet not in self._changed:
            return None
        devices = {t.device.type for t in tensors} or {self._device}
        first = next((d for d in ("meta", "cuda", "cpu") if d in devices), self._device)
        for key in ({"meta": "Meta", "cuda": "CUDA"}.get(first, "CPU"), *_KEYS):
            if torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, key):
                return getattr(torch._C.DispatchKey, key)
        return None
