"""Fakes of the output: results for which nothing was computed, or that lie in the wrong place.

Each is tried for one output at a time, beside honest other ones. Only those that make sense for an
output's shape are built; the rest is named with the reason (`skipped`).

Covered: zeros, ones, the mean, copies of inputs, an earlier call's result, results moved by one,
transposed, with the last tile or rows missing, with one row taken from beside it. Not covered:
inputs that are not read (`audit_reading.py`), lower precision (`audit_precision.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from hotloop.core.audit import FakeGroup, Trial, TrialState
from hotloop.worker.audit_subject import Made, Subject, is_same
from hotloop.worker.compare import TILE
from hotloop.worker.poison import fill

ROW_BLOCK = 128
"""Rows of the block that is missing; an eighth of the rows where there are few."""

Change = Callable[[Subject, Tensor], Tensor | None]
"""Makes a fake from an output's honest (or expected) values; None where the shape has no such."""


class NothingToTry(Exception):
    """A fake makes no sense here after all; the message says why."""


class Consequence(StrEnum):
    """What follows from a fake that nothing refused."""

    REASON = "reason"
    """The problem is not ranked."""
    FINDING = "finding"
    """It is worth knowing."""
    NOTHING = "nothing"
    """It is how such problems are."""


@dataclass(frozen=True, slots=True)
class Fake:
    """One shortcut: how its outputs are made, and whether they are the reference's own."""

    name: str
    group: FakeGroup
    make: Callable[[Subject], Made | None]
    """None where it cannot be made of these inputs. May raise `NothingToTry`."""
    is_answer: Callable[[Subject], bool] = lambda subject: False
    """Asked where the checks let it pass: is it the mathematical answer on these inputs?"""
    if_accepted: Consequence = Consequence.REASON
    """What follows when it passes on all inputs."""
    if_same: Consequence = Consequence.FINDING
    """What follows when it passes on all inputs, with the reference's own values."""


def skipped(name: str, group: FakeGroup, why: str) -> Trial:
    """Return the record of a fake that was not tried."""
    return Trial(name=name, group=group, state=TrialState.SKIPPED, why=why)


def output_fakes(subject: Subject) -> tuple[list[Fake], list[Trial]]:
    """Return the fakes for each output of these shapes, and those that make no sense with why."""
    fakes: list[Fake] = []
    left: list[Trial] = []
    for index, golden in enumerate(subject.goldens):
        tag = f"output {index}: " if len(subject.goldens) > 1 else ""
        if golden.numel() == 0:
            left.append(skipped(f"{tag}all", FakeGroup.OUTPUT, "the output has no elements"))
            continue
        fakes += _constants(index, tag, golden.numel())
        fakes.append(Fake(f"{tag}an earlier call's result", FakeGroup.OUTPUT, _old(index)))
        for name, change in _copies(subject, golden).items():
            fakes.append(_moved(index, tag + name, change, Consequence.REASON))
        changes, reasons = _changes(golden)
        fakes += [_moved(index, tag + name, change) for name, change in changes.items()]
        left += [skipped(tag + n, FakeGroup.OUTPUT, why) for n, why in reasons.items()]
        if not _copies(subject, golden):
            why = "no input has the output's shape"
            left.append(skipped(f"{tag}copy of an input", FakeGroup.OUTPUT, why))
    return fakes, left


def _constants(index: int, tag: str, count: int) -> list[Fake]:
    def of(value: Callable[[Tensor], Tensor]) -> Callable[[Subject], Made]:
        return lambda s: {index: value(s.goldens[index]).to(s.case.bounds[index].dtype)}

    def mean(golden: Tensor) -> Tensor:
        return torch.full_like(golden, golden.double().mean().item())

    values = {"zeros": torch.zeros_like, "ones": torch.ones_like, "the mean everywhere": mean}
    if count == 1:
        del values["the mean everywhere"]  # it is the value itself
    return [Fake(tag + name, FakeGroup.OUTPUT, of(value)) for name, value in values.items()]


def _old(index: int) -> Callable[[Subject], Made]:
    return lambda s: {index: s.old()[index]}


def _moved(
    index: int, name: str, change: Change, if_same: Consequence = Consequence.FINDING
) -> Fake:
    """Return the fake that changes an honest output; changed expected values may be the same."""

    def make(subject: Subject) -> Made | None:
        made = change(subject, subject.honest[index])
        return None if made is None else {index: made}

    def is_answer(subject: Subject) -> bool:
        golden = subject.goldens[index]
        made = change(subject, golden)
        return made is not None and is_same(made, golden)

    return Fake(name, FakeGroup.OUTPUT, make, is_answer, if_same=if_same)


def _copies(subject: Subject, golden: Tensor) -> dict[str, Change]:
    def copy_of(position: int) -> Change:
        return lambda s, values: s.draw.inputs[position]

    names = iter(subject.reference.specs()[0])
    found: dict[str, Change] = {}
    for i, value in enumerate(subject.draw.inputs):
        if isinstance(value, Tensor):
            name = next(names).name
            if value.shape == golden.shape:
                found[f"copy of {name}"] = copy_of(i)
    return found


def _changes(golden: Tensor) -> tuple[dict[str, Change], dict[str, str]]:
    changes: dict[str, Change] = {}
    reasons: dict[str, str] = {}
    if golden.numel() < 2:
        reasons["moved, transposed or with a part missing"] = "the output has one element"
        return changes, reasons
    for d, size in enumerate(golden.shape):
        if size > 1:
            changes[f"moved by one along dimension {d}"] = _roll(d)
    if golden.dim() >= 2 and golden.shape[-1] == golden.shape[-2]:
        changes["transposed"] = lambda s, values: values.mT
    else:
        reasons["transposed"] = "the output is not square"
    for region, cut in (("tile", _last_tile), ("rows", _last_rows)):
        changes[f"last {region} zero"] = _missing(cut, lambda s, part: part.zero_())
        changes[f"last {region} never written"] = _missing(cut, lambda s, part: fill(part))
    changes["one row taken from beside it"] = _row_beside
    return changes, reasons


def _roll(dim: int) -> Change:
    return lambda s, values: values.roll(1, dim) if values.shape[dim] > 1 else None


def _missing(cut: Callable[[Tensor], Tensor], spoil: Callable[[Subject, Tensor], object]) -> Change:
    def change(subject: Subject, values: Tensor) -> Tensor:
        made = values.clone(memory_format=torch.contiguous_format)
        spoil(subject, cut(made))
        return made

    return change


def _last_tile(values: Tensor) -> Tensor:
    flat = values.view(-1)
    return flat[-TILE:] if flat.numel() > TILE else flat[-max(1, flat.numel() // 4) :]


def _last_rows(values: Tensor) -> Tensor:
    rows = values.shape[0] if values.dim() == 1 else values.numel() // values.shape[-1]
    table = values.view(rows, -1)
    return table[-min(ROW_BLOCK, max(1, rows // 8)) :]


def _row_beside(subject: Subject, values: Tensor) -> Tensor | None:
    made = values.clone(memory_format=torch.contiguous_format)
    table = made.view(-1, 1) if made.dim() == 1 else made.view(-1, made.shape[-1])
    if table.shape[0] < 2:
        return None
    table[-1] = table[-2].clone()
    return made


def stale_tiles(subject: Subject) -> list[Fake]:
    """Return fakes whose last tile or rows still hold an earlier call's values."""

    def fake(index: int, name: str, cut: Callable[[Tensor], Tensor]) -> Fake:
        def make(s: Subject) -> Made:
            made = s.honest[index].clone(memory_format=torch.contiguous_format)
            cut(made).copy_(cut(s.old()[index].contiguous()))
            return {index: made}

        return Fake(name, FakeGroup.OUTPUT, make)

    several = len(subject.goldens) > 1
    return [
        fake(i, f"{f'output {i}: ' if several else ''}last {region} of an earlier call", cut)
        for i, golden in enumerate(subject.goldens)
        if golden.numel() > 1
        for region, cut in (("tile", _last_tile), ("rows", _last_rows))
    ]
