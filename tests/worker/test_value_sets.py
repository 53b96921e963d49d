"""Outputs that torch made in pieces are told, those that a kernel changed are not."""

from types import SimpleNamespace

import pytest
import torch

from hotloop.worker import value_sets
from hotloop.worker.value_sets import MAX_PIECES, ValueSets

SHAPE = (48, 64)


def values(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def told(results, output):
    sets = ValueSets([output])
    for name, result in results:
        sets.keep(name, result)
    return sets.answers([output])


PIECES = {
    "whole": lambda y: [y],
    "rows": lambda y: y.chunk(4),
    "columns": lambda y: y.chunk(4, dim=1),
    "tiles": lambda y: [tile for rows in y.chunk(3) for tile in rows.chunk(4, dim=1)],
    "padded": lambda y: [torch.cat([y, y[:2]])],
    "transposed": lambda y: [y.t().contiguous()],
    "complex": lambda y: [torch.complex(y.float(), y.flip(0).float())],
    "in float64": lambda y: [y.double()],
}


@pytest.mark.parametrize("way", PIECES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_an_output_made_in_pieces_is_told(way, dtype):
    y = values(*SHAPE, dtype=dtype)
    assert told([("mm", part) for part in PIECES[way](y)], y) == [("mm", 0)]


def by_selection(y):
    return torch.nn.functional.max_pool1d(y[None], 2)[0]


CHANGED = {
    "relu": torch.relu,
    "clamped far out": lambda y: y.clamp(-2.5, 2.5),
    "scaled": lambda y: y * 1.5,
    "sorted": lambda y: y.flatten().sort().values.view(y.shape),
    "pooled": by_selection,
    "rounded": torch.round,
    "half of it": lambda y: torch.cat([y[:24], y[24:] + 1]),
    "added": lambda y: y + values(*SHAPE, seed=1).to(y.dtype),
}


@pytest.mark.parametrize("way", CHANGED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_a_kernel_made_of_a_result_is_not_torchs(way, dtype):
    y = values(*SHAPE, dtype=dtype)
    parts = [("mm", part) for part in y.chunk(4)]
    assert told([*parts, ("mm", y), ("add", y + 2)], CHANGED[way](y)) == []


@pytest.mark.parametrize(
    "few",
    [torch.zeros(SHAPE), torch.ones(SHAPE), values(*SHAPE).sign(), (values(*SHAPE) > 0).float()],
)
def test_few_values_tell_nothing(few):
    assert told([("mul", few.clone())], few) == []


def test_pieces_of_two_operations_are_told_by_the_chief():
    y = values(*SHAPE)
    assert told([("mm", y[:32]), ("bmm", y[32:])], y) == [("mm", 0)]
    assert told([("mm", y[:32])], y) == []


def test_integers_and_very_small_outputs_are_left_out():
    assert told([("sum", torch.arange(64))], torch.arange(64)) == []
    assert told([("sum", values(4))], values(4)) == []
    large = values(MAX_PIECES * 4)
    assert told([("sum", part) for part in large.split(2)], large) == []


def test_many_cheap_operations_hide_nothing_and_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(value_sets, "MAX_WORDS", 1 << 15)
    monkeypatch.setattr(value_sets, "MAX_ENTRIES", 64)
    y = values(*SHAPE)
    sets = ValueSets([y])
    sets.keep("mm", y)
    for i in range(60):
        sets.keep("add", y + i)
    wanted = sets._wanted[0]
    assert wanted.n_kept <= 1 << 15
    assert len(wanted.entries) <= 66
    assert ("mm", 0) in sets.answers([y])


def test_a_large_output_is_sampled_alike_on_both_sides(monkeypatch):
    monkeypatch.setattr(value_sets, "KEPT", 256)
    monkeypatch.setattr(value_sets, "PIECE", 1 << 10)
    y = values(256, 300)
    assert told([("mm", part) for part in y.chunk(5)], y) == [("mm", 0)]
    assert told([("mm", part) for part in y.chunk(5)], torch.relu(y)) == []


@pytest.mark.parametrize("shape", [(1000,), (1000, 1), (1, 1000), (300, 2), (7, 50, 3)])
def test_pieces_hold_the_words_of_the_whole(shape, monkeypatch):
    tensor = torch.randn(shape)
    wanted = SimpleNamespace(size=4, dtype=torch.float32)

    def words(d):
        return torch.cat(list(value_sets._words(tensor, d, wanted))).sort().values

    long = [d for d in range(tensor.dim()) if shape[d] >= value_sets._NEIGHBOURS[4]]
    whole = [words(d) for d in long]
    monkeypatch.setattr(value_sets, "PIECE", 64)
    assert len(list(value_sets._pieces(tensor, long[0], 2))) > 1
    for d, expected in zip(long, whole, strict=True):
        assert torch.equal(words(d), expected)
