"""Small weights of sigmoid attention still count: taken for 0 they are refused."""

import pytest
import torch
from attention_styles import HONEST, scores_of
from problem_files import attention
from seeded_verdicts import SEEDS, book_of, passed

from hotloop.worker.reference import build_reference

SIGMOID = (
    'import math\nnormalize = "sigmoid"\nBIAS = -math.log(S)\n'
    "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + BIAS\n"
)


@pytest.fixture(scope="module", params=["bfloat16", "float16", "float32"])
def book(request):
    body = f'dtype = "{request.param}"\n{SIGMOID}'
    reference = build_reference(attention(body, B=1, H=2, S=512, D=32))
    return book_of(reference, "positive_mean")


def count(book, kernel):
    return passed(book, kernel, book.reference.mods)


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
