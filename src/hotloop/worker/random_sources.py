"""Random sources: which inputs of a model are random numbers and nothing else.

`get_inputs` is run under a function mode that follows each tensor back to its source. A tensor that
comes from `torch.rand` or `torch.randn`, through views, joins and affine functions, is *free*: any
values may stand in it. A triangular or symmetric matrix of such numbers may hold any values that
keep its form, a mask of compared random numbers any rows. Everything else (labels, probabilities,
absolute values, elements chosen by a condition) has structure, so it keeps what `get_inputs` gives.

Not here: the values that are put there (`inputs.py`, `value_profiles.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

UNIT, NORMAL, DERIVED = "unit", "normal", "derived"
"""Laws of free tensors: uniform on [0, 1), N(0, 1), and an affine function or a view of one."""
FREE = frozenset({UNIT, NORMAL, DERIVED})
MASK = "mask"
"""Booleans that compare random numbers with a number."""
_WHOLE = "whole"  # random whole numbers: a mask where they are booleans


def _symmetric(tensor: Tensor) -> None:
    upper = tensor.triu()
    tensor.copy_(upper + upper.triu(1).mT)


FORMS: Mapping[str, Callable[[Tensor], object]] = {
    "triu": Tensor.triu_,
    "tril": Tensor.tril_,
    "symmetric": _symmetric,
    "expanded": lambda tensor: tensor,
}
"""Forms of random tensors, and how any other values are brought into them, in place. An expanded
one takes any: it has a place for each element, but fewer numbers than places where it is timed."""
_EXPANDS = frozenset({"expand", "broadcast_to"})

_SOURCES = {
    "rand": UNIT, "rand_like": UNIT, "randn": NORMAL, "randn_like": NORMAL, "normal": DERIVED,
    "uniform_": DERIVED, "normal_": DERIVED, "randint": _WHOLE, "randint_like": _WHOLE,
}  # fmt: skip
_COPIES = frozenset(
    {
        "to", "float", "half", "bfloat16", "double", "bool", "contiguous", "clone", "detach",
        "cuda", "cpu", "requires_grad_",
    }
)  # fmt: skip
_TRANSPOSES = frozenset({"T", "mT", "t", "transpose", "swapaxes", "swapdims"})
_VIEWS = _TRANSPOSES | {
    "view", "reshape", "permute", "movedim", "moveaxis", "unsqueeze", "squeeze", "flatten",
    "unflatten", "ravel", "narrow", "select", "__getitem__", "flip",
    "roll", "chunk", "split", "unbind",
}  # fmt: skip
_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})
_SCALES = frozenset({"mul", "__mul__", "__rmul__", "mul_"})
_DIVIDES = frozenset({"div", "__truediv__", "true_divide", "div_"})
_NEGATES = frozenset({"neg", "__neg__", "neg_"})
_ADDS = frozenset({"add", "__add__", "__radd__", "add_"})
_SHIFTS = _ADDS | {"sub", "__sub__", "__rsub__", "rsub", "sub_"}
_COMPARES = frozenset(
    {"gt", "lt", "ge", "le", "eq", "ne", "__gt__", "__lt__", "__ge__", "__le__", "__eq__", "__ne__"}
)
_INVERTS = frozenset({"invert", "__invert__", "bitwise_not", "logical_not"})


class Provenance(TorchFunctionMode):
    """Remembers which tensors come from a random source and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, tuple[Tensor, int, str]] = {}
        self._turned: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` and note the law of its result."""
        name = getattr(func, "__name__", "")
        if name == "__get__":  # an attribute: x.T
            name = getattr(getattr(func, "__self__", None), "__name__", "")
        law = self._law(name, args, kwargs or {})
        out = func(*args, **(kwargs or {}))
        if law is not None:
            for made in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(made, Tensor):
                    # holding the tensor keeps its id from being used again
                    self._seen[id(made)] = (made, made._version, law)
        if name in _TRANSPOSES and isinstance(out, Tensor) and out.dim() == 2:
            self._turned[id(out)] = (out, args[0])
        return out

    def source(self, tensor: Any) -> str | None:
        """Return the law of an input: one of `FREE`, of `FORMS`, `MASK`; None: it has structure."""
        law = self._followed(tensor)
        if law is None:
            return None
        if tensor.dtype is torch.bool:
            return MASK if law in (MASK, _WHOLE) else None
        return law if tensor.dtype.is_floating_point and law in FREE | FORMS.keys() else None

    def _followed(self, tensor: Any) -> str | None:
        entry = self._seen.get(id(tensor))
        return None if entry is None or tensor._version != entry[1] else entry[2]

    def _law(self, name: str, args: Any, kwargs: Any) -> str | None:
        given = (*args, *kwargs.values())
        tensors = [a for a in given if isinstance(a, Tensor)]
        if name in _SOURCES:
            is_filled = name.endswith(("_", "_like"))
            return _SOURCES[name] if len(tensors) == is_filled else None
        if name in _JOINS:
            return self._joined(args[0] if args else ())
        laws = [self._followed(t) for t in tensors]
        if not laws or None in laws:
            return None
        law = str(laws[0])
        if len(tensors) > 1:
            return self._combined(name, tensors, FREE.issuperset(laws))
        if name in _COPIES or (name in _VIEWS and law not in FORMS and _is_basic(name, args)):
            return DERIVED if law in FREE else law
        if law in FREE:
            return "expanded" if name in _EXPANDS else self._of_free(name, args, kwargs)
        if law in FORMS:
            keeps = name in _SCALES | _DIVIDES | _NEGATES
            return law if keeps or (law == "symmetric" and name in _SHIFTS) else None
        if law == _WHOLE and name in _COMPARES:
            return MASK
        return MASK if law == MASK and name in _INVERTS else None

    def _of_free(self, name: str, args: Any, kwargs: Any) -> str | None:
        if name in _SCALES | _DIVIDES | _NEGATES | _SHIFTS:
            return DERIVED
        if name in _COMPARES:
            return MASK
        diagonal = args[1] if len(args) > 1 else kwargs.get("diagonal", 0)
        return name if name in ("triu", "tril") and diagonal == 0 else None

    def _combined(self, name: str, tensors: list[Tensor], is_free: bool) -> str | None:
        """Return the law of a function of several random tensors."""
        if not is_free:
            return None
        first, second = tensors[0], tensors[-1]
        if name in _ADDS and (self._is_turned(first, second) or self._is_turned(second, first)):
            return "symmetric"
        large = [t for t in tensors if t.numel() > 1]
        is_affine = name in _SCALES | _SHIFTS or (name in _DIVIDES and second.numel() == 1)
        return DERIVED if is_affine and len(large) <= 1 else None

    def _is_turned(self, turned: Tensor, of: Tensor) -> bool:
        entry = self._turned.get(id(turned))
        return entry is not None and entry[1] is of

    def _joined(self, parts: Any) -> str | None:
        parts = parts if isinstance(parts, (tuple, list)) else ()
        return DERIVED if parts and all(self._followed(p) in FREE for p in parts) else None


def _is_basic(name: str, args: Any) -> bool:
    """Whether a view chooses its elements by place; a mask of the values would be structure."""
    if name != "__getitem__":
        return True
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    return all(i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index)
