"""Blocks of keys far below a row's maximum still count: skipped they are refused."""

import math

import pytest
import torch
from problem_files import attention

from hotloop.worker.attention_math import tiled, unfused
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference

BLOCK = 64
CAUSAL = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
SEEDS = range(4)


@pytest.fixture(scope="module", params=["", CAUSAL], ids=["full", "causal"])
def book(request):
    loaded = attention(f'dtype = "bfloat16"\n{request.param}', B=1, H=2, S=512, D=32)
    reference = build_reference(loaded)
    assert "sink" in reference.profiles
    made = CaseBook(reference, "nominal")
    for seed in SEEDS:
        made.add("sink", seed, cache_bytes=1 << 26)
    return made


def skipping(q, k, v, mods, limit):
    """Attention that leaves out blocks whose maximum is that far below the running one."""
    scores = q.float() @ k.float().mT * mods.scale
    if mods.mask_mod is not None:
        rows = torch.arange(q.shape[2])
        scores = scores.masked_fill(rows[:, None] < rows, -math.inf)
    highest = scores.unflatten(-1, (-1, BLOCK)).amax(-1)
    is_far = highest < highest.cummax(-1).values - limit
    scores = scores.masked_fill(is_far.repeat_interleave(BLOCK, -1), -math.inf)
    return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


def count(book, kernel):
    total = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        total += gate(kernel(*draw.inputs), golden, case.bounds[0]).passed
    return total


@pytest.mark.parametrize("limit", [4.0, 6.0, 8.0])
def test_blocks_far_below_the_maximum_may_not_be_skipped(book, limit):
    mods = book.reference.mods
    assert count(book, lambda q, k, v: skipping(q, k, v, mods, limit)) == 0
    assert count(book, lambda q, k, v: skipping(q, k, v, mods, 40.0)) == len(SEEDS)


def test_honest_kernels_pass(book):
    mods = book.reference.mods
    for tile in (32, 64, 128):
        made = count(book, lambda q, k, v, n=tile: tiled(q, k, v, mods, key_tile=n))
        assert made == len(SEEDS)
    assert count(book, lambda q, k, v: unfused(q, k, v, mods)) == len(SEEDS)
