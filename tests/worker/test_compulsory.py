"""What a call must read and write: nothing that a kernel may lawfully leave out."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from audited import audited
from demands import BYTES, X, Y, demand, seen
from problem_files import forward, model

from hotloop.core.audit import Audit
from hotloop.core.problem import Policy
from hotloop.worker.compulsory import compulsory_flops
from hotloop.worker.least_time import Floor, floor_for
from hotloop.worker.load import load_problem
from hotloop.worker.physics_floor import Ceilings
from hotloop.worker.reference import build_reference
from hotloop.worker.timed import TimedInputs

TINY = Ceilings(dram_gbps=1.0, l2_gbps=100.0, l2_bytes=0, tflops=None)
"""One byte a nanosecond."""


@pytest.mark.parametrize(
    ("body", "read_frac"),
    [
        ("x * 2 + 1", 1.0),
        ("x.sum(dim=1)", 1.0),
        ("torch.softmax(x, dim=1)", 1.0),
        ("x[:, :12] * 2", 0.25),
        ("x[::2] * 2", 0.5),
        ("x[::4, ::3] + 1", 1 / 12),
        ("torch.tril(x[:, :32])", 33 * 16 / (32 * 48)),
    ],
)
def test_only_what_is_read_counts(body: str, read_frac: float) -> None:
    found = demand(forward(body, X), seen("x"))
    assert found is not None
    assert found.read_bytes == pytest.approx(read_frac * BYTES, rel=0.001)


def test_losers_of_a_maximum_do_not_count_which_errs_towards_nobodys_harm() -> None:
    found = demand(forward("x.amax(dim=1)", X), seen("x"))
    assert found is not None
    assert 0 < found.read_bytes <= BYTES


def test_parameters_and_integers_do_not_count() -> None:
    linear = forward("self.w(x)", X, init="self.w = torch.nn.Linear(48, 48)")
    found = demand(linear, seen("x"))
    assert found is not None
    assert (found.read_bytes, found.written_bytes) == (BYTES, BYTES)
    picked = demand(forward("x[y]", X, "torch.randint(0, 32, (32,))"), seen("x", "y"))
    assert picked is not None
    assert 0 < picked.read_bytes <= BYTES


def test_an_expanded_output_is_what_lies_in_memory() -> None:
    found = demand(forward("x.sum(dim=1, keepdim=True).expand(32, 48)", X), seen("x"))
    assert found is not None
    assert found.written_bytes == 32 * 4


@pytest.mark.parametrize(
    ("body", "share"),
    [
        ("x * 2", 1.0),
        ("x.sum(dim=1, keepdim=True) + torch.zeros(32, 48)", 1 / 48),
        ("x.sum(dim=0).repeat(32, 1)", 1 / 32),
        ("x.T", 0.0),
        ("(x * 2, x[:, :12])", 1.0),
        ("(lambda out: (out, out[:, -1]))(x * 2)", 1.0),
        ("(x * 2, x * 3)", 2.0),
    ],
)
def test_an_output_counts_where_it_cannot_be_a_view(body: str, share: float) -> None:
    found = demand(forward(body, X), seen("x", outputs=2))
    assert found is not None
    assert found.written_bytes == pytest.approx(share * BYTES)


def test_a_forward_that_bears_no_derivative_leaves_nothing_known() -> None:
    refuses = "(x * 2, 1 / int(not x.requires_grad))[0]"
    assert demand(forward(refuses, X), seen("x")) is None


def test_inputs_in_the_policys_precision_count_in_it() -> None:
    loaded = forward("self.w(x)", X, init="self.w = torch.nn.Linear(48, 48)")
    narrow = dataclasses.replace(loaded.problem, policy=Policy(precision="bf16"))
    found = demand(load_problem(narrow, device="cpu"), seen("x"))
    assert found is not None
    assert (found.read_bytes, found.written_bytes) == (BYTES / 2, BYTES / 2)


def test_a_forward_that_writes_into_its_argument() -> None:
    found = demand(forward("x.mul_(2)", X), seen("x"))
    assert found is not None
    assert found.read_bytes == BYTES


def test_an_input_that_the_audit_did_not_see_matter_does_not_count() -> None:
    # Its derivative is not zero, but rounding: a softmax sums to one.
    body = "y * torch.softmax(x, dim=1).sum(dim=1, keepdim=True)"
    both, only_y = (demand(forward(body, X, Y), seen(*n)) for n in (("x", "y"), ("y",)))
    assert both is not None
    assert only_y is not None
    assert only_y.read_bytes == BYTES < both.read_bytes


def test_without_a_derivative_nothing_is_claimed() -> None:
    found = demand(forward("torch.argsort(x, dim=1)", X), seen("x", outputs=0))
    assert found is not None
    assert (found.read_bytes, found.written_bytes) == (0, 0)


def test_no_audit_no_floor_and_a_problem_that_is_not_ranked_has_none() -> None:
    loaded = forward("x * 2", X)
    assert demand(loaded, None) is None
    assert demand(loaded, dataclasses.replace(seen("x"), reasons=("can be faked",))) is None


@pytest.mark.slow
@pytest.mark.parametrize("body", ["torch.zeros_like(x)", "x * 0 + 3", "y + 1"])
def test_a_constant_or_an_unread_input_makes_no_false_refusal(body: str) -> None:
    loaded = forward(body, X, Y)
    audit = audited(loaded)
    found = demand(loaded, audit)
    assert found is None or found.read_bytes <= BYTES


def test_work_of_models_is_not_counted() -> None:
    product = build_reference(forward("x @ x.T", X))
    assert product.flops
    assert compulsory_flops(product, product.draw(3, "shipped")) == 0.0


def timed(body: str, audit: Audit) -> TimedInputs:
    reference = build_reference(forward(body, X))
    return TimedInputs(reference, reference.draw(3, "shipped"), (), lambda: None, 0.0, audit)


def test_what_must_move_is_counted_only_where_a_time_is_suspect() -> None:
    inputs = timed("x * 2 + 1", seen("x"))
    all_bytes_ms = 2 * BYTES / 1e6
    assert floor_for(inputs, 1.0, TINY, warm=False) == Floor(all_bytes_ms, "all bytes")
    assert inputs._demand == []
    assert floor_for(inputs, 0.5 * all_bytes_ms, TINY, warm=False) == Floor(
        all_bytes_ms, "compulsory bytes"
    )
    assert len(inputs._demand) == 1


def test_a_kernel_that_skips_what_may_be_skipped_is_not_under_the_floor() -> None:
    inputs = timed("x[::4] * 2", seen("x"))
    skipping_ms = (BYTES / 4 + BYTES / 4) / 1e6
    found = floor_for(inputs, skipping_ms, TINY, warm=False)
    assert found.of == "compulsory bytes"
    assert found.ms == pytest.approx(skipping_ms)


def test_where_nothing_is_known_nothing_is_refused() -> None:
    unranked = dataclasses.replace(seen("x"), reasons=("can be faked",))
    assert floor_for(timed("x * 2", unranked), 1e-9, TINY, warm=False) == Floor(
        0.0, "nothing known"
    )


def test_a_module_with_arguments_and_state_is_built_anew() -> None:
    source = """
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)
    def forward(self, x):
        return self.norm(x)
def get_inputs():
    return [torch.rand(32, 48)]
def get_init_inputs():
    return [48]
"""
    found = demand(model(source), seen("x"))
    assert found is not None
    assert found.read_bytes == BYTES
    assert torch.is_grad_enabled()
