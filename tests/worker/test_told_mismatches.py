"""What a judge tells of kernels that are wrong in a known way, run in the interpreter."""

import pytest
from scaled_rows import triton, verdict

from hotloop.core.verdict import Status
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def details_of(judge: LocalVerifier, *changes: tuple[str, str]) -> dict:
    found = verdict(judge, triton(*changes))
    assert found.status is Status.INCORRECT_NUMERICAL, found.message
    assert found.evidence is not None
    return dict(found.evidence.details)


def test_a_constant_that_is_off_shows_as_a_difference(cpu_judge: LocalVerifier) -> None:
    details = details_of(cpu_judge, (" + 1", " + 3"))
    assert details["difference"]["median"] == pytest.approx(2, rel=1e-3)
    assert details["difference"]["share"] == 1.0
    assert "origin" not in details


def test_a_row_offset_shows_as_a_shift(cpu_judge: LocalVerifier) -> None:
    details = details_of(
        cpu_judge,
        ("    tl.store(y_ptr + i, y, mask=inside)",
         "    tl.store(y_ptr + (i + COLUMNS) % n, y, mask=inside)"),
    )  # fmt: skip
    assert details["origin"] == {"kind": "shift", "dim": 0, "by": -1, "wraps": True}


def test_a_last_part_that_is_left_out_is_boxed(cpu_judge: LocalVerifier) -> None:
    details = details_of(cpu_judge, ("    inside = i < n",
                                     "    inside = i < n - COLUMNS"),
                         ("torch.empty_like(x)", "torch.zeros_like(x)"))  # fmt: skip
    assert details["box"] == [[7, 7], [0, 47]]
    assert [p["kind"] for p in details["patterns"]] == ["one"]
