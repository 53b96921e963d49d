"""Fakes that do not read all of an input: the reference on inputs of which a part is missing.

Along each dimension of each input: only its first or its last part read, the last elements left
out, or its first half taken for the whole (a statistic of a sample). For attention the keys: the
reference with a mask that hides what the kernel would not read, so weights are normalised over the
rest, as such a kernel would do it.

Not covered: which values stand there instead (`audit_dependence.py` draws others).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from hotloop.core.audit import FakeGroup
from hotloop.worker import attention_math
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.audit_fakes import Consequence, Fake
from hotloop.worker.audit_subject import Made, Subject, is_same
from hotloop.worker.draw import Draw
from hotloop.worker.golden import Widen
from hotloop.worker.paged import PAGE_TABLE, natural_page_table
from hotloop.worker.precision import STRICT, applied

READ_FRAC = 8
"""A fake that reads only part of a dimension reads one of so many parts."""
TAIL = 64
"""Elements that a fake leaves out at the end: a tile; an eighth where there are few."""

Partial = Callable[[Tensor, int], Tensor]
"""The input as a kernel sees it that does not read all of the dimension."""
Hides = Callable[[Any, Any, Any, Any, int], Any]
"""Mask of the keys that are read: (b, h, q, kv, number of keys) -> bool."""


def reading_fakes(subject: Subject) -> list[Fake]:
    """Return the fakes that leave out a part of an input's dimension."""
    if isinstance(subject.reference, AttentionReference):
        return [*_key_fakes(), *_page_fakes(subject), *_part_fakes(0, "q", 3)]
    return [
        fake
        for index, name, value in named_inputs(subject)
        for dim, size in enumerate(value.shape)
        if size > 1
        for fake in _part_fakes(index, name, dim)
    ]


def changed_fake(
    name: str,
    group: FakeGroup,
    change: Callable[[Subject], Draw | None],
    *,
    if_same: Consequence = Consequence.FINDING,
) -> Fake:
    """Return the fake whose outputs are the reference's own on a changed draw.

    Args:
        name: what is changed.
        group: what kind of shortcut it is.
        change: makes the draw; None where there is nothing to change.
        if_same: see `Fake.if_same`.
    """

    def make(subject: Subject) -> Made | None:
        draw = change(subject)
        return None if draw is None else dict(enumerate(subject.reference.eager(draw)))

    def is_answer(subject: Subject) -> bool:
        draw = change(subject)
        return draw is not None and subject.is_golden(draw)

    return Fake(name, group, make, is_answer, if_same=if_same)


def named_inputs(subject: Subject) -> Iterator[tuple[int, str, Tensor]]:
    """Yield position, name and values of each tensor argument."""
    names = iter(subject.reference.specs()[0])
    for i, value in enumerate(subject.draw.inputs):
        if isinstance(value, Tensor):
            yield i, next(names).name, value


def _part_fakes(index: int, name: str, dim: int) -> list[Fake]:
    return [
        changed_fake(f"{what} of {name}, dimension {dim}", FakeGroup.READING, _reads(index, dim, p))
        for what, p in _PARTIALS.items()
    ]


def _reads(index: int, dim: int, partial: Partial) -> Callable[[Subject], Draw | None]:
    def change(subject: Subject) -> Draw | None:
        value = subject.draw.inputs[index]
        if value.shape[dim] < 2:
            return None
        return subject.with_input(index, partial(value, dim))

    return change


def _first(value: Tensor, dim: int) -> Tensor:
    made, kept = value.clone(), -(-value.shape[dim] // READ_FRAC)
    made.narrow(dim, kept, value.shape[dim] - kept).zero_()
    return made


def _last(value: Tensor, dim: int) -> Tensor:
    made, kept = value.clone(), -(-value.shape[dim] // READ_FRAC)
    made.narrow(dim, 0, value.shape[dim] - kept).zero_()
    return made


def _all_but_last(value: Tensor, dim: int) -> Tensor:
    made, size = value.clone(), value.shape[dim]
    left_out = min(TAIL, -(-size // READ_FRAC))
    made.narrow(dim, size - left_out, left_out).zero_()
    return made


def _half_for_all(value: Tensor, dim: int) -> Tensor:
    made, size = value.clone(), value.shape[dim]
    half = -(-size // 2)
    made.narrow(dim, half, size - half).copy_(value.narrow(dim, 0, size - half))
    return made


_PARTIALS: dict[str, Partial] = {
    "only the first part": _first,
    "only the last part": _last,
    "all but the last elements": _all_but_last,
    "the first half, taken for the whole,": _half_for_all,
}


def _key_fakes() -> list[Fake]:
    """Return fakes of attention that read only some tiles of the keys."""
    return [
        Fake(f"{what} of the keys", FakeGroup.READING, _with_keys(hides), _same_keys(hides))
        for what, hides in _KEYS.items()
    ]


def _page_fakes(subject: Subject) -> list[Fake]:
    """Return the fake that reads pages in their order; none where k and v are contiguous."""
    if subject.reference.loaded.sizes is None or subject.reference.loaded.sizes.page_size is None:
        return []

    def change(subject: Subject) -> Draw:
        table = subject.draw.state[PAGE_TABLE]
        return subject.with_state({PAGE_TABLE: natural_page_table(table)})

    return [changed_fake("pages in their order, without the table", FakeGroup.READING, change)]


def _part(keys: int) -> int:
    return -(-keys // READ_FRAC)


_KEYS: dict[str, Hides] = {
    "only the first tiles": lambda b, h, q, kv, keys: kv < _part(keys),
    "only the last tiles": lambda b, h, q, kv, keys: kv >= keys - _part(keys),
    "only the tiles near the query": lambda b, h, q, kv, keys: abs(q - kv) <= _part(keys),
    "all but the last tile": lambda b, h, q, kv, keys: kv < keys - min(TAIL, _part(keys)),
    "all but a tile in the middle": (
        lambda b, h, q, kv, keys: (
            (kv < keys // 2) | (kv >= keys // 2 + min(TAIL, _part(keys)))
        )
    ),
}  # fmt: skip


def _with_keys(hides: Hides) -> Callable[[Subject], Made]:
    def make(subject: Subject) -> Made:
        reference, q, k, v = _attention(subject)
        with applied(reference.precision), reference.bound(subject.draw.state):
            return {0: attention_math.unfused(q, k, v, _hiding(reference, hides))}

    return make


def _same_keys(hides: Hides) -> Callable[[Subject], bool]:
    def is_answer(subject: Subject) -> bool:
        reference, q, k, v = _attention(subject)
        with applied(STRICT), reference.wide(subject.draw.state), Widen():
            made = attention_math.exact(q, k, v, _hiding(reference, hides))
        return is_same(made, subject.goldens[0])

    return is_answer


def _attention(subject: Subject) -> tuple[AttentionReference, Tensor, Tensor, Tensor]:
    assert isinstance(subject.reference, AttentionReference)
    q, k, v = subject.reference.in_order(subject.draw)
    return subject.reference, q, k, v


def _hiding(reference: AttentionReference, hides: Hides) -> attention_math.Mods:
    keys, own = reference.sizes.Skv, reference.mods.mask_mod

    def mask(b: Any, h: Any, q: Any, kv: Any) -> Any:
        read = hides(b, h, q, kv, keys)
        return read if own is None else torch.logical_and(own(b, h, q, kv), read)

    return dataclasses.replace(reference.mods, mask_mod=mask)
