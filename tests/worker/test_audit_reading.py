"""Fakes that do not read everything, and inputs that a result does not depend on."""

import pytest
from audited import audited, trial
from problem_files import attention, forward

from hotloop.core.audit import FakeGroup, TrialState

CAUGHT, ACCEPTED, SAME = TrialState.CAUGHT, TrialState.ACCEPTED, TrialState.SAME
CONV = "self.c = torch.nn.Conv2d(3, 6, 3); "
FIRST_KEYS = "only the first tiles of the keys"


def by_group(found, group):
    return {t.name: t for t in found.trials if t.group is group}


@pytest.mark.parametrize("body", ["x.sum(1)", "x.mean(1)", "x.amax(1)", "torch.softmax(x, 1)"])
def test_a_reduction_that_is_not_read_whole_is_caught(body):
    found = audited(forward(body, "torch.rand(8, 300)"))
    reading = by_group(found, FakeGroup.READING)
    assert {t.state for t in reading.values()} == {CAUGHT}
    assert "all but the last elements of x, dimension 1" in reading
    assert {t.state for t in by_group(found, FakeGroup.DEPENDENCE).values()} == {CAUGHT}
    assert found.rankable


def test_a_sampled_mean_passes_in_16_bits_on_shipped_values_and_others_catch_it():
    found = audited(forward("x.mean()", "torch.rand(1024, 1024, dtype=torch.bfloat16)"))
    sampled = trial(found, "the first half, taken for the whole, of x, dimension 0")
    assert sampled.state is CAUGHT
    assert sampled.passed[0] == "nominal: shipped"
    assert sampled.caught_by != "nominal: shipped"


def test_what_the_checks_cannot_see_is_a_reason():
    found = audited(forward("x + 1e-8 * y", "torch.rand(32, 32)", "torch.rand(32, 32)"))
    assert trial(found, "other values of y").state is ACCEPTED
    assert trial(found, "other values of x").state is CAUGHT
    assert trial(found, "only the first part of y, dimension 0").state is ACCEPTED
    assert not found.rankable
    assert any("do not see" in reason and "of y" in reason for reason in found.reasons)


def test_an_input_that_changes_nothing_is_a_reason():
    found = audited(forward("x * 2 + 0 * y", "torch.rand(32, 32)", "torch.rand(32, 32)"))
    assert trial(found, "other values of y").state is SAME
    assert "the right result stays the same for other values of y" in found.reasons


def test_a_matrix_that_changes_nothing_is_a_reason():
    init = "self.l = torch.nn.Linear(32, 32)"
    found = audited(forward("x * 2 + 0 * self.l(x)", "torch.rand(32, 32)", init=init))
    assert trial(found, "other values of l.weight").state is SAME
    assert any("l.weight" in reason for reason in found.reasons)
    assert any("l.bias" in text for text in found.findings)


def test_a_bias_that_a_normalisation_takes_off_is_a_finding():
    init = CONV + "self.n = torch.nn.InstanceNorm2d(6)"
    found = audited(forward("self.n(self.c(x))", "torch.rand(4, 3, 8, 8)", init=init))
    assert trial(found, "other values of c.bias").state is SAME
    assert trial(found, "other values of c.weight").state is CAUGHT
    assert found.rankable
    assert any("c.bias" in text for text in found.findings)


def test_weights_and_constants_count():
    init = "self.n = torch.nn.LayerNorm(48)"
    found = audited(forward("self.n(x)", "torch.rand(8, 48)", init=init))
    assert trial(found, "other values of n.weight").state is CAUGHT
    assert trial(found, "other values of n.bias").state is CAUGHT
    assert found.findings == ()


def test_rows_that_are_left_out_are_a_finding():
    found = audited(forward("x[:, :24] * 2", "torch.rand(8, 48)"))
    block = trial(found, "other values in block 4 of 4 of x, dimension 1")
    assert block.state is SAME
    assert found.rankable
    assert any("block 3 of 4 of x, dimension 1" in text for text in found.findings)


@pytest.mark.slow
def test_attention_that_reads_only_some_tiles_is_caught_by_needles():
    relative = "def score_mod(s, b, h, q, kv): return s + (q - kv)\n"
    found = audited(attention(relative, B=1, H=1, S=256, D=32))
    first = trial(found, FIRST_KEYS)
    assert first.state is CAUGHT
    assert first.passed[0] == "nominal: normal"
    assert first.caught_by == "nominal: needles"
    assert trial(found, "only the last tiles of the keys").caught_by == "nominal: normal"
    assert found.rankable


@pytest.mark.slow
def test_attention_without_a_bias_is_caught_on_plain_values():
    found = audited(attention("", B=1, H=1, S=256, D=32))
    reading = by_group(found, FakeGroup.READING)
    assert {t.caught_by for t in reading.values()} == {"nominal: normal"}
    window = "def mask_mod(b, h, q, kv): return abs(q - kv) < 8\n"
    found = audited(attention(window, B=1, H=1, S=256, D=32))
    assert trial(found, "only the tiles near the query of the keys").state is SAME
    assert trial(found, FIRST_KEYS).state is CAUGHT
