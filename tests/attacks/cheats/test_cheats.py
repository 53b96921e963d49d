"""Every cheat of the corpus gets the status it has earned; every honest kernel passes.

Rows run grouped by problem, on one judge: loading a problem costs more than verifying on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import Row, load_problem, load_rows

from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.verify import LocalVerifier
from hotloop.verify.static_rules import check_candidate

HERE = Path(__file__).parent
CHEATS = load_rows(HERE)
HONEST = load_rows(HERE.parent / "honest")
TESTED = [row for row in CHEATS if row.device == "cpu" and row.stage != "static"]
MIN_CHEATS, MIN_HONEST = 40, 25

pytestmark = pytest.mark.timeout(180)


class Bench:
    """A judge that loads a problem when it is not the one that is loaded."""

    def __init__(self) -> None:
        self._judge = LocalVerifier("cpu", call_timeout_s=20.0)
        self._loaded = ""

    def verdict(self, row: Row) -> Verdict:
        if row.problem != self._loaded:
            self._judge.load(load_problem(row.problem))
            self._loaded = row.problem
        return self._judge.verify(row.candidate(), Tier.FAST)

    def close(self) -> None:
        self._judge.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    try:
        yield made
    finally:
        made.close()


def parameters(rows: list[Row]) -> list[object]:
    return [
        pytest.param(row, id=row.name, marks=[] if row.quick else [pytest.mark.slow])
        for row in rows
    ]


@pytest.mark.parametrize("row", parameters(TESTED))
def test_cheat_gets_what_it_has_earned(bench: Bench, row: Row) -> None:
    found = bench.verdict(row)
    print(row.name, found.status, found.message)
    assert found.status in row.expect, found.message


@pytest.mark.parametrize("row", parameters(HONEST))
def test_honest_kernel_passes(bench: Bench, row: Row) -> None:
    found = bench.verdict(row)
    assert found.status is Status.PASSED, found.message


@pytest.mark.parametrize("row", [r for r in CHEATS if r.stage == "static"], ids=lambda r: r.name)
def test_cheat_is_refused_by_its_text(row: Row) -> None:
    found = check_candidate(row.candidate(), load_problem(row.problem).policy)
    assert found is not None
    assert found.rule not in ("no_kernel", "no_code", "unreadable"), found


@pytest.mark.parametrize("row", HONEST, ids=lambda r: r.name)
def test_honest_kernel_is_not_refused_by_its_text(row: Row) -> None:
    assert check_candidate(row.candidate(), load_problem(row.problem).policy) is None


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(CHEATS) >= MIN_CHEATS
    assert len(HONEST) >= MIN_HONEST
    names = [row.name for row in (*CHEATS, *HONEST)]
    assert len(set(names)) == len(names)
    assert all(Status(status) for row in CHEATS for status in row.expect)


def test_no_test_leaves_a_file_behind() -> None:
    assert not os.path.exists("/dev/shm/answer.bin")
