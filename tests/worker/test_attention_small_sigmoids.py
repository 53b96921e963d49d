"""Small weights of sigmoid attention still count: taken for 0 they are refused."""

import pytest
import torch
from attention_styles import HONEST, scores_of
from problem_files import attention

from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference

SEEDS = range(10)
SIGMOID = (
    'import math\nnormalize = "sigmoid"\nBIAS = -math.log(S)\n'
    "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + BIAS\n"
)


@pytest.fixture(scope="module", params=["bfloat16", "float16", "float32"])
def book(request):
    body = f'dtype = "{request.param}"\n{SIGMOID}'
    reference = build_reference(attention(body, B=1, H=2, S=512, D=32))
    assert "positive_mean" in reference.profiles
    made = CaseBook(reference, "nominal")
    for seed in SEEDS:
        made.add("positive_mean", seed, cache_bytes=1 << 26)
    return made


def count(book, kernel):
    total = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        out = kernel(*draw.inputs, book.reference.mods)
        total += gate(out, golden, case.bounds[0]).passed
    return total


@pytest.mark.parametrize("limit", [-8.0, -9.0, -10.0])
def test_weights_below_a_limit_may_not_be_left_out(book, limit):
    def cut(q, k, v, mods):
        scores = scores_of(q, k, mods)
        weights = torch.where(scores > limit, scores.sigmoid(), 0)
        return (weights @ v.float()).to(q.dtype)

    assert count(book, cut) == 0


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_pass(book, name):
    assert count(book, HONEST[name]) == len(SEEDS)


def test_softmax_has_its_scores_as_they_were():
    q, k, v = build_reference(attention('dtype = "float32"\n')).draw(1, "positive_mean").inputs
    assert float(v.min()) >= 1
    assert float(q[..., -1].std()) > 0.5
    assert float(k[..., -1].std()) > 0.5
