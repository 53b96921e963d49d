"""A case with one element changed: right, made once for a book, forgotten for want of memory."""

import pytest
import torch
from problem_files import forward

from hotloop.worker import changed_case as subject
from hotloop.worker.cases import CaseBook
from hotloop.worker.changed_case import changed_case
from hotloop.worker.known_case import Known
from hotloop.worker.reference import build_reference


class Counting:
    """A reference that counts how often a golden is asked of it."""

    def __init__(self, reference):
        self._reference = reference
        self.goldens = 0

    def __getattr__(self, name):
        return getattr(self._reference, name)

    def golden(self, draw):
        self.goldens += 1
        return self._reference.golden(draw)


@pytest.fixture
def known():
    return known_of("x * 2 + 1")


def known_of(body, inputs="torch.rand(32, 64)"):
    book = CaseBook(Counting(build_reference(forward(body, inputs))), "nominal")
    book.add("shipped", 3, cache_bytes=1 << 20)
    return book, Known(book.reference, book.cases[0], *book.materialise(book.cases[0]))


def test_one_element_differs_and_the_golden_follows(known):
    book, before = known
    checks = []
    after = changed_case(book, before, checks)
    x, changed = before.draw.inputs[0], after.draw.inputs[0]
    assert int((x != changed).sum()) == 1
    assert torch.equal(after.goldens[0], changed.double() * 2 + 1)
    assert after.is_right((changed * 2 + 1,))
    assert not after.is_right((x * 2 + 1,))
    assert checks == []


@pytest.mark.parametrize(
    ("inputs", "into_form"),
    [
        ("torch.tril(torch.rand(32, 32))", torch.tril),
        ("torch.triu(torch.rand(32, 32))", torch.triu),
    ],
)
def test_a_triangle_stays_one_and_changes(inputs, into_form):
    for _ in range(8):  # half of the places are not in it
        book, before = known_of("x * 2 + 1", inputs)
        x, changed = before.draw.inputs[0], changed_case(book, before, []).draw.inputs[0]
        assert int((x != changed).sum()) == 1
        assert torch.equal(changed, into_form(changed))


def test_it_is_made_once_and_again_after_it_was_forgotten(known):
    book, before = known
    first = changed_case(book, before, [])
    made, kept = book.reference.goldens, book.kept_bytes()
    assert changed_case(book, before, []).draw.inputs[0] is first.draw.inputs[0]
    assert book.reference.goldens == made
    book.forget()
    assert book.kept_bytes() < kept
    assert changed_case(book, before, []).draw.inputs[0] is not first.draw.inputs[0]
    assert book.reference.goldens == made + 1


def test_one_of_another_case_is_not_taken_for_it(known):
    book, before = known
    first = changed_case(book, before, [])
    book.add("normal", 5, cache_bytes=1 << 20)
    other = Known(book.reference, book.cases[1], *book.materialise(book.cases[1]))
    assert changed_case(book, other, []).draw.profile == "normal" != first.draw.profile


def test_what_is_too_large_is_not_kept(known, monkeypatch):
    book, before = known
    monkeypatch.setattr(subject, "_has_room", lambda made: False)
    assert changed_case(book, before, []) is not before
    assert book.changed is None


def test_why_there_is_none_is_said_to_every_candidate(known, monkeypatch):
    book, before = known
    monkeypatch.setattr(subject, "MAX_CHANGED_BYTES", 16)
    for _ in range(2):
        checks = []
        assert changed_case(book, before, checks) is before
        assert checks == ["one_element_skipped:large"]
