"""Attention whose values go through float16, where the dtype reaches further, is refused."""

import pytest
import torch
from attention_styles import HONEST, two_passes
from problem_files import attention
from seeded_verdicts import SEEDS, book_of, passed

from hotloop.worker.reference import build_reference

CAUSAL = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
LARGEST = 65504.0


def made(dtype, body):
    reference = build_reference(attention(f'dtype = "{dtype}"\n{body}', B=1, H=2, S=256, D=32))
    return book_of(reference, "large")


@pytest.fixture(scope="module", params=["bfloat16", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(scope="module", params=["", CAUSAL], ids=["full", "causal"])
def book(request, dtype):
    return made(dtype, request.param)


def count(book, kernel):
    return passed(book, kernel, book.reference.mods)


def held(t):
    return t.clamp(-LARGEST, LARGEST).half().to(t.dtype)


WRONG = {
    "all": lambda q, k, v, m: two_passes(q.half(), k.half(), v.half(), m).to(q.dtype),
    "q": lambda q, k, v, m: two_passes(held(q), k, v, m),
    "k": lambda q, k, v, m: two_passes(q, held(k), v, m),
    "v": lambda q, k, v, m: two_passes(q, k, held(v), m),
    "result": lambda q, k, v, m: held(two_passes(q, k, v, m)),
    "v clamped": lambda q, k, v, m: two_passes(q, k, v.clamp(-8, 8), m),
}


@pytest.mark.parametrize("name", WRONG)
def test_values_that_go_through_float16_are_refused(book, name):
    assert count(book, WRONG[name]) == 0


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_pass(book, name):
    assert count(book, HONEST[name]) == len(SEEDS)


def test_scores_keep_every_bit(book):
    draw, _ = book.materialise(next(iter(book)))
    q, k, v = draw.inputs
    assert float(v.abs().max()) > LARGEST
    for head in range(2):
        sizes = (float(q[:, head].abs().max()), float(k[:, head].abs().max()))
        assert max(sizes) > LARGEST
        assert min(sizes) < 1e-3
    up = torch.tensor([2.0**17, 2.0**-17], dtype=q.dtype)[:, None, None]
    assert torch.equal((q / up).float() @ (k * up).float().mT, q.float() @ k.float().mT)


@pytest.mark.parametrize("name", ["two passes", "online, narrow", "split"])
def test_float16_itself_stays_within_its_range(name):
    book = made("float16", CAUSAL)
    assert count(book, HONEST[name]) == len(SEEDS)
    draw, _ = book.materialise(next(iter(book)))
    assert all(float(t.abs().max()) < 64 for t in draw.inputs)
