"""A file's tensors that the judge cannot hold are refused in one line; forward makes its own."""

import pytest
import torch
from problem_files import forward

from hotloop.errors import ProblemError
from hotloop.worker.module_host import ContractError, flatten_outputs
from hotloop.worker.reference import build_reference

SPARSE = "torch.eye(8).to_sparse()"
FLOAT8 = "torch.randn(4, 8).to(torch.float8_e4m3fn)"


@pytest.mark.parametrize(
    ("body", "x", "init", "text"),
    [
        ("torch.sparse.mm(x, x.to_dense())", SPARSE, "pass", "argument 0.*sparse_coo.*in forward"),
        ("x.float().relu()", FLOAT8, "pass", "argument 0.*float8_e4m3fn.*bfloat16.*in forward"),
        (
            "torch.sparse.mm(self.s, x)", "torch.randn(8, 4)",
            f"self.register_buffer('s', {SPARSE})", "'s'.*dense.*sparse_coo",
        ),
        ("x.relu().to_sparse()", "torch.randn(4, 8)", "pass", "output 0.*return it dense"),
        ("(x, x.to(torch.float8_e5m2))", "torch.randn(4, 8)", "pass", "output 1.*return bfloat16"),
        (
            "torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)", "torch.randn(4, 8)", "pass",
            "output 0.*quantised",
        ),
    ],
)  # fmt: skip
def test_a_tensor_that_cannot_be_held_is_refused_in_one_line(body, x, init, text):
    with pytest.raises(ProblemError, match=text) as caught:
        build_reference(forward(body, x, init=init))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "torch.sparse.mm(x.relu().to_sparse(), x.t())",
        "x.to(torch.float8_e4m3fn).float() * 2",
    ],
)
def test_forward_makes_them_as_it_likes(body):
    assert build_reference(forward(body, "torch.randn(8, 16)")).profiles


def test_weights_may_be_of_8_bits():
    held = f"self.register_buffer('s', {FLOAT8})"
    reference = build_reference(forward("x * self.s.float()", "torch.randn(4, 8)", init=held))
    assert {"normal", "negative"} <= set(reference.profiles)


@pytest.mark.filterwarnings("ignore")  # nested tensors are a prototype
def test_a_candidate_returns_dense_tensors():
    x = torch.randn(4, 8)
    assert flatten_outputs((x, [x]), "cpu") == [x, x]
    with pytest.raises(ContractError, match="dense tensors, got a sparse_coo one"):
        flatten_outputs(x.relu().to_sparse(), "cpu")
    with pytest.raises(ContractError, match="dense tensors, got a nested one"):
        flatten_outputs(torch.nested.nested_tensor([x[0], x[1, :3]]), "cpu")


def test_what_is_no_tensor_is_taken_as_the_references_is():
    x = torch.ones(2)
    *same, count, ratio, flag = flatten_outputs((x, [None, {"n": 3, "r": 0.5}], True), "cpu")
    assert same == [x]
    assert [(t.item(), t.dtype) for t in (count, ratio, flag)] == [
        (3, torch.int64),
        (0.5, torch.float32),
        (True, torch.bool),
    ]
    with pytest.raises(ContractError, match="plain tensors, got str"):
        flatten_outputs((x, "text"), "cpu")
