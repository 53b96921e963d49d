"""The problem's own sizes made small: the same problem, cheap enough for slow tools."""

import pytest

from hotloop.core.problem import Policy, Problem, ProblemKind, Role
from hotloop.worker.sanitizer import set_bytes
from hotloop.worker.sanitizer_memory import places_of
from hotloop.worker.session import Session
from hotloop.worker.size_trial import LIMITS

SOURCE = """
import torch
ROWS, COLUMNS = 256, 512
class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(columns))
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]
def get_init_inputs():
    return [COLUMNS]
"""


def session_of(source):
    policy = Policy(shape_scope="nominal")
    problem = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=source, policy=policy)
    return Session(problem, "cpu", isolation="T0", tracing=False)


@pytest.fixture(scope="module")
def session():
    found = session_of(SOURCE)
    yield found
    found.close()


def test_all_sizes_are_halved_until_they_are_small(session):
    view = session.reduced_view()
    rows, columns = (view.workload.settings[name] for name in ("ROWS", "COLUMNS"))
    assert 256 // rows == 512 // columns > 1
    assert rows * columns <= LIMITS["cpu"]
    assert set_bytes(view) < set_bytes(session.nominal)
    (draw_shape,) = {tuple(x.shape) for x in view.book.draw_of(view.book.cases[0]).inputs}
    assert draw_shape == (rows, columns)


def test_it_is_made_once_and_neither_decides_nor_is_reported(session):
    view = session.reduced_view()
    assert session.reduced_view() is view
    assert view.workload.role is not Role.NOMINAL
    assert view not in session.views(held_out=True)
    assert all(other is not view for other in session.reported_views())


def test_a_problem_without_sizes_has_none():
    fixed = SOURCE.replace("ROWS, COLUMNS = 256, 512\n", "")
    fixed = fixed.replace("ROWS, COLUMNS", "8, 512").replace("COLUMNS", "512")
    session = session_of(fixed)
    try:
        assert session.reduced_view() is None
    finally:
        session.close()


def test_every_tensor_of_its_call_has_a_place(session):
    board = session.reduced_view().board
    inputs, outputs = board.sets[0]
    slots = [*board.state.values(), *inputs, *outputs]
    assert [p.offset for p in places_of(board)] == [slot.offset for slot in slots]
    assert [p.is_given for p in places_of(board)] == [True, True, False]
