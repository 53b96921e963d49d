"""Inputs that are random numbers and nothing else may hold any values; others keep their own."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.compare import gate
from hotloop.worker.mask_rows import EMPTY, FULL
from hotloop.worker.mask_rows import ROWS as KINDS
from hotloop.worker.random_sources import MASK, Provenance
from hotloop.worker.reference import build_reference

ROWS, COLUMNS = 12, 24


def law_of(expression):
    with Provenance() as followed:
        value = eval(expression, {"torch": torch})  # noqa: S307  an expression of this file
        return followed.source(value)


@pytest.mark.parametrize(
    ("expression", "law"),
    [
        ("torch.rand(4, 6)", "unit"),
        ("torch.randn(4, 6)", "normal"),
        ("torch.empty(4, 6).uniform_(-1, 1)", "derived"),
        ("torch.normal(0.0, 2.0, (4, 6))", "derived"),
        ("torch.rand(4, 6).T", "derived"),
        ("torch.rand(4, 6).mT.contiguous()", "derived"),
        ("torch.randn(4, 6, 2).permute(2, 0, 1)", "derived"),
        ("torch.randn(4, 6).transpose(0, 1)", "derived"),
        ("torch.randn(4, 6).unsqueeze(0).squeeze(0)", "derived"),
        ("torch.randn(4, 6)[:, ::2]", "derived"),
        ("torch.randn(4, 6)[1, None, ..., :3]", "derived"),
        ("torch.randn(4, 1).expand(4, 6)", "expanded"),
        ("torch.randn(24).view(4, 6).reshape(6, 4)", "derived"),
        ("torch.cat([torch.rand(2, 6), torch.randn(2, 6)])", "derived"),
        ("torch.stack([torch.rand(6), torch.randn(6)])", "derived"),
        ("torch.rand(8, 6).chunk(2)[1]", "derived"),
        ("torch.rand(4, 6) * torch.rand(())", "derived"),
        ("torch.rand(()) * torch.rand(4, 6) - 1", "derived"),
        ("torch.rand(4, 6) / torch.rand(1)", "derived"),
        ("torch.triu(torch.rand(4, 4)) * 2", "triu"),
        ("torch.randn(4, 4).tril()", "tril"),
        ("(lambda a: (a + a.T) / 2)(torch.rand(4, 4))", "symmetric"),
        ("torch.rand(4, 6) > 0.5", MASK),
        ("~torch.rand(4, 6).ge(0.1)", MASK),
        ("torch.randint(0, 2, (4, 6)).bool()", MASK),
        ("torch.randint(0, 3, (4, 6)) == 0", MASK),
    ],
)
def test_random_numbers_are_followed(expression, law):
    assert law_of(expression) == law


@pytest.mark.parametrize(
    "expression",
    [
        "torch.ones(4, 6)",
        "torch.rand(4, 6).abs()",
        "torch.rand(4, 6).clamp(min=0.1)",
        "torch.rand(4, 6).softmax(-1)",
        "torch.rand(4, 6) * torch.rand(4, 6)",
        "torch.rand(4, 6) * torch.eye(4, 6)",
        "torch.rand(()) / torch.rand(4, 6)",
        "(lambda a: a[a > 0.5])(torch.rand(4, 6))",
        "torch.cat([torch.rand(2, 6), torch.zeros(2, 6)])",
        "torch.triu(torch.rand(4, 4), 1)",
        "torch.triu(torch.rand(4, 4)) + 1",
        "torch.triu(torch.rand(4, 4)).T",
        "(lambda a, b: a + b.T)(torch.rand(4, 4), torch.rand(4, 4))",
        "torch.randint(0, 9, (4, 6))",
        "torch.randint(0, 9, (4, 6)).float()",
        "(torch.rand(4, 6) > 0.5).float() * 2",
        "torch.rand(4, 6) > torch.eye(4, 6)",
        "torch.ones(4, 4).tril().bool()",
        "(lambda a: (a.zero_(), a.T)[1])(torch.rand(4, 6))",
        "(lambda a, b: (a.copy_(b), a)[1])(torch.rand(4, 6), torch.ones(4, 6))",
    ],
)
def test_structure_is_kept(expression):
    assert law_of(expression) is None


FORMS = {
    "triu": ("torch.triu(torch.rand({n}, {n}))", lambda x: x.triu()),
    "tril": ("torch.tril(torch.rand({n}, {n}))", lambda x: x.tril()),
    "symmetric": ("(lambda a: (a + a.T) / 2)(torch.rand({n}, {n}))", lambda x: x.mT),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_holds_the_values_of_every_profile(name):
    text, formed = FORMS[name]
    text = text.format(n=COLUMNS)
    reference = build_reference(forward("x @ y", text, text))
    assert {"normal", "far", "integers"} <= set(reference.profiles)
    for profile in reference.profiles:
        draw = reference.draw(3, profile)
        for x in draw.inputs:
            assert torch.equal(x, formed(x))
        reference.redraw_inputs(draw, 4)
        for x, other in zip(draw.inputs, reference.draw(3, profile).inputs, strict=True):
            assert torch.equal(x, formed(x))
            assert not torch.equal(x, other)
        if profile == "normal":
            assert float(draw.inputs[0].min()) < -1


def masks(body, mask="torch.rand(12, 24) > 0.5"):
    return build_reference(forward(body, f"torch.randn({ROWS}, {COLUMNS})", mask))


MEAN = "(x * y).sum(1) / y.sum(1).clamp(min=1)"


def test_random_masks_have_empty_and_full_rows_on_every_seed():
    reference = masks(MEAN)
    for seed in range(20):
        draw = reference.draw(seed, "normal")
        bound, golden = reference_bound(reference, draw)
        x, y = draw.inputs
        ends = [(not bool(row.any()), bool(row.all())) for row in y]
        assert ends[: len(KINDS)] == [(kind == EMPTY, kind == FULL) for kind in KINDS]
        kept = torch.where(y, x, 0).sum(1)
        assert gate(kept / y.sum(1).clamp(min=1), golden, bound).passed
        assert not gate(kept / y.sum(1), golden, bound).passed
        reference.redraw_inputs(draw, seed + 1)
        assert [bool(row.any()) for row in draw.inputs[1][:2]] == [False, True]
    shipped = reference.draw(1, "shipped").inputs[1]
    assert bool(shipped.any(1).all())


def reference_bound(reference, draw):
    from hotloop.worker.cases import CaseBook

    book = CaseBook(reference, "n")
    book.add_draw(draw)
    return book.cases[0].bounds[0], reference.golden(draw)[0]


@pytest.mark.parametrize(
    "body",
    [
        "torch.softmax(x.masked_fill(~y, -torch.inf), 1)",  # NaN where no key is left
        "torch.softmax(x + ~y * -1e9, 1)",  # eager has nothing left of x there
    ],
)
def test_masks_keep_their_rows_where_the_reference_does_not_bear_others(body):
    reference = masks(body)
    assert "normal" in reference.profiles
    draw = reference.draw(1, "normal")
    assert bool(draw.inputs[1].any(1).all())


def test_a_mask_that_is_no_random_one_is_kept():
    reference = masks(MEAN, "torch.ones(12, 24).tril().bool()")
    for profile in reference.profiles:
        assert torch.equal(reference.draw(1, profile).inputs[1], torch.ones(12, 24).tril().bool())
