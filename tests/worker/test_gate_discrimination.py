"""The gate of a problem is tight enough when the next lower precision does not pass it."""

import pytest
import torch
from problem_files import forward, model, score_mod

from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.discrimination import Lowered, lowered, rounded_to
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference

PRODUCT = ("x @ y", "torch.rand(48, 256)", "torch.rand(256, 48)")


def refused(reference, *profiles):
    """Return the next lower precision, and the profiles whose gate refuses it."""
    book, found = CaseBook(reference, "nominal"), []
    for profile in profiles:
        book.add(profile, 3, cache_bytes=1 << 30)
    for case in book:
        draw, goldens = book.materialise(case)
        lower, outputs = lowered(reference, draw)
        judged = zip(outputs, goldens, case.bounds, strict=True)
        if not all(gate(out.to(b.dtype), golden, b).passed for out, golden, b in judged):
            found.append(case.profile)
    return lower, found


@pytest.mark.parametrize(
    ("body", "cast", "lower"),
    [
        ("x @ y", "", "tf32"),
        ("x @ y", ".bfloat16()", "fp8"),
        ("x @ y", ".half()", "bf16"),
        ("x @ y", ".double()", "float32"),
        ("torch.relu(x) @ y.T[:, :256].T", "", "tf32"),
        ("torch.tanh(x) + y.sum()", "", "tf32"),
        ("x.bfloat16() @ y.bfloat16()", "", "fp8"),
    ],
)
def test_the_next_lower_precision_is_refused(body, cast, lower):
    inputs = [f"{values}{cast}" for values in PRODUCT[1:]]
    found = refused(build_reference(forward(body, *inputs)), "shipped", "normal")
    assert found[0] == lower
    assert found[1]


def test_attention_in_bfloat16_refuses_fp8():
    reference = build_reference(score_mod("score + 0.1 * (q_idx - kv_idx)"))
    assert refused(reference, "normal") == ("fp8", ["normal"])


def test_what_lower_precision_does_not_change_is_not_refused():
    reference = build_reference(forward("torch.sign(x - 0.5)", "torch.rand(32, 64)"))
    assert refused(reference, "shipped") == ("tf32", [])


def test_where_tf32_is_allowed_the_next_lower_is_bfloat16():
    source = model(
        "class Model(torch.nn.Module):\n    def forward(self, x, y):\n        return x @ y\n"
        "def get_inputs():\n    return [torch.rand(48, 256), torch.rand(256, 48)]\n"
        "def get_init_inputs():\n    return []\n"
    ).problem.source
    problem = Problem(
        name="m", kind=ProblemKind.KERNELBENCH, source=source, policy=Policy(precision="tf32")
    )
    lower, found = refused(build_reference(load_problem(problem, device="cpu")), "shipped")
    assert (lower, found) == ("bf16", ["shipped"])


def test_rounding_keeps_the_bits_asked_for():
    x = torch.tensor([1.0, 1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, float("inf"), float("nan")])
    got = rounded_to(x, 10)
    assert got[:4].tolist() == [1.0, 1 + 2**-10, 1.0, 1 + 2**-9]  # ties to even
    assert torch.isinf(got[4])
    assert torch.isnan(got[5])
    random = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    assert torch.equal(rounded_to(random, 7), random.bfloat16().float())
    assert torch.equal(rounded_to(random.bfloat16(), 7), random.bfloat16())


def test_a_tensor_that_is_written_to_stays_the_callers_own():
    x = torch.randn(100, generator=torch.Generator().manual_seed(1))
    other = x.clone()
    with Lowered(10, 10, other_bits=3):
        other.add_(x)
    assert not torch.equal(other, x + x)
    assert torch.equal(other, x + rounded_to(x, 3))
