"""Golden: the reference run in float64 on inputs and parameters that are up-cast without loss.

Casts to lower precision inside the model are lifted to float64 too, so that the golden is the
mathematical function rather than another rounding of it. Where the float64 run does not fit on the
device, it runs on slices of the batch, if slices provably do not see each other.

Not here: attention, which has a blockwise formula of its own (`attention_math.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from hotloop.errors import ProblemError
from hotloop.worker.memory import DoesNotFit, release_memory

Run = Callable[[tuple[Any, ...]], tuple[Tensor, ...]]

_NARROW = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
FREE_SHARE = 0.8
"""Share of the free device memory that a float64 run may take."""
SEPARATE_TOLERANCE = 1e-9
"""Relative difference, in float64, up to which two slices count as independent."""


def widen(value: Any) -> Any:
    """Up-cast a floating or complex tensor to float64; anything else is returned as it is."""
    if isinstance(value, Tensor) and value.dtype in _NARROW:
        return value.to(_NARROW[value.dtype])
    return value


class Widen(TorchDispatchMode):
    """Lifts every operation to float64: explicit casts, new tensors, captured constants."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` with float64 in place of narrower types."""
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in _NARROW:
            kwargs["dtype"] = _NARROW[kwargs["dtype"]]
        if not func._schema.is_mutable:
            args = tree_map(widen, args)
        return func(*args, **kwargs)


@contextmanager
def float64_default() -> Iterator[None]:
    """Make float64 the default dtype inside the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def run_wide(run: Run, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Run a model whose parameters are float64 on up-cast inputs; outputs hold no spare memory.

    Falls back to a plain float64 run for models that the lifting mode cannot run.

    Raises:
        ProblemError: the model cannot be evaluated in float64.
    """
    wide = tree_map(widen, inputs)
    failure: Exception | None = None
    for lifted in (Widen(), nullcontext()):
        try:
            with float64_default(), lifted:
                return tuple(compact(output) for output in run(wide))
        except torch.OutOfMemoryError:
            raise
        except Exception as exc:  # noqa: BLE001  user code; attributed below if both ways fail
            failure = _without_frames(exc)
    raise ProblemError(
        f"the reference cannot be evaluated in float64: {type(failure).__name__}: {failure}; "
        "avoid fixed dtypes inside forward"
    ) from failure


def compact(tensor: Tensor) -> Tensor:
    """Return a copy where the tensor holds on to at least twice its own size.

    torch's `smooth_l1_loss` and `mse_loss` return a mean in the storage of all the terms: a scalar
    that keeps gigabytes. A slice of a larger result does the same.
    """
    own = tensor.numel() * tensor.element_size()
    return tensor.clone() if tensor.untyped_storage().nbytes() >= 2 * max(own, 1) else tensor


def run_if_it_fits(run: Run, inputs: tuple[Any, ...]) -> tuple[Tensor, ...] | None:
    """Run the whole model in float64; None where memory runs out, with all of the run freed.

    Raises:
        ProblemError: the model cannot be evaluated in float64.
    """
    try:
        return run_wide(run, inputs)
    except torch.OutOfMemoryError:
        pass  # its traceback holds the up-cast inputs until here
    release_memory()
    return None


def _without_frames(error: BaseException) -> Exception:
    """Drop the tracebacks of an error and its causes: their frames hold the run's tensors."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    assert isinstance(error, Exception)
    return error


def batched_inputs(
    run: Run, inputs: tuple[Any, ...], outputs: Sequence[Tensor]
) -> tuple[int, ...] | None:
    """Find the inputs whose first dimension is a batch of independent problems.

    Independence is tested in float64: the first row's output must not change when a second row is
    there, and the last rows' outputs must be those of the whole run.

    Args:
        run: runs the float64 model.
        inputs: all arguments of forward.
        outputs: what eager returned for them.

    Returns:
        Positions of the inputs to slice, or None if the batch cannot be split.
    """
    if not outputs or any(o.dim() == 0 for o in outputs):
        return None
    n = outputs[0].shape[0]
    if n < 2 or any(o.shape[0] != n for o in outputs):
        return None
    fitting = tuple(
        i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.dim() > 0 and x.shape[0] == n
    )
    choices = [fitting, *((i,) for i in fitting if len(fitting) > 1)]
    return next((c for c in choices if c and _separable(run, inputs, outputs, c)), None)


def run_blocked(
    run: Run, inputs: tuple[Any, ...], batched: tuple[int, ...], rows: int
) -> tuple[Tensor, ...]:
    """Run the float64 model on `rows` batch rows at a time."""
    n = inputs[batched[0]].shape[0]
    whole: list[Tensor] = []
    for start in range(0, n, rows):
        part = run_wide(run, slice_rows(inputs, batched, start, min(n, start + rows)))
        if not whole:
            whole = [p.new_empty((n, *p.shape[1:])) for p in part]
        for out, p in zip(whole, part, strict=True):
            out[start : start + p.shape[0]] = p
    return tuple(whole)


def run_in_blocks(
    run: Run, inputs: tuple[Any, ...], batched: tuple[int, ...], blocks: int
) -> tuple[Tensor, ...]:
    """Run the float64 model on slices of the batch, smaller ones while memory runs out.

    Args:
        run: runs the float64 model.
        inputs: all arguments of forward.
        batched: positions of the inputs to slice (`batched_inputs`).
        blocks: how many slices to start with.

    Raises:
        DoesNotFit: a single row does not fit.
    """
    n = inputs[batched[0]].shape[0]
    while True:
        try:
            return run_blocked(run, inputs, batched, max(1, n // blocks))
        except torch.OutOfMemoryError:
            pass  # its traceback holds the run's tensors until here
        release_memory()
        if blocks >= n:
            raise DoesNotFit(
                "the inputs do not fit: a float64 run of one row needs more memory than the device "
                "has; use smaller sizes"
            )
        blocks = min(n, blocks * 4)


def blocks_needed(inputs: Sequence[Tensor], peak_bytes: int, device: str) -> int:
    """Return into how many slices a float64 run must be cut to fit.

    Args:
        inputs: the tensor arguments.
        peak_bytes: how much eager allocates at its peak.
        device: only `cuda` has a limit here.
    """
    if device != "cuda":
        return 1
    free = torch.cuda.mem_get_info()[0]
    free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    widths = [t.element_size() for t in inputs if t.dtype.is_floating_point]
    growth = max(1, 8 // min(widths, default=4))
    held = sum(t.numel() * t.element_size() for t in inputs)
    return max(1, math.ceil(growth * (peak_bytes + held) / (free * FREE_SHARE)))


def slice_rows(
    inputs: tuple[Any, ...], batched: tuple[int, ...], start: int, stop: int
) -> tuple[Any, ...]:
    """Return the arguments with the batched ones cut to rows `start` to `stop`."""
    return tuple(x[start:stop] if i in batched else x for i, x in enumerate(inputs))


def _separable(
    run: Run, inputs: tuple[Any, ...], outputs: Sequence[Tensor], batched: tuple[int, ...]
) -> bool:
    n = outputs[0].shape[0]
    try:
        one = run_wide(run, slice_rows(inputs, batched, 0, 1))
        two = run_wide(run, slice_rows(inputs, batched, 0, 2))
        last = run_wide(run, slice_rows(inputs, batched, n - 1, n))
    except ProblemError:
        return False  # the model does not take such slices: not a batch dimension
    for a, b, z, out in zip(one, two, last, outputs, strict=True):
        if a.shape[1:] != out.shape[1:] or a.shape[0] != 1 or b.shape[0] != 2:
            return False
        if not _close(a, b[:1], SEPARATE_TOLERANCE):
            return False
        # eager's own rounding: TF32 and bfloat16 stay well below 5 %
        if not (_close(a, out[:1], 0.05) and _close(z, out[n - 1 :], 0.05)):
            return False
    return True


def _close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    a, b = a.double(), b.double()
    if a.numel() == 0:
        return True
    return bool((a - b).abs().max() <= tolerance * b.abs().max())
