"""Inputs and parameters of a model reference: where values come from, and what may replace them.

`get_inputs` is run under a function mode that follows each tensor back to its source. A tensor that
comes straight from `torch.rand` or `torch.randn` (or through an affine function of it) is *free*:
other value profiles may overwrite it. Anything else (triangular or symmetric matrices, masks,
labels, probabilities) has structure, so it keeps the values that `get_inputs` gives it.

Value profiles
    shipped        the file's own distribution
    normal         N(0, 1); parameters that the file initialises to a constant get random values too
    positive_mean  U(1, 2): sums grow, so low-precision accumulation shows
    large          N(0, 1) times 8 to 64
    integers       {-1, 0, 1}: sums are exact, so outputs must be equal
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from hotloop.errors import ProblemError

PROFILES = ("shipped", "normal", "positive_mean", "large", "integers")
RUNNING_STATISTICS = frozenset({"running_mean", "running_var"})
LARGE_SCALES = (64.0, 32.0, 16.0, 8.0)

_SOURCES = {"rand": "uniform", "rand_like": "uniform", "randn": "normal", "randn_like": "normal"}
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

        The law is `uniform` on [0, 1), `normal`, or `derived`: an affine function of one of them.
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
    """Seed torch's and Python's generators inside the block and restore them after it."""
    devices = [torch.cuda.current_device()] if device == "cuda" else []
    state = random.getstate()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


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
        ProblemError: `get_inputs` returned no sequence. What it raises itself passes.
    """
    provenance = Provenance()
    with torch.device(device), provenance:
        values = get_inputs()
    if not isinstance(values, (list, tuple)):
        raise ProblemError(
            f"get_inputs() should return a list of forward's arguments, got {type(values).__name__}"
        )
    sources = tuple(provenance.source(v) for v in values)
    return tuple(_place(v, device, dtype) for v in values), sources


def fill(tensor: Tensor, profile: str, gen: torch.Generator, scale: float) -> None:
    """Overwrite a free tensor with values of `profile`; `scale` is that of `large`."""
    if profile == "normal":
        tensor.normal_(generator=gen)
    elif profile == "positive_mean":
        tensor.uniform_(1, 2, generator=gen)
    elif profile == "large":
        tensor.normal_(generator=gen).mul_(scale)
    elif profile == "integers":
        tensor.random_(0, 3, generator=gen).sub_(1)
    else:
        raise ValueError(f"no values for profile {profile!r}")


def refill(tensor: Tensor, law: str, gen: torch.Generator, scale: float) -> bool:
    """Draw new values of a law or a profile in place; False where only `get_inputs` can."""
    if law == "derived":
        return False
    if law == "uniform":
        tensor.uniform_(generator=gen)
    else:
        fill(tensor, law, gen, scale)
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


def _place(value: Any, device: str, dtype: torch.dtype | None) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_place(v, device, dtype) for v in value)
    if not isinstance(value, Tensor):
        return value
    target = dtype if dtype is not None and value.dtype.is_floating_point else value.dtype
    return value.detach().to(device=device, dtype=target)
