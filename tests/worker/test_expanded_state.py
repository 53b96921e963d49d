"""Parameters and captured tensors made by `expand`: each element gets a value of its own."""

import pytest
import torch
from audited import audited, trial
from problem_files import attention, forward

from hotloop.core.audit import TrialState
from hotloop.worker.board import Board
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.inputs import own_memory
from hotloop.worker.reference import build_reference
from hotloop.worker.view import fill_book

ONES = "self.w = torch.nn.Parameter(torch.ones(1).expand(64))"
ROWS = "self.w = torch.nn.Parameter(torch.ones(8, 1).expand(8, 64))"
DRAWN = "self.w = torch.nn.Parameter(torch.randn(1).expand(64))"
BUFFER = "self.register_buffer('w', torch.rand(1).expand(64))"
SCALED, PRODUCT = "x * self.w", "x @ self.w.mT"


def holds(reference, draw):
    """Whether the buffers that candidates see can take a draw's state, and keep it."""
    board = Board.build(reference, draw, reference.eager(draw))
    try:
        board.write_state(draw)
        return board.state_unchanged(draw)
    finally:
        board.arena.close()


@pytest.mark.parametrize(
    ("init", "body"), [(ONES, SCALED), (ROWS, PRODUCT), (DRAWN, SCALED), (BUFFER, SCALED)]
)
def test_every_profile_can_be_drawn_and_written(init, body):
    reference = build_reference(forward(body, "torch.rand(32, 64)", init=init))
    assert {"shipped", "normal", "far"} <= set(reference.profiles)
    for profile in reference.profiles:
        draw = reference.draw(3, profile)
        assert draw.state["w"].is_contiguous()
        assert holds(reference, draw)
        again = reference.draw(3, profile).state["w"]
        assert torch.equal(draw.state["w"], again)


@pytest.mark.parametrize(("init", "body"), [(ONES, SCALED), (ROWS, PRODUCT)])
def test_constants_get_values_of_their_own_and_the_file_keeps_its_ones(init, body):
    reference = build_reference(forward(body, "torch.rand(32, 64)", init=init))
    drawn = reference.draw(3, "normal").state["w"]
    assert drawn.unique().numel() == drawn.numel()
    assert bool((reference.draw(3, "shipped").state["w"] == 1).all())


def test_a_kernel_that_reads_one_value_for_all_is_refused_and_an_honest_one_is_not():
    book = CaseBook(build_reference(forward(SCALED, "torch.rand(32, 64)", init=ONES)), "nominal")
    fill_book(book)
    honest, lazy = set(), set()
    for case in book:
        draw, (golden,) = book.materialise(case)
        (x,), w = draw.inputs, draw.state["w"]
        if not gate(x * w, golden, case.bounds[0]).passed:
            honest.add(case.profile)
        if not gate(x * w[0], golden, case.bounds[0]).passed:
            lazy.add(case.profile)
    assert honest == set()
    assert "normal" in lazy


@pytest.mark.parametrize("init", [ONES, DRAWN])
def test_the_audit_gives_such_a_parameter_other_values(init):
    found = audited(forward(SCALED, "torch.rand(32, 64)", init=init))
    assert found.reasons == ()
    assert trial(found, "other values of w").state is TrialState.CAUGHT


def test_a_parameter_that_nothing_reads_is_still_found():
    found = audited(forward("x * 2 + 0 * self.w[0]", "torch.rand(32, 64)", init=ONES))
    assert trial(found, "other values of w").state is TrialState.SAME


@pytest.mark.parametrize(
    "body",
    [
        "def get_buffers(generator):\n"
        "    return {'far': torch.rand(1, S, generator=generator).expand(H, S)}\n",
        "far = torch.rand(1, S).expand(H, S)\n",
    ],
)
def test_captured_tensors_too(body):
    scores = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score * far[h, kv_idx]\n"
    reference = build_reference(attention(body + scores))
    draw = reference.draw(3, "normal")
    assert draw.state["far"].shape == (4, 32)
    assert holds(reference, draw)


def test_only_what_shares_memory_is_copied():
    transposed, sliced = torch.rand(4, 6).mT, torch.rand(4, 6)[:, ::2]
    for tensor in (transposed, sliced, torch.rand(3), torch.rand(1).expand(1)):
        assert own_memory(tensor) is tensor
    overlapping = torch.rand(8).as_strided((3, 4), (2, 1))
    copied = own_memory(overlapping)
    assert torch.equal(copied, overlapping)
    assert copied.is_contiguous()
