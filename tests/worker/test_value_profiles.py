"""Each value profile finds a mistake that the others of its tier let pass; honest kernels pass all.

A profile of the fast tier is held against that tier's others, one of the final tier against all.
"""

import pytest
import torch
from problem_files import attention, forward

from hotloop.core.verdict import Tier
from hotloop.errors import ProblemError
from hotloop.worker.attention_math import unfused
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.reference import build_reference
from hotloop.worker.value_profiles import (
    ATTENTION_PROFILES,
    LARGE_SCALES,
    LARGEST_FRAC,
    MODEL_PROFILES,
    RANDOM_PARAMETERS,
    largest_exact,
    names,
)

SEED = 11
NORM = "self.n = torch.nn.LayerNorm(32)"
WEIGHT = "self.w = torch.nn.Parameter(torch.ones(32))"


def book_of(reference):
    """Return one case of every profile that can judge the problem."""
    book = CaseBook(reference, "nominal")
    for profile in (*reference.profiles, *reference.final_profiles):
        try:
            book.add(profile, SEED, cache_bytes=1 << 26)
        except ProblemError:
            assert profile not in reference.profiles
    return book


def caught_by(book, candidate):
    """Return the profiles on which a candidate, a function of a draw, is refused."""
    caught = []
    for case in book:
        draw, goldens = case.kept
        outputs = candidate(draw)
        pairs = zip(outputs, goldens, case.bounds, strict=True)
        if not all(gate(o, g, b).passed for o, g, b in pairs):
            caught.append(case.profile)
    return caught


def of_x(function):
    return lambda draw: (function(draw.inputs[0]),)


def scaled_range(x, *, unset=False):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    y = (x - low) / (high - low + 1e-6)
    return torch.where((high > low) | (high == 0), y, torch.nan) if unset else y


def softmax_capped(x):
    """Softmax from the first half's maximum, with exponents that end where exp overflows."""
    e = torch.exp((x - x[:, :128].amax(-1, keepdim=True)).clamp(max=80))
    return e / e.sum(-1, keepdim=True)


def norm_in_one_pass(draw):
    """A layer norm of a linear layer from the sum and the sum of squares."""
    state = draw.state
    y = torch.nn.functional.linear(draw.inputs[0], state["c.weight"], state["c.bias"])
    mean = y.mean(1, keepdim=True)
    variance = (y * y).mean(1, keepdim=True) - mean * mean
    return (y - mean) * torch.rsqrt(variance + 1e-5) * state["n.weight"] + state["n.bias"]


RANGE = "(x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)"


MISTAKES = {
    "shipped": (
        ("x * 2", "torch.rand(64, 64) * 1000"),
        of_x(lambda x: x.clamp(max=700) * 2 if x.min() >= 0 else x * 2),
    ),
    "normal": (
        ("torch.log(x) * self.w", "torch.rand(64, 32)", WEIGHT),  # `large` leaves the domain
        of_x(torch.log),
    ),
    "parameters": (
        ("torch.acosh(x) * self.w", "torch.rand(64, 32) + 1.1", WEIGHT),
        of_x(torch.acosh),
    ),
    "positive_mean": (
        ("x.var((0, 2), unbiased=False)", "torch.randn(16, 4, 24)"),
        of_x(lambda x: (x * x).mean((0, 2)) - x.mean((0, 2)) ** 2),
    ),
    "negative": (
        ("torch.nn.functional.normalize(x, dim=-1)", "torch.rand(64, 64)"),
        of_x(lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True))),  # a row of 0
    ),
    "large": (
        ("torch.softmax(x, -1)", "torch.rand(8, 256)"),
        of_x(lambda x: torch.softmax(x.clamp(-50, 50), -1)),
    ),
    "far": (
        ("x * 2", "torch.rand(64, 64)"),
        of_x(lambda x: x.clamp(-65504, 65504) * 2),  # what float16 holds
    ),
    "opposed": (
        ("x @ self.w", "torch.rand(64, 32)", "self.w = torch.nn.Parameter(torch.rand(32, 48))"),
        lambda draw: (draw.inputs[0] @ (draw.state["w"] * 2**24).round() / 2**24,),
    ),
    "lowered": (
        ("x @ self.w", "torch.rand(64, 32)", "self.w = torch.nn.Parameter(torch.rand(32, 48))"),
        lambda draw: (draw.inputs[0] @ draw.state["w"].clamp(-65504, 65504),),
    ),
    "biased": (
        (
            "self.n(self.c(x))",
            "torch.rand(64, 32)",
            "self.c = torch.nn.Linear(32, 48); self.n = torch.nn.LayerNorm(48)",
        ),
        lambda draw: (norm_in_one_pass(draw),),
    ),
    "alike": (
        ("torch.nn.functional.triplet_margin_loss(x, y, z)", *(["torch.rand(64, 64)"] * 3)),
        lambda draw: (
            torch.nn.functional.triplet_margin_loss(*draw.inputs, eps=0.0),  # hidden by the margin
        ),
    ),
    "integers": (
        ("x @ y", "torch.rand(64, 256)", "torch.rand(256, 64)"),
        lambda draw: (draw.inputs[0] @ draw.inputs[1] + 1e-6,),
    ),
    "uniform": (
        ("torch.asin(x)", "torch.rand(64, 64)"),
        of_x(lambda x: torch.asin(x.clamp(min=-0.5))),
    ),
    "small": (
        ("x * 2", "torch.rand(64, 64)"),
        of_x(lambda x: torch.where(x.abs() < 1e-5, 0, x * 2)),
    ),
    "sparse": (
        ("x.mean(-1)", "torch.rand(64, 64)"),
        of_x(lambda x: x.sum(-1) / (x != 0).sum(-1).clamp(min=1)),
    ),
    "constant_rows": (
        (f"{RANGE} + 1e-6)", "torch.rand(64, 64)"),
        of_x(lambda x: scaled_range(x, unset=True)),
    ),
    "sorted": (("torch.softmax(x, -1)", "torch.rand(8, 256)"), of_x(softmax_capped)),
}


def reference_of(body, *rest):
    inputs = [r for r in rest if not r.startswith("self.")]
    return build_reference(
        forward(body, *inputs, init=next((r for r in rest if r.startswith("self.")), "pass"))
    )


@pytest.mark.parametrize("profile", names(MODEL_PROFILES))
def test_each_profile_finds_what_others_of_its_tier_do_not(profile):
    problem, mistake = MISTAKES[profile]
    reference = reference_of(*problem)
    book = book_of(reference)
    caught = caught_by(book, mistake)
    if profile in names(MODEL_PROFILES, Tier.FAST):
        caught = [p for p in caught if p in reference.profiles]
    assert caught == [profile]
    assert caught_by(book, reference.eager) == []


def blind_attention(reference, change):
    """Attention in bfloat16 whose scores are turned into weights by `change`."""

    def candidate(draw):
        q, k, v = draw.inputs
        scores = (q.float() @ k.float().mT) * reference.mods.scale
        weights = change(scores)
        return ((weights / weights.sum(-1, keepdim=True)).bfloat16() @ v,)

    return candidate


def exp_from(scores, keys):
    return torch.exp(scores - (scores[..., :keys].amax(-1, keepdim=True) if keys else 0))


ATTENTION_MISTAKES = {
    "offset": lambda scores: exp_from(scores, 0),
    "sorted": lambda scores: exp_from(scores, 64),
    "sparse": lambda s: torch.softmax(s.masked_fill(s == 0, float("-inf")), -1).nan_to_num(),
}


@pytest.fixture(scope="module")
def plain_attention():
    """A book of every profile of plain attention."""
    return book_of(build_reference(attention("", B=1, H=1, S=128)))


@pytest.mark.parametrize("profile", sorted(ATTENTION_MISTAKES))
def test_each_attention_profile_finds_what_others_of_its_tier_do_not(plain_attention, profile):
    reference = plain_attention.reference
    caught = caught_by(plain_attention, blind_attention(reference, ATTENTION_MISTAKES[profile]))
    if profile in names(ATTENTION_PROFILES, Tier.FAST):
        caught = [p for p in caught if p in reference.profiles]
    assert caught == [profile]


def test_small_values_that_attention_skips_are_found(plain_attention):
    mods = plain_attention.reference.mods

    def candidate(draw):
        q, k, v = draw.inputs
        return (unfused(q, k, torch.where(v.abs() < 1e-3, 0, v), mods),)

    assert caught_by(plain_attention, candidate) == ["small"]


def test_an_honest_attention_kernel_passes_every_profile(plain_attention):
    reference = plain_attention.reference
    every = [case.profile for case in plain_attention]
    assert every == list(names(ATTENTION_PROFILES))
    honest = blind_attention(reference, lambda scores: torch.softmax(scores, -1))
    assert caught_by(plain_attention, honest) == []
    assert caught_by(plain_attention, lambda d: (unfused(*d.inputs, reference.mods),)) == []


def test_each_tier_replaces_parameters_that_begin_as_constants():
    for body, inputs in (
        ("self.n(x)", "torch.rand(8, 32)"),
        ("self.n(torch.log(x))", "torch.rand(8, 32) + 0.1"),
        ("self.n(x)", "torch.rand(32, 32).softmax(-1)"),
    ):
        reference = reference_of(body, inputs, NORM)
        kept = RANDOM_PARAMETERS & set(reference.profiles)
        assert kept
        for profile in kept:
            state = reference.draw(1, profile).state
            assert len(state["n.weight"].unique()) == 32
            assert len(state["n.bias"].unique()) == 32
    assert not RANDOM_PARAMETERS - {"normal"} & set(reference_of("x * 2", "torch.rand(4)").profiles)


def test_values_that_a_problem_does_not_accept_are_left_out_at_both_tiers():
    reference = reference_of("torch.log(x)", "torch.rand(16, 16) + 0.1")
    assert reference.profiles == ("shipped", "normal", "positive_mean")
    kept = [case.profile for case in book_of(reference)]
    assert kept == ["shipped", "normal", "positive_mean"]
    assert reference_of("x * 1.5", "torch.rand(8, 8).softmax(-1)").final_profiles == ()


def test_ties_are_left_out_where_an_output_is_an_index():
    reference = reference_of("torch.topk(x, 3)", "torch.rand(8, 64)")
    assert not {"sparse", "constant_rows"} & set(reference.final_profiles)
    assert "sorted" in reference.final_profiles
    assert any("ties" in note for note in reference.notes)


def test_large_results_stay_away_from_the_end_of_their_dtype():
    half = reference_of("x * 200", "torch.rand(64, 64, dtype=torch.float16)")
    assert half.reach.scale < LARGE_SCALES[0]
    (output,) = half.eager(half.draw(SEED, "large"))
    assert float(output.abs().max()) < LARGEST_FRAC * torch.finfo(torch.float16).max
    assert reference_of("x * 200", "torch.rand(64, 64)").reach.scale == LARGE_SCALES[0]


def test_whole_numbers_are_exact_up_to_here():
    for dtype, last in ((torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)):
        exact = largest_exact(dtype)
        assert exact == 2**last
        assert float(torch.tensor(exact, dtype=torch.float64).to(dtype)) == exact
        assert float(torch.tensor(exact + 1, dtype=torch.float64).to(dtype)) != exact + 1


def test_integers_are_left_out_where_another_seed_may_not_be_exact():
    """Sums of 600 products reach some 60, which bfloat16 holds; those of 12,000 over 192 not."""
    inputs = (
        "torch.rand(256, {}, dtype=torch.bfloat16)",
        "torch.rand({}, 256, dtype=torch.bfloat16)",
    )
    kept, left = (reference_of("x @ y", *(text.format(k) for text in inputs)) for k in (600, 6000))
    assert "integers" in kept.profiles
    assert "integers" not in left.profiles
