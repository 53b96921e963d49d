"""Verdicts of the gate on kernels, over many seeds of one value profile."""

from problem_files import forward

from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference

SEEDS = range(10)


def built(body, *inputs):
    """Build the reference of a forward that returns `body` of x, y, ..."""
    return build_reference(forward(body, *inputs))


def book_of(reference, profile):
    """Return the cases of a profile that is had, one a seed; none of them may be left out."""
    assert profile in (*reference.profiles, *reference.final_profiles)
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add(profile, seed, cache_bytes=1 << 26)
    assert len(book.cases) == len(SEEDS)
    return book


def passed(book, kernel, *more):
    """Return on how many seeds a kernel, a function of the inputs and of `more`, passes."""
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        count += gate(kernel(*draw.inputs, *more).contiguous(), golden, case.bounds[0]).passed
    return count
