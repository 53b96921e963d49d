"""Rows that share a scale are refused where they share it, and right kernels of any scale pass."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.apart import FACTORS, borders, holds, parts
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference

SEEDS = range(5)
ROWS, INNER, COLUMNS = 512, 64, 1024
WEIGHT = f"self.w = torch.nn.Parameter(torch.randn({INNER}, {COLUMNS}) / 8)"


@pytest.fixture(scope="module")
def products():
    """Values far apart of a product, on several seeds."""
    reference = build_reference(forward("x @ self.w", f"torch.rand({ROWS}, {INNER})", init=WEIGHT))
    assert reference.reach.factors == FACTORS[0]
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add("negative", seed, cache_bytes=1 << 28)
    return book


def passes(book, kernel):
    """Return on how many seeds a kernel, a function of x and w, passes."""
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        count += gate(kernel(draw.inputs[0], draw.state["w"]), golden, case.bounds[0]).passed
    return count


def power_of_two(largest):
    return torch.exp2(torch.floor(torch.log2(largest.clamp(min=torch.finfo(largest.dtype).tiny))))


def halves(x, scale):
    """x as two float16 parts, its largest value at 2**10."""
    y = x / scale * 2.0**10
    high = y.half()
    return high.float(), (y - high.float()).half().float()


def product_of_halves(x, w, scale):
    """x @ w in float32's precision as three products of float16 parts."""
    columns = power_of_two(w.abs().amax(0, keepdim=True))
    (a, b), (c, d) = halves(x, scale), halves(w, columns)
    return (a @ c + (a @ d + b @ c)) * (scale * columns * 2.0**-20)


def by_tiles(x, w, rows):
    tops = [t.abs().amax().expand(len(t), 1) for t in x.split(rows)]
    return product_of_halves(x, w, power_of_two(torch.cat(tops)))


def by_bfloat16(x, w):
    """Six products of three bfloat16 parts: float32's range without a scale."""

    def split(t):
        first = t.bfloat16().float()
        second = (t - first).bfloat16().float()
        return first, second, (t - first - second).bfloat16().float()

    a, b = split(x), split(w)
    return sum(a[i] @ b[j] for i in range(3) for j in range(3 - i))


HONEST = {
    "a scale a row": lambda x, w: by_tiles(x, w, 1),
    "three bfloat16 parts": by_bfloat16,
    "parts of the inner dimension": lambda x, w: sum(
        a @ b for a, b in zip(x.chunk(4, 1), w.chunk(4, 0), strict=True)
    ),
}
CHEATS = {
    "one scale for all": lambda x, w: by_tiles(x, w, ROWS),
    "one scale for 128 rows": lambda x, w: by_tiles(x, w, 128),
    "one scale for 64 rows": lambda x, w: by_tiles(x, w, 64),
    "small rows taken for 0": lambda x, w: torch.where(x.abs() < 1e-6, 0, x) @ w,
}


@pytest.mark.parametrize("name", list(HONEST))
def test_a_right_product_passes_on_every_seed(products, name):
    assert passes(products, HONEST[name]) == len(SEEDS)


@pytest.mark.parametrize("name", list(CHEATS))
def test_rows_that_lose_bits_to_their_neighbours_are_refused_on_every_seed(products, name):
    assert passes(products, CHEATS[name]) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_norms_of_small_rows_judge_no_honest_kernel(dtype):
    """An epsilon is large beside such a row's variance, which is no fault of the kernel."""
    norm = f"self.n = torch.nn.LayerNorm(64).to(torch.{dtype})"
    x = f"torch.randn(64, 64).to(torch.{dtype})"
    reference = build_reference(forward("torch.tanh(self.n(x))", x, init=norm))
    assert reference.reach.factors == FACTORS[0]
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add("negative", seed, cache_bytes=1 << 26)
    for case in book:
        draw, (golden,) = book.materialise(case)
        x = draw.inputs[0].float()
        weight, bias = (draw.state[f"n.{name}"].float() for name in ("weight", "bias"))
        centred = x - x.mean(1, keepdim=True)
        shape = centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + 1e-5)
        made = torch.tanh(shape * weight + bias).to(draw.inputs[0].dtype)
        assert gate(made, golden, case.bounds[0]).passed


def test_float16_gets_factors_that_it_holds():
    reference = build_reference(forward("x * 2", "torch.rand(64, 64).half()"))
    assert reference.reach.factors == FACTORS[2]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 31, 32, 33, 100, 128, 512, 4096])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_parts_are_all_of_a_tensor_once(size, count):
    ends = borders(size, count)
    assert (ends[0], ends[-1], len(ends)) == (0, size, count + 1)
    assert all(a <= b for a, b in zip(ends, ends[1:], strict=False))
    if size >= 8 * count:
        assert all(end % 2 for end in ends[1:-1])
        assert min(b - a for a, b in zip(ends, ends[1:], strict=False)) >= size // (2 * count)
    tensor = torch.zeros(1, size, 3)
    for part, factor in parts(tensor, tuple((i,) for i in range(1, count + 1))):
        part += factor
    assert bool((tensor > 0).all())
    assert tensor.max() <= count


def test_a_dtype_holds_factors_above_its_smallest_normal_numbers():
    told = {t: [holds(t, f) for f in FACTORS[:3]] for t in (torch.float32, torch.float16)}
    assert told == {torch.float32: [True] * 3, torch.float16: [False, False, True]}
    assert holds(torch.bfloat16, FACTORS[0])
    assert holds(torch.int64, FACTORS[0])


def test_a_single_row_has_one_factor():
    assert [factor for _, factor in parts(torch.zeros(1, 7), FACTORS[0])] == [1.0]
