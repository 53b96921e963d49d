"""On small inputs sums that begin at the bias pass, and what drops the products does not."""

import torch
from problem_files import forward

from hotloop.worker import from_bias
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.envelope import orders
from hotloop.worker.reference import build_reference

SEEDS = range(100, 104)
LINEAR = "self.l = torch.nn.Linear({}, 64{})"


def built(terms, extra=""):
    init = LINEAR.format(terms, extra)
    return build_reference(forward("self.l(x)", f"torch.randn(24, {terms})", init=init))


def book_of(reference, profile="small"):
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add(profile, seed, cache_bytes=1 << 26)
    assert len(book.cases) == len(SEEDS)
    return book


def arguments_of(draw):
    return draw.inputs[0], draw.state["l.weight"], draw.state["l.bias"]


def begun_at_bias(x, w, b):
    return from_bias.addmm(b, x, w.T.contiguous())


def in_bfloat16(x, w, b):
    return (x.bfloat16() @ w.bfloat16().T).float() + b


def of_bfloat16(x, w, b):
    return x.bfloat16().float() @ w.bfloat16().float().T + b


WRONG = {
    "operands in bfloat16": of_bfloat16,
    "product in bfloat16": in_bfloat16,
    "product in float16": lambda x, w, b: (x.half() @ w.half().T).float() + b,
    "no bias": lambda x, w, b: x @ w.T,
    "bias twice": lambda x, w, b: x @ w.T + 2 * b,
    "bias in bfloat16": lambda x, w, b: x @ w.T + b.bfloat16().float(),
    "no product": lambda x, w, b: b + 0 * (x @ w.T),
}


def test_sums_from_the_bias_pass_and_lower_precision_does_not():
    book = book_of(built(256))
    assert list(book.members) == ["eager", "sequential", "reordered", "from_bias"]
    passed = dict.fromkeys(("right", "last", *WRONG), 0)
    kernels = {"right": begun_at_bias, "last": lambda x, w, b: x @ w.T + b, **WRONG}
    for case in book:
        draw, (golden,) = book.materialise(case)
        for name, kernel in kernels.items():
            passed[name] += gate(kernel(*arguments_of(draw)), golden, case.bounds[0]).passed
    assert passed == dict.fromkeys(WRONG, 0) | {"right": len(SEEDS), "last": len(SEEDS)}


def test_without_its_member_such_sums_were_refused():
    reference, refused = built(512), 0
    for seed in SEEDS:
        draw = reference.draw(seed, "small")
        kept = [m[0] for name, m in reference.envelope(draw).items() if name != "from_bias"]
        (golden,) = reference.golden(draw)
        bound = make_bound(golden, kept, torch.float32, exact=False)
        refused += not gate(begun_at_bias(*arguments_of(draw)), golden, bound).passed
    assert refused >= 1


def test_other_profiles_keep_their_members():
    reference = built(64)
    for profile in (*reference.profiles, *reference.final_profiles):
        members = reference.envelope(reference.draw(5, profile))
        assert ("from_bias" in members) == (profile == "small"), profile


def test_nothing_is_added_where_there_is_no_bias():
    reference = built(64, ", bias=False")
    assert "from_bias" not in reference.envelope(reference.draw(5, "small"))


def test_nothing_is_added_where_it_would_take_too_long():
    reference = built(64)
    assert "from_bias" in orders("small", has_biases=True)
    assert "from_bias" not in orders("small", has_biases=False)
    assert from_bias.fits(reference.flops, "cpu")
    assert not from_bias.fits(1e3 * from_bias.VOLUME["cpu"], "cpu")
