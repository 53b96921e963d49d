"""What torch computed is told from what kernels computed, however it was called."""

import pytest
import torch

from hotloop.worker.fingerprint import Fingerprint
from hotloop.worker.library_calls import LibraryCalls

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)  # as the judge's memory is


def launch(calls, tensors, kernel):
    """Do what a launch under watch does."""
    after = calls.before_launch(tensors)
    kernel()
    after()


def watched(forward):
    """Return what is said of a forward that is given the watch and X."""
    calls = LibraryCalls([X], SHARED)
    with calls:
        output = forward(calls, X)
    return calls.answers([output]), set(calls.largest)


def copy_by_a_kernel(calls, source):
    target = torch.empty_like(source)
    launch(calls, [source, target], lambda: target.copy_(source))
    return target


def double_by_a_kernel(calls, source):
    target = torch.empty_like(source)
    launch(calls, [source, target], lambda: torch.mul(source, 2, out=target))
    return target


LIBRARY = {
    "alone": lambda calls, x: torch.softmax(x, -1),
    "by name": lambda calls, x: getattr(torch, "softmax")(x, -1),  # noqa: B009
    "by operator": lambda calls, x: torch.ops.aten._softmax(x, -1, False),
    "by a module": lambda calls, x: torch.nn.Softmax(-1)(x),
    "copied after": lambda calls, x: copy_by_a_kernel(calls, torch.softmax(x, -1)),
    "copied before": lambda calls, x: torch.softmax(copy_by_a_kernel(calls, x), -1),
    "transposed": lambda calls, x: copy_by_a_kernel(
        calls, torch.softmax(x, -1).t().contiguous()
    ).t(),
    "in float64": lambda calls, x: torch.softmax(x.double(), -1).float(),
    "halved, and doubled by a kernel": lambda calls, x: double_by_a_kernel(
        calls, torch.softmax(x, -1) * 0.5
    ),
    "into a buffer that a kernel wrote": lambda calls, x: copy_by_a_kernel(calls, x).copy_(
        torch.softmax(x, -1)
    ),
}  # fmt: skip
KERNEL = {
    "alone": double_by_a_kernel,
    "on a product's result": lambda calls, x: double_by_a_kernel(calls, x @ torch.eye(40)),
    "partial sums that torch adds": lambda calls, x: double_by_a_kernel(
        calls, torch.stack([x, x])
    ).sum(0),
    "moved about by torch": lambda calls, x: double_by_a_kernel(calls, x.contiguous())
    .t().clone().t().contiguous().view(x.shape),
}  # fmt: skip


@pytest.mark.parametrize("way", LIBRARY)
def test_what_torch_computed_is_told(way):
    answers, _ = watched(LIBRARY[way])
    assert ("_softmax", 0) in answers


@pytest.mark.parametrize("way", KERNEL)
def test_what_a_kernel_computed_is_not_torchs(way):
    answers, _ = watched(KERNEL[way])
    assert answers == []


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (copy_by_a_kernel, True),
        (lambda calls, x: double_by_a_kernel(calls, x).t().clone() + 1, True),
        (lambda calls, x: x * 2 + 0 * copy_by_a_kernel(calls, x), True),
        (lambda calls, x: (copy_by_a_kernel(calls, x), x * 2)[1], False),
        (lambda calls, x: torch.from_numpy(copy_by_a_kernel(calls, x).numpy() * 2), False),
        (lambda calls, x: copy_by_a_kernel(calls, x).copy_(x * 2), False),
    ],
)
def test_an_output_comes_from_a_kernel_or_not(forward, expected):
    calls = LibraryCalls([X], SHARED)
    with calls:
        output = forward(calls, X)
    assert calls.is_from_kernels(output) == expected


def test_a_workspace_that_holds_the_same_as_a_call_ago_is_a_kernels():
    space = X * 2

    def forward(calls, x):
        launch(calls, [x, space], lambda: torch.mul(x, 2, out=space))
        return space.view(2, 3, 40).sum(0, keepdim=True).expand(2, 3, 40).reshape(x.shape)

    answers, _ = watched(forward)
    assert answers == []


def test_moves_are_no_arithmetic():
    _, operations = watched(lambda calls, x: x.t().contiguous().t().clone().double().float())
    assert operations == set()


def test_a_kernel_that_multiplies_with_torch_inside_is_a_kernel():
    def forward(calls, x):
        target = torch.empty_like(x)
        launch(calls, [x, target], lambda: torch.mm(x, torch.eye(40) * 2, out=target))
        return target

    assert watched(forward) == ([], set())


def test_fingerprints_know_the_same_values_in_another_order():
    shuffled = X.flatten()[torch.randperm(X.numel())].view(X.shape)
    assert Fingerprint.of(shuffled).is_like(Fingerprint.of(X))
    assert Fingerprint.of(X * (1 + 1e-6)).is_like(Fingerprint.of(X))
    for other in (X * 1.01, X + 0.1, X.relu(), X[:3], torch.zeros_like(X)):
        assert not Fingerprint.of(other).is_like(Fingerprint.of(X))


def test_constants_are_nobodys_answer():
    ones = torch.ones(6, 40)
    assert not Fingerprint.of(ones).is_like(Fingerprint.of(ones))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int64, torch.bfloat16])
def test_fingerprints_of_other_types(dtype):
    values = X > 0 if dtype is torch.bool else (X * 10).to(dtype)
    assert Fingerprint.of(values).is_like(Fingerprint.of(values.clone()))
