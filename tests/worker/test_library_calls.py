"""What torch computed is told from what kernels computed, however it was called."""

import pytest
import torch
from torch import library as operators

from hotloop.worker import fingerprint
from hotloop.worker.census import WHOLE_LAYERS
from hotloop.worker.fingerprint import Fingerprint
from hotloop.worker.library_calls import MAX_LAUNCHES, LibraryCalls

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)  # as the judge's memory is


def launch(calls, tensors, kernel):
    """Do what a launch under watch does."""
    after = calls.before_launch(tensors)
    with torch._C._DisableTorchDispatch():  # a kernel, which no mode sees
        kernel()
    after()


def watched(forward):
    """Return what is said of a forward that is given the watch and X."""
    calls = LibraryCalls([X], SHARED)
    with calls:
        output = forward(calls, X)
    return calls.answers([output]), set(calls.totals)


def copy_by_a_kernel(calls, source):
    target = torch.empty_like(source)
    launch(calls, [source, target], lambda: target.copy_(source))
    return target


def double_by_a_kernel(calls, source):
    target = torch.empty_like(source)
    launch(calls, [source, target], lambda: torch.mul(source, 2, out=target))
    return target


def in_inference_mode(calls, x):
    with torch.inference_mode():
        return torch.softmax(x, -1)


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


def test_inference_mode_hides_no_layer():
    answers, operations = watched(in_inference_mode)
    assert [i for _, i in answers] == [0]
    assert operations & WHOLE_LAYERS


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


@pytest.mark.parametrize("is_filled", [False, True])
def test_a_view_of_fresh_memory_that_held_the_result_is_a_kernels_and_what_torch_wrote_is_not(
    is_filled,
):
    memory = bytearray((X * 2).numpy().tobytes())  # of a call ago, in the same place

    def forward(calls, x):
        y = torch.frombuffer(memory, dtype=torch.float32).detach()
        if is_filled:
            y.copy_((x * 2).flatten())
        launch(calls, [x, y], lambda: torch.mul(x.flatten(), 2, out=y))
        return y

    calls = LibraryCalls([X], SHARED)
    with calls:
        output = forward(calls, X)
    assert calls.is_from_kernels(output) != is_filled


def test_moves_are_no_arithmetic():
    _, operations = watched(lambda calls, x: x.t().contiguous().t().clone().double().float())
    assert operations == set()


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


def test_an_output_written_through_a_table_of_addresses_is_a_kernels():
    y = torch.empty_like(X)
    for table, expected in ((torch.tensor([y.data_ptr()]), True), (torch.tensor([3, 4]), False)):
        calls = LibraryCalls([X], SHARED)
        with calls:
            launch(calls, [X, table], lambda: torch.mul(X, 2, out=y))
        assert calls.is_from_kernels(y) == expected


def test_an_operator_of_the_candidates_own_is_no_operation_of_torch():
    calls = LibraryCalls([X], SHARED)

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return double_by_a_kernel(calls, x)

    def hidden(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    def hidden_and_copied(x: torch.Tensor) -> torch.Tensor:
        return copy_by_a_kernel(calls, torch.softmax(x, -1))

    own = vars(operators)["Library"]("hotloop_test", "FRAGMENT")
    for function in (doubled, hidden, hidden_and_copied):
        own.define(f"{function.__name__}(Tensor x) -> Tensor")
        own.impl(function.__name__, function, "CPU")
    with calls:
        by_kernel = torch.ops.hotloop_test.doubled(X)
    assert calls.is_from_kernels(by_kernel)
    assert calls.answers([by_kernel]) == []
    for operator in (torch.ops.hotloop_test.hidden, torch.ops.hotloop_test.hidden_and_copied):
        with calls:
            by_torch = operator(X)
        assert calls.answers([by_torch]) == [("softmax", 0)]


@pytest.mark.slow  # torch imports its compiler for it
def test_a_python_operator_without_a_device_is_looked_into():
    calls = LibraryCalls([X], SHARED)
    anywhere = operators.custom_op(
        "hotloop_test::anywhere",
        lambda x: double_by_a_kernel(calls, x),
        mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )
    with calls:
        output = anywhere(X)
    assert torch.equal(output, X * 2)
    assert calls.is_from_kernels(output)
    assert calls.answers([output]) == []


def test_sparse_tensors_end_no_watch():
    def forward(calls, x):
        return double_by_a_kernel(calls, x.to_sparse().to_dense())

    answers, _ = watched(forward)
    assert answers == []


def test_many_launches_are_not_all_looked_at_and_count_as_work():
    def forward(calls, x):
        for _ in range(MAX_LAUNCHES + 1):
            y = torch.empty_like(x)
            launch(calls, [x, y], lambda y=y: y.copy_(x))
        return torch.softmax(y, -1)

    assert watched(forward)[0] == []  # the last copy may have been work
    assert watched(LIBRARY["copied before"])[0] == [("_softmax", 0)]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_fingerprints_are_the_same_in_pieces(monkeypatch, piece):
    x = torch.randn(5, 6, 7)
    cases = [x, x.permute(2, 0, 1), x[:, ::2], x[:, :1], x[None].expand(3, 5, 6, 7), x[0, 0, 0]]
    whole = [Fingerprint.of(t) for t in cases]
    monkeypatch.setattr(fingerprint, "PIECE", piece)
    assert [Fingerprint.of(t) for t in cases] == whole
    assert Fingerprint.of(cases[4]).is_like(Fingerprint.of(cases[4].contiguous()))
    assert Fingerprint.of(cases[1]).is_like(Fingerprint.of(cases[1].contiguous()))


def test_what_cannot_be_read_is_like_nothing():
    sparse = X.to_sparse()
    assert Fingerprint.of(sparse) != Fingerprint.of(sparse)
    assert not Fingerprint.of(sparse).is_like(Fingerprint.of(sparse))


def test_arithmetic_counts_where_its_result_reaches_a_kernel_or_an_output():
    x, y = torch.rand(8, 16), torch.empty(8, 16)
    calls = LibraryCalls([y], range(0))
    with calls:
        given = x.exp().t().contiguous()
        assert bool(x.amax() < 2), "a check of its own"
        calls.before_launch([given, y])()
        tail = y.sum(dim=1).clone()
    assert calls.used([]) == {"exp": 128}
    assert calls.used([tail]) == {"exp": 128, "sum": 128}
    assert calls.totals.keys() >= {"exp", "amax", "sum"}
