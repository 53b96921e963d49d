"""A new draw's own errors count: where memory is short for them, room is made, else it is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.load import load_problem
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.reference import build_reference
from hotloop.worker.session import Session

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(64, 1))
    def forward(self, x):
        return torch.clamp(x.half().float() + self.shift, 0.0, 1.0)
def get_inputs():
    return [torch.rand(64, 16384)]
"""
"""Rounds as products in TF32 do. Each row is a tile of the gate; by its parameter it saturates."""
PROBLEM = Problem(name="saturates", kind=ProblemKind.KERNELBENCH, source=SOURCE)


class Short:
    """A reference whose eager runs out of memory so many times, once told to."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference
        self.left = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reference, name)

    def eager(self, draw: Any) -> Any:
        if self.left:
            self.left -= 1
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self._reference.eager(draw)

    def envelope(self, draw: Any) -> Any:
        return {"eager": self.eager(draw)}


def renewed(times: int) -> tuple[CaseBook, bool, list[str]]:
    """Return a book of a new draw, whether eager itself passes there, and what was freed."""
    short: Any = Short(build_reference(load_problem(PROBLEM, device="cpu", settings={})))
    known = CaseBook(short, "nominal")
    known.add("shipped", 3, cache_bytes=0)
    freed: list[str] = []
    book = CaseBook(short, "nominal", free_others=lambda: freed.append("others"))
    short.left = times
    book.add_like(known.cases[0], 4)
    case = book.cases[0]
    assert case.kept is not None
    draw, goldens = case.kept
    return book, gate(short.eager(draw)[0], goldens[0], case.bounds[0]).passed, freed


def test_room_is_made_for_eager_on_a_new_draw() -> None:
    book, passes, freed = renewed(1)
    assert passes
    assert freed == ["others"]
    assert book.notes == []


def test_without_it_what_saturates_would_be_refused_and_a_note_says_why() -> None:
    book, passes, freed = renewed(2)
    assert not passes
    assert freed == ["others"]
    assert any("does not fit beside the golden" in note for note in book.notes)


def test_the_final_tier_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(PROBLEM, "cpu", isolation="T0", tracing=False)
    skipped: dict[str, str] = {}

    def none(self: object, draw: object) -> object:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ModelReference, "eager", none)
    books = iter(session.fresh_books(session.nominal, skipped))
    for _ in range(2):  # a second draw of the profile says nothing new
        next(books)
    (why,) = skipped.values()
    assert why == "eager does not fit beside the golden of 'shipped' inputs"
    session.close()
