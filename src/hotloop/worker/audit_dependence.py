"""Dependence: does the output change with every input, every parameter, and every block of inputs?

One of them at a time gets the values of another seed. An output that the checks still accept does
not depend on it as far as they can tell, so a kernel need not read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from hotloop.core.audit import FakeGroup
from hotloop.worker import constants, inputs
from hotloop.worker.audit_fakes import Consequence, Fake
from hotloop.worker.audit_reading import changed_fake, named_inputs
from hotloop.worker.audit_subject import Subject
from hotloop.worker.draw import Draw, Reference
from hotloop.worker.model_reference import ModelReference

BLOCKS = 4
"""Blocks that each dimension of an input is cut into."""


def dependence_fakes(subject: Subject) -> list[Fake]:
    """Return a fake for each input, and each parameter or buffer that holds floats."""
    group = FakeGroup.DEPENDENCE
    fakes = [
        changed_fake(f"other values of {name}", group, _other_input(i), if_same=Consequence.REASON)
        for i, name, _ in named_inputs(subject)
    ]
    for name, tensor in subject.draw.state.items():
        if tensor.dtype.is_floating_point and tensor.numel():
            label = f"other values of {name}"
            follows = _if_idle(name, tensor)
            fakes.append(changed_fake(label, group, _other_state(name), if_same=follows))
    return fakes


def _if_idle(name: str, tensor: Tensor) -> Consequence:
    """Return what follows from a parameter or buffer that changes nothing.

    A matrix or a filter that changes nothing makes a product superfluous. A bias that a
    normalisation takes off again saves an addition. Batch statistics are written, not read, in
    training mode.
    """
    if name.rpartition(".")[2] in constants.RUNNING_STATISTICS:
        return Consequence.NOTHING
    return Consequence.REASON if tensor.dim() > 1 else Consequence.FINDING


def block_fakes(subject: Subject) -> Iterator[Fake]:
    """Yield a fake for each block along each dimension of each input."""
    for i, name, value in named_inputs(subject):
        for dim, size in enumerate(value.shape):
            blocks = min(BLOCKS, size)
            for block in range(blocks if size > 1 else 0):
                label = f"other values in block {block + 1} of {blocks} of {name}, dimension {dim}"
                change = _other_block(i, dim, block, blocks)
                yield changed_fake(label, FakeGroup.DEPENDENCE, change)


def only_own_values(reference: Reference) -> str | None:
    """Return the operation that kills the device's context on foreign values, if there is one."""
    if not isinstance(reference, ModelReference):
        return None
    return next(iter(reference.census.asserts), None)


def _other_input(index: int) -> Callable[[Subject], Draw | None]:
    def change(subject: Subject) -> Draw | None:
        own, other = subject.draw.inputs[index], subject.other().inputs[index]
        return None if _equal(own, other) else subject.with_input(index, other)

    return change


def _other_block(
    index: int, dim: int, block: int, blocks: int
) -> Callable[[Subject], Draw | None]:  # fmt: skip
    def change(subject: Subject) -> Draw | None:
        own, other = subject.draw.inputs[index], subject.other().inputs[index]
        size = own.shape[dim]
        start, stop = block * size // blocks, (block + 1) * size // blocks
        if start == stop or own.shape != other.shape:
            return None
        made = own.clone()
        part, fresh = (t.narrow(dim, start, stop - start) for t in (made, other))
        if _equal(part, fresh):
            return None
        part.copy_(fresh)
        return subject.with_input(index, made)

    return change


def _other_state(name: str) -> Callable[[Subject], Draw | None]:
    def change(subject: Subject) -> Draw | None:
        own, other = subject.draw.state[name], subject.other().state[name]
        if _equal(own, other):  # a constant
            if only_own_values(subject.reference):
                return None
            other = own.clone()
            gen = inputs.generator(subject.case.seed + 1, subject.reference.device)
            constants.perturb({name: other}, frozenset({name}), gen, wide=False)
        return subject.with_state({name: other})

    return change


def _equal(own: Tensor, other: Tensor) -> bool:
    return own.shape == other.shape and bool((own == other).all())
