"""Inputs that `get_inputs` makes the same each time: varied where they are one number, else told.

Each mistake had passed, as no call had another scale, bias, state or mask.
"""

import pytest
import torch
from audited import audited
from problem_files import forward
from seeded_verdicts import SEEDS, book_of, built, passed
from torch.nn import functional as F

from hotloop.worker.constant_inputs import find
from hotloop.worker.input_reach import Form, InputReach
from hotloop.worker.reference import build_reference

ROWS = "torch.randn(48, 96)"
ONES, ZEROS = "torch.ones(96)", "torch.zeros(96)"
AFFINE = ("torch.nn.functional.layer_norm(x, (96,), y, z)", ROWS, ONES, ZEROS)
MASKED = "torch.softmax(x.masked_fill({}y, float('-inf')), -1)"
SCALED = ("torch.softmax(x / y, 1)", ROWS, "torch.ones(1)")
GELU = "torch.nn.functional.gelu(x) * y"


def norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)


def softmax(z, top=None):
    e = torch.exp(z - (z.amax(-1, keepdim=True) if top is None else top))
    return e / e.sum(-1, keepdim=True)


def kept(x, m):
    return softmax(x.masked_fill(~m, float("-inf")))


CASES = {
    "a norm without its scale and bias": (
        "normal",
        AFFINE,
        [lambda x, w, b: norm(x) * w + b],
        [lambda x, w, b: norm(x), lambda x, w, b: norm(x) * w, lambda x, w, b: norm(x) + b],
    ),
    "a first state left out": (
        "normal",
        ("torch.cumsum(x, -1) + y", ROWS, "torch.zeros(48, 1)"),
        [lambda x, h: torch.cumsum(x, -1) + h],
        [lambda x, h: torch.cumsum(x, -1)],
    ),
    "a maximum divided by a temperature": (
        "large",
        SCALED,
        [lambda x, t: softmax(x / t), lambda x, t: softmax(x * (1 / t))],
        [lambda x, t: softmax(x / t, x.amax(1, keepdim=True) / t)],
    ),
    "a number that stands in the kernel": (
        "normal",
        (GELU, ROWS, "torch.full((1,), 0.7)"),
        [lambda x, s: F.gelu(x) * s],
        [lambda x, s: F.gelu(x) * 0.7],
    ),
    "a variance of ones": (
        "normal",
        ("x / torch.sqrt(y)", ROWS, ONES),
        [lambda x, v: x * torch.rsqrt(v)],
        [lambda x, v: x],
    ),
    "a mask of True": (
        "normal",
        (MASKED.format("~"), ROWS, "torch.ones(48, 96, dtype=torch.bool)"),
        [kept],
        [lambda x, m: softmax(x), lambda x, m: kept(x, m | (torch.arange(96) > 47))],
    ),
    "padding of False": (
        "normal",
        (MASKED.format(""), ROWS, "torch.zeros(48, 96, dtype=torch.bool)"),
        [lambda x, m: kept(x, ~m)],
        [lambda x, m: softmax(x)],
    ),
    "a mask as numbers": (
        "normal",
        ("torch.softmax(x + (1 - y).log(), -1)", ROWS, "torch.zeros(48, 96)"),
        [lambda x, m: softmax(x.masked_fill(m == 1, float("-inf")))],
        [lambda x, m: softmax(x)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mistake_is_refused_and_honest_forms_pass_on_every_seed(name):
    profile, problem, honest, wrong = CASES[name]
    book = book_of(built(*problem), profile)
    assert [passed(book, kernel) for kernel in honest] == [len(SEEDS)] * len(honest)
    assert [passed(book, kernel) for kernel in wrong] == [0] * len(wrong)


def test_values_are_varied_in_the_profiles_of_random_parameters_alone():
    reference = built(*AFFINE)
    assert reference.reach.varied["normal"] == {1: Form.WIDE, 2: Form.WIDE}
    for profile in reference.profiles:
        _, scale, bias = reference.draw(5, profile).inputs
        assert bool((scale == 1).all() and (bias == 0).all()) == (
            profile not in reference.reach.varied
        ), profile
    _, scale, _ = reference.draw(5, "normal").inputs
    assert int((scale < 0).sum()) == 24
    assert reference.notes == []


def test_new_values_in_place_are_drawn_from_the_seed():
    reference = built(*AFFINE)
    draw, other = reference.draw(5, "normal"), reference.draw(6, "normal")
    reference.redraw_inputs(draw, 6)
    again = [t.clone() for t in draw.inputs]
    assert not torch.equal(again[1], reference.draw(5, "normal").inputs[1])
    assert bool((again[1] != 1).all())
    reference.redraw_inputs(draw, 6)
    assert all(torch.equal(a, b) for a, b in zip(draw.inputs, again, strict=True))
    assert torch.equal(other.inputs[1], reference.draw(6, "normal").inputs[1])


def test_what_a_reference_does_not_bear_stays_and_is_told():
    needs = "x * [1.0][int((y != 1).any())]"
    reference = built(needs, ROWS, ONES)
    assert reference.reach.varied["normal"] == {}
    assert torch.equal(reference.draw(5, "normal").inputs[1], torch.ones(96))
    assert {"normal", "negative", "large"} <= set(reference.profiles)
    assert any(note.startswith("no call varies inputs y:") for note in reference.notes)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("torch.relu(x[y])", "torch.ones(48, 96, dtype=torch.bool)"),
        ("x[:, : int(y)]", "torch.tensor(5.0)"),
        ("x[:, int(y) :]", "torch.tensor(0.0)"),
    ],
)
def test_what_the_outputs_shape_depends_on_stays(body, value):
    reference = built(body, ROWS, value)
    assert reference.reach.varied["normal"] == {}
    shape = reference.specs()[1][0].shape
    for profile in reference.profiles:
        assert tuple(reference.eager(reference.draw(5, profile))[0].shape) == shape
    assert any(note.startswith("no call varies inputs y:") for note in reference.notes)


def test_what_only_some_seeds_bear_is_not_varied_so():
    reference = built("x * (1 + torch.sqrt(y))", ROWS, "torch.zeros(1)")
    assert reference.reach.varied["normal"] == {1: Form.BINARY}
    assert len(book_of(reference, "normal").cases) == len(SEEDS)


def test_where_not_all_can_be_varied_those_are_that_can():
    body = "torch.nn.functional.layer_norm(x, (96,), y) * [1.0][int((z != 0).any())]"
    reference = built(body, ROWS, ONES, ZEROS)
    assert reference.reach.varied["normal"] == {1: Form.WIDE}
    assert any(note.startswith("no call varies inputs z:") for note in reference.notes)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("x * y.cos()", "torch.arange(96)"),  # integers
        ("x * y.cos()", "torch.arange(96.0)"),
        ("x @ y", "torch.eye(96)"),
        ("x[:, y]", "torch.zeros(96, dtype=torch.int64)"),
        ("x.masked_fill(~y, 0)", "torch.ones(48, 96).tril().bool()"),
    ],
)
def test_structure_and_integers_keep_their_values_and_are_told(body, value):
    reference = built(body, ROWS, value)
    first = reference.draw(1, "shipped").inputs[1]
    assert all(torch.equal(reference.draw(5, p).inputs[1], first) for p in reference.profiles)
    assert any(note.startswith("no call varies inputs y:") for note in reference.notes)
    assert reference.profiles[:2] == ("shipped", "normal")


def test_the_audit_names_what_no_call_varies():
    first = audited(forward("x * y.cos()", "torch.randn(64, 64)", "torch.arange(64)"))
    line = "no call varies inputs y: get_inputs() makes them the same each time"
    assert line in first.findings
    varied = audited(forward("x * y", "torch.randn(64, 64)", "torch.ones(64)"))
    assert not any("no call varies" in finding for finding in varied.findings)


def test_a_problem_of_constants_alone_has_a_second_profile():
    reference = built("torch.relu(x) + 1", "torch.ones(48, 96)")
    assert reference.profiles == ("shipped", "normal")
    assert float(reference.draw(5, "normal").inputs[0].min()) < 0
    fixed = built("torch.relu(x) + y", "torch.eye(96)", "torch.rand(96).sort().values")
    assert fixed.profiles == ("shipped",)
    assert any("only the file's own inputs" in note for note in fixed.notes)


def test_where_normal_is_left_out_parameters_varies_them():
    refuses = "[torch.relu(x) * y][int((x < 0).any())]"
    reference = built(refuses, "torch.rand(48, 96)", ONES)
    assert "normal" not in reference.profiles
    assert "parameters" in reference.profiles
    x, scale = reference.draw(5, "parameters").inputs
    assert float(x.min()) >= 0
    assert bool((scale != 1).all())


def test_random_inputs_are_not_drawn_a_second_time():
    def fail():
        raise AssertionError("drawn again")

    reach, values = InputReach(), (torch.randn(4), 3, None)
    find(reach, values, ("normal", None, None), fail)
    assert reach.constant_inputs == frozenset()
    find(reach, (torch.rand(4).sort().values,), (None,), lambda: (torch.rand(4),))
    assert reach.constant_inputs == frozenset()
    find(reach, (torch.zeros(0), torch.ones(2)), (None, None), lambda: (None, torch.ones(2)))
    assert reach.uniform_inputs == reach.constant_inputs == frozenset({1})


def test_two_names_of_one_tensor_hold_the_same_values():
    source = forward("x * y * z", ROWS, "(w := torch.ones(96))", "w")
    _, first, second = build_reference(source).draw(5, "normal").inputs
    assert torch.equal(first, second)
