"""Inputs and parameters of a model reference: where values come from, and what may replace them.

`get_inputs` is run under a function mode that follows each tensor back to its source. A tensor that
comes straight from `torch.rand` or `torch.randn` (or through an affine function of it) is *free*:
other value profiles may overwrite it. Anything else (triangular or symmetric matrices, masks,
labels, probabilities) has structure, so it keeps the values that `get_inputs` gives it.

Not here: the profiles (`value_profiles.py`).
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from hotloop.errors import ProblemError
from hotloop.worker.arguments import encode_args
from hotloop.worker.module_host import ContractError
from hotloop.worker.value_profiles import Reach, fill

RUNNING_STATISTICS = frozenset({"running_mean", "running_var"})

_UNIT = "unit"
_SOURCES = {"rand": _UNIT, "rand_like": _UNIT, "randn": "normal", "randn_like": "normal"}
_FILLS = {"uniform_", "normal_"}
_AFFINE = frozenset(
    {
        "mul",
        "__mul__",
        "__rmul__",
        "add",
        "__add__",
        "__radd__",
        "sub",
        "__sub__",
        "__rsub__",
        "rsub",
        "div",
        "__truediv__",
        "true_divide",
        "neg",
        "__neg__",
        "to",
        "float",
        "half",
        "bfloat16",
        "double",
        "contiguous",
        "clone",
        "detach",
        "cuda",
        "cpu",
        "requires_grad_",
        "mul_",
        "add_",
        "sub_",
        "div_",
        "view",
        "reshape",
    }
)


class Provenance(TorchFunctionMode):
    """Remembers which tensors come from a random source and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, tuple[Tensor, int, str]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` and note the law of its result."""
        name = getattr(func, "__name__", "")
        law = self._law(name, args, kwargs or {})
        out = func(*args, **(kwargs or {}))
        if law is not None and isinstance(out, Tensor):
            # holding the tensor keeps its id from being used again
            self._seen[id(out)] = (out, out._version, law)
        return out

    def source(self, tensor: Any) -> str | None:
        """Return the law of a free tensor; None if it has structure or is no float tensor.

        The law is `unit` (uniform on [0, 1)), `normal`, or `derived`: an affine function of one.
        """
        entry = self._seen.get(id(tensor))
        if entry is None or not tensor.dtype.is_floating_point or tensor._version != entry[1]:
            return None
        return entry[2]

    def _law(self, name: str, args: Any, kwargs: Any) -> str | None:
        if name in _SOURCES:
            return _SOURCES[name]
        if name in _FILLS:
            return "derived"
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        if name in _AFFINE and len(tensors) == 1 and self.source(tensors[0]) is not None:
            return "derived"
        return None


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch's, Python's and NumPy's generators inside the block; restore them after it.

    Of NumPy only the global one, which `numpy.random.rand` and the like draw from.
    """
    devices = [torch.cuda.current_device()] if device == "cuda" else []
    state = random.getstate()
    numpy_random: Any = None
    if "numpy" in sys.modules:
        numpy_random = importlib.import_module("numpy.random")
        numpy_state = numpy_random.get_state()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        random.seed(seed)
        if numpy_random is not None:
            numpy_random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(state)
            if numpy_random is not None:
                numpy_random.set_state(numpy_state)


def generator(seed: int, device: str) -> torch.Generator:
    """Return a generator on `device`."""
    return torch.Generator(device=device).manual_seed(seed)


def draw_inputs(
    get_inputs: Callable[[], Any], device: str, dtype: torch.dtype | None
) -> tuple[tuple[Any, ...], tuple[str | None, ...]]:
    """Call `get_inputs` on the device, under the caller's seed.

    Returns:
        The arguments of forward, and for each its law if it is free.

    Raises:
        ProblemError: `get_inputs` returned no sequence of tensors and plain values. What it raises
            itself passes.
    """
    provenance = Provenance()
    with torch.device(device), provenance:
        values = get_inputs()
    if not isinstance(values, (list, tuple)):
        raise ProblemError(
            f"get_inputs() should return a list of forward's arguments, got {type(values).__name__}"
        )
    for i, value in enumerate(values):
        _check_argument(i, value)
    sources = tuple(provenance.source(v) for v in values)
    return tuple(_place(v, device, dtype) for v in values), sources


def check_repeats(first: Sequence[Any], again: Sequence[Any]) -> None:
    """Check that two draws of one seed are equal: inputs are drawn again where they were not kept.

    Raises:
        ProblemError: a tensor differs.
    """
    for i, (a, b) in enumerate(zip(first, again, strict=True)):
        if not isinstance(a, Tensor) or _equal(a, b):
            continue
        raise ProblemError(
            f"get_inputs() should return the same values after the same seed, got others as "
            f"argument {i}; draw from torch, random or numpy.random, without a generator or a "
            "state of your own"
        )


def refill(tensor: Tensor, law: str, gen: torch.Generator, reach: Reach) -> bool:
    """Draw new values of a law or a profile in place; False where only `get_inputs` can."""
    if law == "derived":
        return False
    if law == _UNIT:
        tensor.uniform_(generator=gen)
    else:
        fill(tensor, law, gen, reach)
    return True


def perturb_constants(
    state: dict[str, Tensor], constant: frozenset[str], gen: torch.Generator
) -> None:
    """Give constant-initialised parameters and batch statistics random values, in place.

    A parameter p becomes p + N(0, 1) / 2, so that norm scales are not 1 and biases are not 0;
    running variances are drawn from U(0.5, 1.5), because they must stay positive.
    """
    for name in sorted(constant):
        if name.rpartition(".")[2] == "running_var":
            state[name].uniform_(0.5, 1.5, generator=gen)
        else:
            noise = torch.empty_like(state[name]).normal_(generator=gen)
            state[name].add_(noise, alpha=0.5)


def own_memory(tensor: Tensor) -> Tensor:
    """Return a tensor as it is, or a contiguous copy where elements of it may share memory.

    An expanded tensor has one value for many elements, and torch refuses to write into it. The
    arena has a place for each element, as the tensor itself has after a move to another dtype.
    """
    return tensor.contiguous() if _overlaps(tensor) else tensor


def _equal(a: Tensor, b: Any) -> bool:
    """Whether two tensors are equal; NaN equals NaN."""
    if not isinstance(b, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _check_argument(index: int, value: Any) -> None:
    if isinstance(value, Tensor):
        return
    try:
        encode_args(value)
    except ContractError:
        held = sorted({type(leaf).__name__ for leaf in tree_leaves(value)})
        raise ProblemError(
            "get_inputs() should return tensors and plain values (numbers, text, None), got a "
            f"{type(value).__name__} of {', '.join(held)} as argument {index}; give forward each "
            "tensor as an argument of its own"
        ) from None


def _overlaps(tensor: Tensor) -> bool:
    """Whether two elements may share memory, as those of an expanded tensor do."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += (size - 1) * stride if size > 1 else 0
    return False


def _place(value: Any, device: str, dtype: torch.dtype | None) -> Any:
    if not isinstance(value, Tensor):
        return value
    target = dtype if dtype is not None and value.dtype.is_floating_point else value.dtype
    placed = value.detach().to(device=device, dtype=target)
    return own_memory(placed)
