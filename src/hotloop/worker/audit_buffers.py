"""Buffers that a reference's forward writes: batch statistics, step counters.

Trusted calls start from fresh copies of the draw's buffers, so an update reaches nothing else; it
is no part of the result that is compared. A candidate that writes its buffers is refused
(`correctness.py`). The audit says which buffers that concerns.
"""

from __future__ import annotations

import torch

from hotloop.worker.attribution import user_code
from hotloop.worker.draw import Draw, Reference
from hotloop.worker.inputs import seeded
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.module_runner import ModuleRunner, bind, quiet, state_of
from hotloop.worker.precision import applied

SHOWN = 3


def buffer_notes(reference: Reference, seed: int) -> tuple[str, ...]:
    """Return a line about the buffers that forward writes, if there are any.

    Args:
        reference: any; only a model has buffers that can be written.
        seed: of a draw to try it on.
    """
    if not isinstance(reference, ModelReference):
        return ()
    written = written_buffers(reference, reference.draw(seed, reference.profiles[0]))
    if not written:
        return ()
    rest = len(written) - SHOWN
    shown = ", ".join(written[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
    return (
        f"forward writes into its buffers ({shown}): each call starts from the same values, the "
        "update is no part of the result, and a candidate has to leave them as they are",
    )


def written_buffers(reference: ModelReference, draw: Draw) -> list[str]:
    """Return the names of the buffers that hold something else after one call of forward."""
    buffers = [name for name in draw.state if name not in reference.parameter_names]
    if not buffers:
        return []
    runner = ModuleRunner(reference.loaded, reference.precision.dtype)
    bind(runner.model, draw.state)
    with (
        applied(reference.precision),
        user_code(reference.loaded.problem, "forward"),
        seeded(draw.seed, reference.device),
        torch.no_grad(),
        quiet(),
    ):
        runner.model(*draw.inputs)
    after = state_of(runner.model)
    return [name for name in buffers if not torch.equal(after[name], draw.state[name])]
