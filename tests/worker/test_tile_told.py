"""A gate that failed on tiles tells of these, not of larger errors elsewhere."""

from __future__ import annotations

import pytest
import torch

from hotloop.core.verdict import CaseResult, Evidence
from hotloop.worker.cases import Case
from hotloop.worker.compare import TILE, Bound, gate, make_bound
from hotloop.worker.correctness import case_result
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.mismatch import describe_mismatch

TILES = 64
SMALL = 3


def sized(seed: int) -> torch.Tensor:
    """Return a golden of ordinary values, but for one tile of values of 4e-4."""
    gen = torch.Generator().manual_seed(seed)
    golden = torch.randn(TILES, TILE, generator=gen, dtype=torch.float64)
    golden[SMALL] *= 4e-4
    return golden


def rounded(golden: torch.Tensor, seed: int) -> torch.Tensor:
    """Return what an implementation in TF32 makes of it: off in proportion to the value."""
    gen = torch.Generator().manual_seed(seed)
    return (golden * (1 + 1e-4 * torch.randn(golden.shape, generator=gen))).float()


def told(
    candidate: torch.Tensor, golden: torch.Tensor, bound: Bound
) -> tuple[CaseResult, Evidence]:
    result = gate(candidate, golden, bound)
    record = case_result(Case("nominal", "negative", 1, (bound,)), 0, bound, result)
    wrong = Wrong(record, candidate, golden, bound, beyond=result.beyond)
    return record, describe_mismatch(wrong)


@pytest.fixture
def golden() -> torch.Tensor:
    return sized(1)


def test_small_values_that_lost_their_bits_are_named(golden: torch.Tensor) -> None:
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    candidate = rounded(golden, 3)
    candidate[SMALL] += 1e-6 * torch.randn(TILE, generator=torch.Generator().manual_seed(4))
    record, evidence = told(candidate, golden, bound)
    assert record.rule == "tile"
    assert record.worst_index[0] == SMALL
    assert evidence.details["box"][0] == [SMALL, SMALL]
    assert all(sample["index"][0] == SMALL for sample in evidence.details["samples"])
    assert evidence.details["small"]["size"] == pytest.approx(4e-4, rel=0.2)
    assert "small values are lost beside large ones" in evidence.message


def test_a_tile_of_ordinary_values_is_told_with_how_far_it_is_off(golden: torch.Tensor) -> None:
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    candidate = rounded(golden, 3)
    place = SMALL + 1
    candidate[place] += 8e-4 * torch.randn(TILE, generator=torch.Generator().manual_seed(4))
    record, evidence = told(candidate, golden, bound)
    assert record.rule == "tile"
    assert record.worst_index[0] == place
    assert evidence.details["box"][0] == [place, place]
    assert "small" not in evidence.details
    assert evidence.details["times_eager_there"] == pytest.approx(8, rel=0.1)
    assert "times the usual" in evidence.message


def test_a_tile_whose_error_is_luck_is_not_told(golden: torch.Tensor) -> None:
    unlucky = 1e-3 * torch.randn(TILE, generator=torch.Generator().manual_seed(5))
    member = rounded(golden, 2)
    member[10] += unlucky
    bound = make_bound(golden, [member], torch.float32, exact=False)
    candidate = rounded(golden, 3)
    candidate[20] += unlucky
    assert gate(candidate, golden, bound).passed  # the envelope is as unlucky in another tile
    candidate[SMALL] += 1e-6 * torch.randn(TILE, generator=torch.Generator().manual_seed(4))
    _, evidence = told(candidate, golden, bound)
    assert evidence.details["box"][0] == [SMALL, SMALL]
    assert "small values are lost" in evidence.message


def test_where_right_ones_make_no_error_there_is_no_factor(golden: torch.Tensor) -> None:
    golden[:SMALL] = 0.0
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    candidate = rounded(golden, 3)
    candidate[1] += 1e-6
    record, evidence = told(candidate, golden, bound)
    assert record.rule == "tile"
    assert evidence.details["exact_there"] is True
    assert "where there should be none" in evidence.message


def test_other_values_in_place_of_small_ones_are_not_lost_bits(golden: torch.Tensor) -> None:
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    candidate = rounded(golden, 3)
    candidate[SMALL] = 0.02 * torch.randn(TILE, generator=torch.Generator().manual_seed(4))
    _, evidence = told(candidate, golden, bound)
    assert "small" not in evidence.details


def test_an_error_of_the_whole_is_told_beside_eagers(golden: torch.Tensor) -> None:
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    candidate = (golden + 1e-2 * torch.randn(golden.shape, dtype=torch.float64)).float()
    record, evidence = told(candidate, golden, bound)
    assert record.rule == "bulk"
    assert "times_eager_there" not in evidence.details
    assert "times eager's own" in evidence.message


def test_an_honest_one_has_nothing_to_tell(golden: torch.Tensor) -> None:
    bound = make_bound(golden, [rounded(golden, 2)], torch.float32, exact=False)
    assert gate(rounded(golden, 3), golden, bound).passed
