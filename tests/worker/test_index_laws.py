"""Laws of wrong indices: each is found from where elements read, and none from other errors."""

import pytest
import torch

from hotloop.worker.index_laws import FOLLOWED_FRAC, Sources, find_law

SHAPE = (12, 20)


def grid(shape=SHAPE):
    """Return every index of a tensor, one row each."""
    return torch.cartesian_prod(*(torch.arange(n) for n in shape)).reshape(-1, len(shape))


def sources(reads, belongs=None, *, at=None, shape=SHAPE, out_shape=None, summed=None, sound=None):
    """Return what a probe finds of the elements that read another index than they should."""
    at = grid(shape) if at is None else at
    belongs = (at if belongs is None else belongs).double()
    reads = reads.double()
    sound = torch.ones(len(at), dtype=torch.bool) if sound is None else sound
    wrong = ((reads - belongs).abs() > 0.25).any(dim=1) | ~sound
    summed = summed or (False,) * len(shape)
    return Sources(
        at[wrong], out_shape or shape, belongs[wrong], reads[wrong], sound[wrong], shape, summed
    )


def law_of(*args, **kwargs):
    law = find_law(sources(*args, **kwargs))
    return law and {k: v for k, v in law.items() if k not in ("share", "examples")}


def moved(dim, by, shape=SHAPE, *, wraps=False, clamps=False):
    index = grid(shape)
    index[:, dim] += by
    if wraps:
        index[:, dim] %= shape[dim]
    return index.clamp(torch.zeros(2), torch.tensor(shape) - 1).long() if clamps else index


def flat(index, strides):
    position = (index * torch.tensor(strides)).sum(dim=1)
    return torch.stack([position // SHAPE[1], position % SHAPE[1]], dim=1)


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (moved(1, 1, wraps=True), {"kind": "shift", "dim": 1, "by": 1, "wraps": True}),
        (moved(0, -2, clamps=True), {"kind": "shift", "dim": 0, "by": -2, "clamps": True}),
        (grid() * torch.tensor([0, 1]) + torch.tensor([7, 0]),
         {"kind": "constant", "dim": 0, "index": 7}),
        (torch.tensor([0, 19]) + grid() * torch.tensor([1, -1]), {"kind": "reversed", "dim": 1}),
        (grid() % torch.tensor([12, 8]), {"kind": "block", "dim": 1, "block": 8}),
        (grid() // 4 * 4 + (grid() % 4).flip(1),
         {"kind": "tile", "dims": [0, 1], "tile": 4, "within": True}),
        (flat(grid(), (1, 12)), {"kind": "layout", "dims": [0, 1]}),
        (flat(grid(), (17, 1)), {"kind": "stride", "dim": 0, "stride": 17, "right": 20}),
        (flat(grid() - torch.tensor([0, 3]), (20, 1)).remainder(torch.tensor(SHAPE)),
         {"kind": "flat", "by": -3}),
    ],
)  # fmt: skip
def test_each_law_is_recognised(reads, expected):
    assert law_of(reads) == expected


def test_exchanged_indices_of_a_square_are_transposed():
    index = grid((16, 16))
    assert law_of(index.flip(1), shape=(16, 16)) == {"kind": "transposed", "dims": [0, 1]}


def test_a_batch_and_head_number_taken_apart_in_the_wrong_order():
    index = grid((3, 5, 8))
    number = index[:, 0] * 5 + index[:, 1]
    reads = torch.stack([number % 3, number // 3, index[:, 2]], dim=1)
    assert law_of(reads, shape=(3, 5, 8)) == {"kind": "mixed", "dims": [0, 1]}


def test_a_head_of_a_group_by_modulo_where_a_division_belongs():
    at = grid((8, 6))
    belongs = torch.stack([at[:, 0] // 4, at[:, 1]], dim=1)
    reads = torch.stack([at[:, 0] % 2, at[:, 1]], dim=1)
    found = law_of(reads, belongs, at=at, shape=(2, 6), out_shape=(8, 6))
    assert found == {"kind": "modulo", "dim": 0, "out_dim": 0}


def test_a_row_that_follows_the_outputs_column_within_a_tile():
    at = grid((32, 32))
    belongs = torch.stack([at[:, 0], torch.full_like(at[:, 0], 20)], dim=1)
    reads = belongs.clone()
    reads[:, 0] = at[:, 0] // 16 * 16 + at[:, 1] % 16
    found = law_of(reads, belongs, at=at, shape=(32, 41), out_shape=(32, 32), summed=(False, True))
    assert found == {"kind": "crossed", "dim": 0, "out_dims": [0, 1], "tile": 16}


def test_a_sum_that_reads_its_first_block_only():
    at = grid()
    belongs = torch.stack([at[:, 0], torch.full_like(at[:, 0], 63)], dim=1) / 2
    belongs[:, 0] *= 2
    reads = belongs.clone()
    reads[:, 1] = 7.5
    found = law_of(reads, belongs, at=at, shape=(12, 64), out_shape=SHAPE, summed=(False, True))
    assert found == {"kind": "repeats", "dim": 1, "block": 16}


def test_one_wrong_row_is_told_as_that_row_and_as_no_shift():
    reads = grid()
    reads[reads[:, 0] == 5, 0] = 6
    assert law_of(reads) == {"kind": "index", "dim": 0, "reads": 6, "belongs": 5}


def test_what_lies_past_the_end_follows_a_shift_only_if_it_read_nothing_known():
    reads = moved(0, 1)
    past = reads[:, 0] >= SHAPE[0]
    lost = torch.where(past[:, None], -1_000_000_000, reads)
    assert law_of(lost, sound=~past) == {"kind": "shift", "dim": 0, "by": 1}
    own = torch.where(past[:, None], torch.tensor([3, 3]), reads)
    assert law_of(own) is None


def test_examples_say_what_is_read_and_what_belongs():
    found = find_law(sources(moved(1, 1, wraps=True)))
    assert found["share"] == 1.0
    assert found["examples"][0] == {"at": [0, 0], "reads": [0, 1], "belongs": [0, 0]}
    assert found["examples"][-1] == {"at": [11, 19], "reads": [11, 0], "belongs": [11, 19]}


@pytest.mark.parametrize(("spoilt", "is_told"), [(0.03, True), (0.08, False)])
def test_a_law_that_too_few_elements_follow_is_not_told(spoilt, is_told):
    gen = torch.Generator().manual_seed(0)
    reads = moved(1, 1, wraps=True)
    for place in torch.randperm(len(reads), generator=gen)[: int(spoilt * len(reads))].tolist():
        reads[place] = (reads[place] + torch.tensor([5, 7])) % torch.tensor(SHAPE)
    found = find_law(sources(reads))
    assert (found is not None) is is_told
    if found:
        assert FOLLOWED_FRAC <= found["share"] < 1.0


def test_random_places_follow_no_law():
    gen = torch.Generator().manual_seed(1)
    assert law_of(grid()[torch.randperm(len(grid()), generator=gen)]) is None


def test_right_places_follow_no_law():
    """Elements that are wrong although they read what they should are not explained."""
    at = grid()
    sound = torch.ones(len(at), dtype=torch.bool)
    right = Sources(at, SHAPE, at.double(), at.double(), sound, SHAPE, (False, False))
    assert find_law(right) is None


def test_values_that_are_wrong_everywhere_follow_no_law():
    at = grid()
    unsound = torch.zeros(len(at), dtype=torch.bool)
    shifted = moved(1, 1, wraps=True).double()
    assert find_law(Sources(at, SHAPE, at.double(), shifted, unsound, SHAPE, (False,) * 2)) is None


def test_a_few_elements_show_no_law():
    reads = grid()
    reads[:10, 0] += 1
    assert law_of(reads) is None


def test_examples_show_no_index_where_several_are_read():
    at = grid()
    belongs = torch.stack([at[:, 0], at[:, 1] / 2], dim=1)  # as a running sum does
    found = find_law(sources(belongs + torch.tensor([1, 0]), belongs, at=at, shape=(13, 20)))
    assert found["examples"][0] == {"at": [0, 0], "reads": [1, None], "belongs": [0, None]}
