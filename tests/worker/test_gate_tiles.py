"""The tile rule passes what luck does to an honest tile and refuses one wrong tile of thousands."""

import pytest
import torch

from hotloop.worker.bound import BoundBuilder, reseeded
from hotloop.worker.compare import TILE, gate, make_bound
from hotloop.worker.tile_law import TileLaw, luck
from hotloop.worker.tile_ranks import beyond_rank

SEEDS = 3
MANY_SEEDS = 20


def generator(seed):
    return torch.Generator().manual_seed(seed)


def tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def in_chunks(a, b, step, *, reverse=False, wide=torch.float32):
    out = torch.zeros(a.shape[0], b.shape[1], dtype=wide)
    starts = range(0, a.shape[1], step)
    for k in reversed(starts) if reverse else starts:
        out += (a[:, k : k + step].float() @ b[k : k + step].float()).to(wide)
    return out


def split_k(a, b, parts):
    step = a.shape[1] // parts
    pieces = [
        in_chunks(a[:, i : i + step], b[i : i + step], 8) for i in range(0, step * parts, step)
    ]
    while len(pieces) > 1:
        pieces = [p + q for p, q in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]


class Product:
    """256 x 1024 products over K = 96: 16 tiles."""

    def __init__(self, seed, dtype):
        gen = generator(seed)
        self.dtype = dtype
        self.a = torch.randn(256, 96, generator=gen).to(dtype)
        self.b = torch.randn(96, 1024, generator=gen).to(dtype)
        self.golden = self.a.double() @ self.b.double()
        self.members = [
            (self.a.float() @ self.b.float()).to(dtype),
            in_chunks(self.a, self.b, 1).to(dtype),
            split_k(self.a, self.b, 4).to(dtype),
        ]

    def honest(self):
        yield in_chunks(self.a, self.b, 4)
        yield in_chunks(self.a, self.b, 16, reverse=True)
        yield split_k(self.a, self.b, 8)
        yield in_chunks(self.a, self.b, 1, reverse=True)

    def low(self):
        """Accumulate in bfloat16, which is a wrong product in every tile."""
        return in_chunks(self.a, self.b, 2, wide=torch.bfloat16).to(self.dtype)


class Chain:
    """An element-wise chain over 512 Ki elements: 32 tiles whose sizes span four decades."""

    def __init__(self, seed, dtype=torch.float32):
        gen = generator(seed)
        self.dtype = dtype
        scale = 10 ** (4 * torch.rand(512, 1, generator=gen) - 2)
        self.x = torch.randn(512, 1024, generator=gen) * scale
        self.golden = self.chain(self.x.double()).contiguous()
        self.members = [self.chain(self.x), self.x * (1 / (1 + (-self.x).exp())) * 0.5]

    @staticmethod
    def chain(x):
        return torch.nn.functional.silu(x) / 2

    def honest(self):
        x = self.x
        yield torch.where(x >= 0, x / (1 + (-x).exp()), x * x.exp() / (1 + x.exp())) * 0.5
        yield x / 2 / (1 + torch.exp2(x * -1.4426950408889634))
        yield 0.5 * (x * torch.sigmoid(x))

    def low(self):
        return self.chain(self.x.bfloat16()).float()


def channels(seed):
    """A convolution of one tap with TF32 operands, divided, through a leaky ReLU: 64 tiles.

    Inputs are positive, so a channel is nearly all above or all below zero, as its weights say: its
    tile is then 100 times smaller, and its errors as well.
    """
    gen = generator(seed)
    x = torch.rand(2, 8, TILE, generator=gen)
    w = torch.randn(32, 8, generator=gen)

    def forward(x, w):
        return torch.nn.functional.leaky_relu(w @ x / 2, 0.01)

    golden = forward(x.double(), w.double())
    eager = forward(tf32(x), tf32(w))
    plain = torch.zeros(2, 32, TILE)
    for c in range(8):
        plain += tf32(w)[:, c : c + 1] * tf32(x)[:, c : c + 1]
    return golden, eager, [forward(x, w), torch.where(plain > 0, plain, plain * 0.01) * 0.5]


def refused_honest(case, seeds):
    found = []
    for seed in range(seeds):
        made = case(seed)
        bound = make_bound(made.golden, made.members, made.dtype, exact=False)
        for i, output in enumerate(made.honest()):
            result = gate(output.to(made.dtype), made.golden, bound)
            found += [(seed, i, result.rule, result.bad_tiles)] if not result.passed else []
    return found


CASES = {
    "float32 product": lambda seed: Product(seed, torch.float32),
    "bfloat16 product": lambda seed: Product(seed, torch.bfloat16),
    "float16 product": lambda seed: Product(seed, torch.float16),
    "chain": Chain,
}


@pytest.mark.parametrize("name", ["float32 product", "bfloat16 product"])
def test_no_honest_order_of_sums_is_refused(name):
    assert refused_honest(CASES[name], SEEDS) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_honest_order_of_sums_is_refused_on_many_seeds(name):
    assert refused_honest(CASES[name], MANY_SEEDS) == []


def wrong_tiles(made, other):
    """Yield kinds of one wrong tile, as (kind, values)."""
    good = made.members[0].reshape(-1)
    where = (7 * TILE, 8 * TILE)
    span = slice(*where)
    width = made.golden.shape[-1]
    yield "zeros", span, torch.zeros_like(good[span])
    yield "stale", span, other.members[0].reshape(-1)[span]
    yield "a row late", span, good[where[0] - width : where[1] - width]
    yield "its neighbour", span, good[where[1] : where[1] + TILE]
    yield "narrow sums", span, made.low().reshape(-1)[span]


@pytest.mark.parametrize("name", CASES)
def test_one_wrong_tile_is_refused_whatever_is_wrong_with_it(name):
    made, other = CASES[name](1), CASES[name](2)
    bound = make_bound(made.golden, made.members, made.dtype, exact=False)
    for kind, span, values in wrong_tiles(made, other):
        output = made.members[0].clone()
        output.view(-1)[span] = values
        result = gate(output, made.golden, bound)
        assert not result.passed, kind
        assert result.bad_tiles == 1, kind


@pytest.mark.slow
def test_one_wrong_tile_of_thousands_is_refused():
    x = torch.randn(3000 * TILE, generator=generator(3))
    golden = Chain.chain(x.double())
    eager = Chain.chain(x)
    bound = make_bound(golden, [eager], torch.float32, exact=False)
    assert gate(eager, golden, bound).passed
    for tile in (0, 1777, 2999):
        span = slice(tile * TILE, (tile + 1) * TILE)
        for values in (torch.zeros(TILE), eager[span].roll(1), eager[span].bfloat16().float()):
            kept = eager[span].clone()
            eager[span] = values
            result = gate(eager, golden, bound)
            eager[span] = kept
            assert not result.passed
            assert result.bad_tiles == 1


def test_another_draw_may_exchange_large_and_small_tiles():
    golden, eager, others = channels(0)
    known = make_bound(golden, [eager, *others], torch.float32, exact=False)
    held_to_anothers_place = 0
    for seed in range(1, 1 + SEEDS):
        golden, eager, others = channels(seed)
        bound = reseeded(known, golden, [])
        for output in (eager, *others):
            result = gate(output, golden, bound)
            assert result.passed, (seed, result.rule, result.bad_tiles)
        error = (eager.double() - golden).square().view(-1, TILE).sum(dim=1).sqrt()
        by_place = 4 * known.envelope_tile.sqrt() + bound.floor_tile.sqrt()
        held_to_anothers_place += int((error > by_place).any())
    assert held_to_anothers_place == SEEDS  # place by place every one of them would be refused


def test_a_wrong_tile_of_another_draw_is_refused():
    golden, eager, others = channels(0)
    known = make_bound(golden, [eager, *others], torch.float32, exact=False)
    golden, eager, _ = channels(1)
    bound = reseeded(known, golden, [eager])
    size = bound.golden_tile
    for tile in (int(size.argmin()), int(size.argmax())):
        row = eager.view(-1, TILE)[tile]
        for values in (torch.zeros(TILE), row.roll(1), row * 1.01):
            output = eager.clone()
            output.view(-1, TILE)[tile] = values
            result = gate(output, golden, bound)
            assert not result.passed
            assert result.bad_tiles == 1


def shared_errors(gen, sizes, members):
    """One error a tile, shared by its elements: a normaliser's; the worst of `members` draws."""
    luck_of = torch.randn(members, sizes.numel(), dtype=torch.float64, generator=gen).abs()
    return 1e-6 * sizes * luck_of.amax(dim=0)


@pytest.mark.parametrize("tiles", [16, 1024])
def test_a_tile_where_the_envelope_was_lucky_holds_nobody_to_it(tiles):
    gen = generator(tiles)
    refused = refused_by_own_tile = 0
    for _ in range(3200 // tiles + 20):
        sizes = 10 ** torch.randn(tiles, dtype=torch.float64, generator=gen)
        envelope, other = (shared_errors(gen, sizes, n) for n in (3, 1))
        law = TileLaw.of(sizes, envelope)
        factors = law.factors(torch.full_like(sizes, TILE))
        limit = torch.maximum(4 * envelope, factors * law.typical(sizes))
        refused += bool((other > limit).any())
        refused_by_own_tile += bool((other > 4 * envelope).any())
        assert float(factors.max()) <= 2 * luck(1) < 10.5
        assert float((limit / sizes).max()) < 1e-4  # a wrong tile is off by its own size
    assert refused == 0
    assert refused_by_own_tile >= 10


def test_independent_errors_leave_the_factor_at_four():
    gen = generator(5)
    sizes = 10 ** torch.randn(512, dtype=torch.float64, generator=gen)
    errors = 1e-6 * sizes * (1 + 0.006 * torch.randn(512, dtype=torch.float64, generator=gen))
    for law in (TileLaw.of(sizes, errors), TileLaw.of(sizes, torch.full_like(errors, 1e-6))):
        assert law.factors(torch.full_like(sizes, TILE)).unique().tolist() == [4.0]
    assert TileLaw.of(sizes, errors).grows
    assert not TileLaw.of(sizes, torch.full_like(errors, 1e-6)).grows


def test_a_tile_that_is_not_full_has_its_own_luck():
    golden = torch.rand(TILE + 1, dtype=torch.float64, generator=generator(1)) + 1
    eager = (golden * (1 + 1e-5 * torch.randn(TILE + 1, generator=generator(2)))).float()
    eager[-1] = golden[-1]  # lucky: no error at all
    bound = make_bound(golden, [eager], torch.float32, exact=False)
    output = eager.clone()
    output[-1] *= 1 + 4e-5
    assert gate(output, golden, bound).passed
    output[-1] *= 1 + 4e-4
    assert gate(output, golden, bound).rule == "tail"


def test_an_output_of_one_element_is_held_to_its_luck_too():
    golden = torch.tensor([3.0], dtype=torch.float64)
    bound = make_bound(golden, [(golden * (1 + 1e-5)).float()], torch.float32, exact=False)
    assert gate((golden * (1 - 9e-5)).float(), golden, bound).passed
    assert gate((golden * (1 - 2e-4)).float(), golden, bound).rule == "bulk"
    assert not gate(torch.zeros(1), golden, bound).passed


def test_members_may_be_added_one_at_a_time():
    made = Product(1, torch.float32)
    builder = BoundBuilder(made.golden, torch.float32)
    for member in made.members:
        builder.add(member)
    one, all_at_once = builder.build(), make_bound(
        made.golden, made.members, torch.float32, exact=False
    )  # fmt: skip
    assert torch.equal(one.tile_limit, all_at_once.tile_limit)
    assert one.envelope_rmse == all_at_once.envelope_rmse > 0


class NearTies:
    """Rows of a softmax that one key decides, but for a few where two keys all but tie.

    128 tiles of 64 rows. The error of a row is p (1 - p) times the rounding of its scores, which
    nothing about the golden's size shows.
    """

    def __init__(self, seed, rows=8192, width=256):
        self.gen = generator(seed)
        self.values = torch.randn(2, 1, width, dtype=torch.float64, generator=self.gen)
        self.scores = 300 * torch.randn(rows, 1, dtype=torch.float64, generator=self.gen)
        self.golden = self.mix(self.scores)

    def mix(self, scores):
        p = scores.sigmoid()
        return p * self.values[0] + (1 - p) * self.values[1]

    def implementation(self, rounding=1e-3):
        noise = torch.randn(self.scores.shape, dtype=torch.float64, generator=self.gen)
        return self.mix(self.scores + rounding * noise).float()


def test_near_ties_of_a_softmax_are_bad_luck_that_every_implementation_has():
    beyond_limit = 0
    for seed in range(SEEDS):
        ties = NearTies(seed)
        members = [ties.implementation() for _ in range(3)]
        bound = make_bound(ties.golden, members, torch.float32, exact=False)
        for _ in range(6):
            output = ties.implementation()
            result = gate(output, ties.golden, bound)
            assert result.passed, (seed, result.rule, result.bad_tiles)
            beyond_limit += int((result.stats.tile_sum_sq.sqrt() > bound.tile_limit).sum())
    assert beyond_limit  # by its own place and the size of its values alone, one is refused


def test_a_wrong_row_is_refused_beside_near_ties():
    ties = NearTies(7)
    members = [ties.implementation() for _ in range(3)]
    bound = make_bound(ties.golden, members, torch.float32, exact=False)
    decided, other = int(ties.scores.argmax()), int(ties.scores.argmin())
    for kind, values in (
        ("zeros", 0.0),
        ("the other key", members[0][other]),
        ("one per cent", members[0][decided] * 1.01),
    ):
        output = members[0].clone()
        output[decided] = values
        result = gate(output, ties.golden, bound)
        assert not result.passed, kind
    less_exact = ties.implementation(rounding=2e-2)
    assert not gate(less_exact, ties.golden, bound).passed


def test_as_many_bad_tiles_as_the_envelope_has_and_no_more():
    sizes = torch.ones(64, dtype=torch.float64)
    envelope = torch.full_like(sizes, 1e-6)
    envelope[:3] = 1e-2
    for count in range(8):
        errors = torch.full_like(sizes, 1e-6)
        errors[10 : 10 + count] = 1.9e-2
        beyond = beyond_rank(errors > 1e-3, errors, envelope, sizes)
        assert beyond.nonzero()[:, 0].tolist() == list(range(10, 10 + count)) * (count > 3)
    errors[10:18] = 2.1e-2
    assert int(beyond_rank(errors > 1e-3, errors, envelope, sizes).sum()) == 8


@pytest.mark.parametrize("kind", ["zeros", "halves", "eight bits"])
def test_ill_tiles_of_the_envelope_excuse_no_wrong_ones(kind):
    """Sixteen rows of sines of huge arguments, where every float32 implementation is lost."""
    gen = generator(0)
    x = torch.randn(128, TILE, generator=gen)
    turns, scale = torch.ones(128, 1), torch.ones(128, 1)
    turns[:16] = 1.6e7
    scale[16] = 30.0  # so that the output as a whole is well-conditioned

    def wave(x, turns, scale):
        return scale * torch.sin(x * turns + turns * 0.37)

    golden = wave(x.double(), turns.double(), scale.double())
    members = [
        wave(x, turns, scale),
        scale * torch.sin((x + 0.37) * turns),
        scale * torch.sin(torch.addcmul(turns * 0.37, x * 0.5, turns * 2)),
    ]
    bound = make_bound(golden, members, torch.float32, exact=False)
    assert bound.conditioning < 0.1
    honest = scale * torch.sin(turns * 0.37 + turns * x)
    assert gate(honest, golden, bound).passed
    for count in (1, 16):
        output = honest.clone()
        wrong = {"zeros": 0.0, "halves": 0.5}
        if kind in wrong:
            output[-count:] *= wrong[kind]
        else:
            output[-count:] = output[-count:].to(torch.float8_e5m2).float()
        result = gate(output, golden, bound)
        assert not result.passed
        assert result.bad_tiles == count


def test_errors_of_large_values_excuse_none_of_small_ones():
    sizes = torch.ones(64, dtype=torch.float64)
    sizes[32:] = 1e-3
    envelope = 1e-6 * sizes
    envelope[:16] = 1e-2
    errors = envelope.clone()

    def beyond(errors):
        return int(beyond_rank(errors > 4 * envelope, errors, envelope, sizes).sum())

    errors[40] = 1e-4
    assert beyond(errors) == 1
    errors[40] = envelope[40]
    errors[20] = 1e-2
    assert beyond(errors) == 1  # 17 where 16 may be
    errors[3] = 1e-6
    assert beyond(errors) == 0
