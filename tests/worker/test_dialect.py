"""Triton or Gluon is told by the kernels that a forward launches, not by those that it names."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.core.verdict import Stage, Status
from hotloop.worker.dialect import wrong_dialect


def kernel(name: str, *, gluon: bool, launched: bool = True) -> dict[str, Any]:
    return {"name": name, "is_gluon": gluon, "grids": [[4, 1, 1]] if launched else []}


GLUON, TRITON = kernel("g", gluon=True), kernel("t", gluon=False)
IDLE = kernel("g", gluon=True, launched=False)


@pytest.mark.parametrize(
    ("language", "kernels", "is_followed"),
    [
        ("gluon", [GLUON], True),
        ("gluon", [TRITON, GLUON], True),
        ("gluon", [TRITON], False),  # its Gluon kernel may come later
        ("gluon", [], False),
        ("triton", [TRITON], True),
        ("triton", [TRITON, IDLE], True),
        ("triton", [], True),
        ("cuda", [TRITON, GLUON], True),
    ],
)
def test_what_may_be_honest_passes(
    language: str, kernels: list[dict[str, Any]], is_followed: bool
) -> None:
    assert wrong_dialect(language, kernels, is_followed=is_followed) is None


@pytest.mark.parametrize(
    ("language", "kernels", "is_followed", "rule", "words"),
    [
        ("gluon", [TRITON], True, "language", "expected a kernel in gluon, got a Triton one"),
        ("gluon", [TRITON, IDLE], True, "language", "launches `t` and no"),
        ("gluon", [IDLE], True, "no_kernel", "launches none"),
        ("gluon", [], True, "no_kernel", "launches none"),
        ("triton", [GLUON], True, "language", "expected a kernel in triton, got a Gluon one"),
        ("triton", [TRITON, GLUON], False, "language", "launches `g`"),
    ],
)
def test_the_other_dialect_is_refused_in_one_line(
    language: str, kernels: list[dict[str, Any]], is_followed: bool, rule: str, words: str
) -> None:
    found = wrong_dialect(language, kernels, is_followed=is_followed)
    assert found is not None
    assert (found.status, found.stage) == (Status.REJECTED_STATIC, Stage.COMPILE)
    assert found.evidence.details["rule"] == rule
    assert words in found.evidence.message
    assert "\n" not in found.evidence.message


def test_a_kernel_that_only_says_something_like_gluon_is_none() -> None:
    told = {**TRITON, "is_gluon": "yes"}  # the lane's answer is a claim
    assert wrong_dialect("gluon", [told], is_followed=True) is not None
