"""Where a policy allows TF32, a member of the CPU envelope rounds to it as tensor cores do."""

import torch

from hotloop.worker import sequential
from hotloop.worker.interpreter_formats import round_to_tf32
from hotloop.worker.precision import PRECISIONS, applied


def test_rounding_is_the_interpreters_own():
    x = torch.randn(4096) * torch.exp(8 * torch.randn(4096))
    x[:3] = torch.tensor([float("inf"), float("-inf"), float("nan")])
    finite = x[3:]
    assert sequential.round_to_tf32(finite).equal(torch.from_numpy(round_to_tf32(finite.numpy())))
    kept = sequential.round_to_tf32(x)[:3]
    assert kept[:2].equal(x[:2])
    assert kept[2].isnan()


def test_operands_are_rounded_under_the_policy_that_allows_it_and_no_other():
    generator = torch.Generator().manual_seed(5)
    a, b = (torch.randn(64, 64, generator=generator) for _ in range(2))
    golden = a.double() @ b.double()
    error = {}
    for name in ("as_shipped", "tf32"):
        with applied(PRECISIONS[name]):
            error[name] = float((sequential.matmul(a, b) - golden).abs().max())
    assert error["as_shipped"] < 1e-4 < error["tf32"] < 3e-2


def test_other_dtypes_are_left_alone():
    a, b = torch.randn(8, 8, dtype=torch.float64), torch.randn(8, 8, dtype=torch.float64)
    with applied(PRECISIONS["tf32"]):
        assert torch.allclose(sequential.matmul(a, b), a @ b, rtol=1e-12, atol=1e-12)
