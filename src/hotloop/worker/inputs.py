"""Inputs and parameters of a model reference: how they are drawn, and what replaces them.

Value profiles overwrite the inputs that are random numbers and nothing else, as far as their form
lets them; the others keep the values that `get_inputs` gives them.

Not here: which inputs these are (`random_sources.py`), the profiles (`value_profiles.py`).
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
from torch.utils._pytree import tree_leaves

from hotloop.errors import ProblemError
from hotloop.worker import constant_inputs
from hotloop.worker.alike import bring_near
from hotloop.worker.arguments import encode_args
from hotloop.worker.dense_tensors import require_drawable
from hotloop.worker.mask_rows import make_rows
from hotloop.worker.module_host import ContractError
from hotloop.worker.opposed import SCALES
from hotloop.worker.random_sources import FORMS, FREE, MASK, NORMAL, UNIT, Provenance
from hotloop.worker.value_profiles import Reach, fill


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


def renews(law: str | None, *, keeps: bool) -> bool:
    """Whether `overwrite` gives an input of this law new values; else only `get_inputs` can."""
    if keeps:
        return law in (UNIT, NORMAL)
    return law in FREE or law in FORMS


def overwrite(
    values: Sequence[Any],
    laws: Sequence[str | None],
    profile: str,
    gen: torch.Generator,
    reach: Reach,
) -> None:
    """Write a profile's values into inputs, in place, as far as their laws let it.

    Args:
        values: the arguments of forward.
        laws: their laws, as `draw_inputs` returns them; None for what stays as it is.
        profile: a model's value profile; of the file's own values only what is drawn straight from
            torch's generator is drawn anew.
        gen: of the draw's seed.
        reach: how far values go.
    """
    constant_inputs.fill(values, reach.varied.get(profile, {}), gen)
    masks = constant_inputs.masks(reach, profile)
    for place, (value, law) in enumerate(zip(values, laws, strict=True)):
        keeps = reach.keeps(place, profile)
        if (law == MASK or place in masks) and profile in reach.masked:
            make_rows(value, reach.masked[profile])
        if law is None or not renews(law, keeps=keeps):
            continue
        if keeps:
            value.uniform_(generator=gen) if law == UNIT else value.normal_(generator=gen)
            continue
        fill(value, profile, gen, reach)
        if place in reach.unsigned_inputs.get(profile, ()):
            value.abs_()
        if law in FORMS:
            FORMS[law](value)
        if profile in SCALES and place in reach.opposed_inputs:
            value.mul_(SCALES[profile])
    if profile == "alike":
        near = ([i for i in group if not reach.keeps(i, profile)] for group in reach.alike)
        bring_near(values, [group for group in near if group], gen)


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
        require_drawable(f"argument {index} of forward", value)
        return
    try:
        encode_args(value)
    except ContractError:
        kind, leaves = type(value).__name__, tree_leaves(value)
        cure = "make it one of them"
        if len(leaves) != 1 or leaves[0] is not value:
            kind += f" of {', '.join(sorted({type(leaf).__name__ for leaf in leaves}))}"
            cure = "give forward each tensor as an argument of its own"
        raise ProblemError(
            "get_inputs() should return tensors and plain values (numbers, text, None), got a "
            f"{kind} as argument {index}; {cure}"
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
