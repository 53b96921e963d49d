"""Soundness: references that no candidate can be held against are refused before any is tried.

    result changes from call to call     ProblemError: nothing could be compared with it
    more than half of the memory         DoesNotFit: there is no room for a second set
    the last bits change (atomics)       accepted

Not here: random numbers inside (`degeneracy.py`: not ranked), buffers that forward writes
(`audit_buffers.py`: reported), values that are not finite (`admission.py`: refused), what needs the
network (`network_fault.py`: its error says so).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hotloop.errors import ProblemError
from hotloop.worker.draw import Draw, Outputs, max_abs_difference
from hotloop.worker.memory import DoesNotFit, memory_bytes
from hotloop.worker.pieces import all_finite, largest_abs

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference

REPEAT_FRAC = 1e-2
"""Share of the largest value by which two calls on the same inputs may differ: atomics reorder
sums, but a result that moves more than this is not a function of its inputs."""


def check_sound(reference: ModelReference, draw: Draw, eager: Outputs) -> None:
    """Refuse a reference whose results cannot be compared with anything.

    Args:
        reference: just built; its sizes are known.
        draw: the nominal draw.
        eager: its outputs.

    Raises:
        ProblemError: another call gives another result.
        DoesNotFit: inputs, parameters and outputs take more than half of the memory.
    """
    check_room(reference.io_bytes, memory_bytes(reference.device), reference.loaded.problem.name)
    again = reference.eager(draw)
    for i, (first, second) in enumerate(zip(eager, again, strict=True)):
        if _moves(first, second):
            raise ProblemError(
                f"{reference.loaded.problem.name}: expected forward to give the same result for "
                f"the same inputs, parameters and seed, got another output {i} at the second "
                "call; draw from torch, random or numpy.random only, and keep nothing between "
                "calls"
            )


def check_room(io_bytes: int, memory: int, name: str) -> None:
    """Refuse sizes at which a second set of inputs and outputs has no room.

    Raises:
        DoesNotFit: they take more than half of `memory` bytes.
    """
    if 2 * io_bytes > memory:
        raise DoesNotFit(
            f"{name}: the inputs do not fit: expected inputs, parameters and outputs to take at "
            f"most half of the device's {memory / 2**30:.1f} GiB, because calls alternate between "
            f"two sets of them, got {io_bytes / 2**30:.1f} GiB; use smaller sizes (--set NAME=N)"
        )


def _moves(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape:
        return True
    if torch.equal(first, second) or not (all_finite(first) and all_finite(second)):
        return False  # what is not finite is refused with its own words
    return max_abs_difference(first, second) > REPEAT_FRAC * largest_abs(first)
