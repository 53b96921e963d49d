"""Draws, profiles and state of a model reference behave as a judge needs them."""

import pytest
import torch
from problem_files import forward, model

from hotloop.errors import ProblemError
from hotloop.worker.apart import FACTORS, parts
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.reference import build_reference

LINEAR = "self.l = torch.nn.Linear(48, 24)"
NORM = "self.n = torch.nn.BatchNorm1d(6)"


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def profiles_of(body, *inputs, init="pass"):
    return build_reference(forward(body, *inputs, init=init)).profiles


def test_same_seed_same_draw_other_seed_other_parameters_and_inputs():
    reference = build_reference(forward("self.l(x)", "torch.rand(8, 48)", init=LINEAR))
    one, again, other = (reference.draw(s, "shipped") for s in (1, 1, 2))
    assert same(one.inputs, again.inputs)
    assert same(one.state.values(), again.state.values())
    assert not same(one.inputs, other.inputs)
    assert not torch.equal(one.state["l.weight"], other.state["l.weight"])
    want = one.inputs[0] @ one.state["l.weight"].T + one.state["l.bias"]
    assert torch.allclose(reference.eager(one)[0], want, atol=1e-6)


def test_drawing_leaves_the_global_generator_alone():
    reference = build_reference(forward("x * 2", "torch.rand(4)"))
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    reference.eager(reference.draw(5, "normal"))
    assert torch.equal(torch.rand(3), expected)


def test_values_of_each_profile():
    reference = build_reference(forward("x @ y", "torch.rand(64, 64)", "torch.rand(64, 64)"))
    x = {p: reference.draw(3, p).inputs[0] for p in reference.profiles}
    assert set(x) == {"shipped", "normal", "positive_mean", "negative", "large", "far", "integers"}
    assert 0 <= float(x["shipped"].min()) < float(x["shipped"].max()) < 1
    assert float(x["normal"].min()) < -1
    assert 1 <= float(x["positive_mean"].min()) < float(x["positive_mean"].max()) <= 2
    found = list(parts(x["negative"], FACTORS[0]))
    assert [bool(part.any()) for part, factor in found if not factor] == [False]
    for part, factor in ((p, f) for p, f in found if f):
        assert 1 <= float((-part / factor).min()) < float((-part / factor).max()) <= 2
    assert float(x["large"].std()) > 7
    assert set(x["integers"].unique().tolist()) == {-1.0, 0.0, 1.0}
    assert [p for p in x if reference.is_exact(p)] == ["integers"]


def test_integers_are_exact_for_products_and_absent_elsewhere():
    assert "integers" in profiles_of("self.l(x)", "torch.rand(8, 48)", init=LINEAR)
    conv = "self.c = torch.nn.Conv2d(3, 4, 3)"
    assert "integers" in profiles_of("self.c(x)", "torch.rand(2, 3, 8, 8)", init=conv)
    assert "integers" not in profiles_of("torch.relu(self.l(x))", "torch.rand(8, 48)", init=LINEAR)
    assert "integers" not in profiles_of("x + y", "torch.rand(8)", "torch.rand(8)")
    reference = build_reference(forward("x @ y", "torch.rand(9, 70)", "torch.rand(70, 5)"))
    draw = reference.draw(1, "integers")
    assert torch.equal(reference.eager(draw)[0].double(), reference.golden(draw)[0])


def test_integers_in_bfloat16_are_left_out_where_sums_round():
    inputs = [f"torch.rand({a}, {b}, dtype=torch.bfloat16)" for a, b in ((32, 2**17), (2**17, 32))]
    reference = build_reference(forward("x @ y", *inputs))
    assert "integers" not in reference.profiles
    assert any("integers" in note for note in reference.notes)


@pytest.mark.parametrize(
    "source",
    [
        "torch.triu(torch.rand(8, 8), 1)",
        "torch.randint(0, 2, (8, 8)).float()",
        "torch.rand(8, 8).softmax(-1)",
        "(torch.rand(8, 8) > torch.eye(8))",
        "torch.eye(8) * torch.rand(8, 8)",
        "(lambda t: t[t > 0].reshape(-1, 1))(torch.rand(8, 1))",
        "torch.rand(8, 8) * torch.rand(8, 8)",
        "(torch.rand(8, 8) > 0.5).float() * 2",
        "torch.randn(8, 8).abs()",
    ],
)
def test_structured_inputs_keep_their_structure_under_every_profile(source):
    reference = build_reference(forward("x * 1.5 + y", source, "torch.rand(8, 8)"))
    for profile in reference.profiles:
        draw = reference.draw(4, profile)
        shipped = reference.draw(4, "shipped")
        assert torch.equal(draw.inputs[0], shipped.inputs[0])
        if profile != "shipped":
            assert not torch.equal(draw.inputs[1], shipped.inputs[1])
    assert build_reference(forward("x * 1.5", source)).profiles == ("shipped",)


def test_affine_functions_of_random_tensors_may_be_replaced():
    reference = build_reference(forward("x.float()", "(2 * torch.rand(8, 8) - 1).half()"))
    assert "normal" in reference.profiles
    draw = reference.draw(1, "shipped")
    values = draw.inputs[0].clone()
    reference.redraw_inputs(draw, 2)
    assert not torch.equal(values, draw.inputs[0])
    assert float(draw.inputs[0].min()) < 0
    assert float(draw.inputs[0].abs().max()) <= 1


def test_profiles_outside_the_domain_are_dropped_with_a_reason():
    reference = build_reference(forward("torch.log(x + 1e-3)", "torch.rand(16, 16)"))
    assert reference.profiles == ("shipped", "normal", "positive_mean")
    assert any("negative" in n and "finite" in n for n in reference.notes)
    reference = build_reference(
        forward("torch.nn.functional.binary_cross_entropy(x, y)", "torch.rand(9)", "torch.rand(9)")
    )
    assert reference.profiles == ("shipped",)


def test_ill_conditioned_profiles_are_dropped():
    reference = build_reference(
        forward(
            "(x + 1e6 * y.sign()) - 1e6 * y.sign()",
            "torch.rand(16, 16) * 1e-2",
            "torch.rand(16, 16)",
        )
    )
    assert "shipped" not in reference.profiles
    assert "large" in reference.profiles
    with pytest.raises(ProblemError, match="wrong"):
        build_reference(forward("(x + 1e13) - 1e13", "torch.rand(16, 16)"))


def test_constant_parameters_become_random_in_one_profile():
    body, init = "self.n(x)", NORM + "; self.eval()"
    reference = build_reference(forward(body, "torch.rand(5, 6)", init=init))
    shipped, normal = (reference.draw(1, p).state for p in ("shipped", "normal"))
    assert torch.equal(shipped["n.weight"], torch.ones(6))
    for name in ("n.weight", "n.bias", "n.running_mean", "n.running_var"):
        assert len(normal[name].unique()) == 6
    assert float(normal["n.running_var"].min()) > 0
    assert int(normal["n.num_batches_tracked"]) == 0


def test_batch_statistics_do_not_leak_between_calls():
    reference = build_reference(forward("self.n(x)", "torch.rand(5, 6)", init=NORM))
    draw = reference.draw(1, "shipped")
    before = {name: t.clone() for name, t in draw.state.items()}
    first = reference.eager(draw)
    reference.golden(draw)
    reference.envelope(draw)
    call = reference.baseline("eager", draw)
    assert torch.equal(call(), first[0])
    assert same(reference.eager(draw), first)
    assert same(draw.state.values(), before.values())
    x = draw.inputs[0].double()
    want = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt()
    assert torch.allclose(reference.golden(draw)[0], want, rtol=0, atol=1e-12)


def test_redraw_keeps_addresses_and_reaches_the_baseline():
    reference = build_reference(
        forward(
            "(x * y).tril() + z.sum()",
            "torch.rand(8, 8)",
            "torch.tril(torch.rand(8, 8))",
            "torch.randint(9, (4,))",
        )
    )
    for profile in reference.profiles:
        draw = reference.draw(1, profile)
        call = reference.baseline("eager", draw)
        before, old = [t.data_ptr() for t in draw.inputs], call()
        reference.redraw_inputs(draw, 2)
        assert before == [t.data_ptr() for t in draw.inputs]
        assert torch.equal(draw.inputs[1], draw.inputs[1].tril())
        assert not torch.equal(call(), old)
        assert torch.equal(call(), reference.eager(draw)[0])
        values = [t.clone() for t in draw.inputs]
        reference.redraw_inputs(draw, 3)
        reference.redraw_inputs(draw, 2)
        assert same(values, draw.inputs)


def test_nested_outputs_are_flattened_and_integers_stay():
    reference = build_reference(
        forward("{'top': x.max(dim=1), 'rest': [x + 1, (x * 2,)]}", "torch.rand(6, 7)")
    )
    draw = reference.draw(1, "shipped")
    for outputs in (reference.eager(draw), reference.golden(draw)):
        assert [tuple(o.shape) for o in outputs] == [(6, 7), (6, 7), (6,), (6,)] or [
            tuple(o.shape) for o in outputs
        ] == [(6,), (6,), (6, 7), (6, 7)]
    kinds = [o.dtype for o in reference.golden(draw)]
    assert kinds.count(torch.float64) == 3
    assert kinds.count(torch.int64) == 1
    assert len(reference.specs()[1]) == 4


def test_an_output_that_is_an_input_is_copied():
    reference = build_reference(forward("x", "torch.rand(4, 4)"))
    draw = reference.draw(1, "shipped")
    (out,) = reference.eager(draw)
    kept = out.clone()
    reference.redraw_inputs(draw, 2)
    assert torch.equal(out, kept)


def test_forward_that_writes_into_its_arguments_gets_copies():
    reference = build_reference(forward("x.add_(1) * 2", "torch.rand(4, 4)"))
    draw = reference.draw(1, "shipped")
    values = draw.inputs[0].clone()
    assert torch.allclose(reference.golden(draw)[0], (values.double() + 1) * 2)
    reference.envelope(draw)
    reference.baseline("eager", draw)()
    assert torch.equal(draw.inputs[0], values)


def test_recurrent_modules_use_the_draw_s_parameters():
    source = (
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.r = torch.nn.LSTM(4, 3, batch_first=True)\n"
        "    def forward(self, x):\n        return self.r(x)[0]\n"
        "def get_inputs():\n    return [torch.rand(2, 5, 4)]\n"
    )
    reference = build_reference(model(source))
    draws = [reference.draw(s, "shipped") for s in (1, 2)]
    draws[1].inputs = draws[0].inputs
    first, second = (reference.eager(d)[0] for d in draws)
    assert float((first - second).abs().max()) > 1e-3
    golden = reference.golden(draws[0])[0]
    assert golden.dtype is torch.float64
    assert float((first.double() - golden).abs().max()) < 1e-6


def test_explicit_casts_inside_forward_are_lifted_for_the_golden():
    body = "(x.bfloat16().float() * torch.tensor(0.1)) / torch.zeros(4).add(3)"
    reference = build_reference(forward(body, "torch.rand(4, 4)"))
    draw = reference.draw(1, "shipped")
    want = draw.inputs[0].double() * torch.tensor(0.1, dtype=torch.float64) / 3
    assert torch.allclose(reference.golden(draw)[0], want, rtol=1e-15)


def test_golden_in_blocks_equals_the_whole():
    layers = "self.l = torch.nn.Linear(48, 24); self.n = torch.nn.LayerNorm(24)"
    reference = build_reference(
        forward("self.n(self.l(x)) * y", "torch.rand(10, 48)", "torch.rand(10, 24)", init=layers)
    )
    draw = reference.draw(1, "normal")
    whole, parts = reference.golden(draw), reference.golden(draw, blocks=5)
    assert torch.allclose(whole[0], parts[0], rtol=1e-12)


def test_square_products_are_split_along_the_right_argument():
    reference = build_reference(forward("x @ y", "torch.rand(12, 12)", "torch.rand(12, 12)"))
    draw = reference.draw(1, "normal")
    assert torch.allclose(reference.golden(draw)[0], reference.golden(draw, blocks=6)[0])


@pytest.mark.parametrize(
    "body",
    ["self.n(x)", "torch.softmax(x, 0)", "x - x.mean(0)", "x.cumsum(0)", "x.flip(0)", "x.sum()"],
)
def test_batches_that_mix_are_never_split(body):
    reference = build_reference(forward(body, "torch.rand(8, 6)", init=NORM))
    with pytest.raises(ProblemError, match="do not fit"):
        reference.golden(reference.draw(1, "shipped"), blocks=4)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("x * 0", "zero everywhere"),
        ("x - x.mean() - (x - x.mean())", "zero"),
        ("x * 1e-9 + 1", "same number"),
        ("x.sum(1, keepdim=True).expand(32, 32)", "last dimension"),
        ("y.expand(32, 32) + 0 * x", "element of the batch"),
        ("torch.nn.functional.dropout(x, 0.5)", "random"),
    ],
)
def test_degenerate_problems_say_why(body, word):
    reference = build_reference(forward(body, "torch.rand(32, 32)", "torch.rand(32)"))
    assert any(word in reason for reason in reference.degenerate())


def test_sound_problems_are_not_degenerate():
    for body in ("x * 2", "torch.relu(x)", "x @ x", "torch.softmax(x, -1)", "x.mean(1)"):
        assert build_reference(forward(body, "torch.rand(32, 32)")).degenerate() == ()
    constant = build_reference(forward("x * 2 + y", "torch.ones(9, 9)", "torch.arange(9)"))
    assert any("every seed" in reason for reason in constant.degenerate())


def test_broken_references_are_problem_errors():
    for body, word in (("x @ y", "line"), ("x / 0", "finite"), ("'text'", "tensors")):
        with pytest.raises(ProblemError, match=word):
            build_reference(forward(body, "torch.rand(4, 3)", "torch.rand(4, 3)"))


def test_counts_and_specs():
    reference = build_reference(forward("self.l(x)", "torch.rand(8, 48)", init=LINEAR))
    inputs, outputs, parameters = reference.specs()
    assert [(s.name, s.shape) for s in inputs] == [("x", (8, 48))]
    assert [(s.name, s.shape) for s in outputs] == [("output0", (8, 24))]
    assert [s.name for s in parameters] == ["l.weight", "l.bias"]
    assert reference.flops == 2 * 8 * 48 * 24
    assert reference.io_bytes == 4 * (8 * 48 + 8 * 24 + 48 * 24 + 24)
    assert reference.baseline_names() == ("eager",)


def test_relu_as_identity_passes_shipped_values_but_not_normal_ones():
    """Why profiles exist: on [0, 1) the identity is a correct ReLU."""
    reference = build_reference(forward("torch.relu(x)", "torch.rand(64, 64)"))
    for profile, passes in (("shipped", True), ("normal", False)):
        draw = reference.draw(2, profile)
        members = [m[0] for m in reference.envelope(draw).values()]
        bound = make_bound(reference.golden(draw)[0], members, torch.float32, exact=False)
        result = gate(draw.inputs[0], reference.golden(draw)[0], bound)
        assert result.passed is passes
