"""What is told of outputs that are wrong in a known way, and what is not told of others."""

import json

import pytest
import torch

from hotloop.core.problem import Problem, ProblemKind, Role, Workload
from hotloop.worker.cases import Case
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.correctness import case_result
from hotloop.worker.diagnosis import Wrong, diagnose, workload_of
from hotloop.worker.reference import Draw
from hotloop.worker.wrong_region import describe_region

SHAPE = (2, 4, 96, 64)


def noisy(golden, seed, factor=1.0):
    gen = torch.Generator().manual_seed(seed)
    noise = torch.randn(golden.shape, generator=gen, dtype=torch.float64)
    return (golden + factor * 1e-3 * noise).to(torch.bfloat16)


def values(shape=SHAPE, seed=0):
    gen = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=gen, dtype=torch.float64)


def told(spoil, golden=None, *, inputs=None, dtype=torch.bfloat16):
    """Return the details for what `spoil` makes of a right output, by way of JSON."""
    golden = values() if golden is None else golden
    right = noisy(golden, 1)
    bound = make_bound(golden, [noisy(golden, 2), noisy(golden, 3)], dtype, exact=False)
    assert gate(right, golden, bound).passed
    output = spoil(right.clone()).contiguous()
    result = gate(output, golden, bound)
    assert not result.passed
    case = case_result(Case("nominal", "normal", 7, (bound,)), 0, bound, result)
    draw = None
    if inputs is not None:
        draw = Draw(tuple(inputs), {}, 7, "normal")
    return json.loads(json.dumps(diagnose(Wrong(case, output, golden, bound, None, draw))))


def set_to(index, value):
    def spoil(output):
        output[index] = value
        return output

    return spoil


def copy_rows(output):
    output[:, :, :-1] = output[:, :, 1:].clone()
    return output


def swap_heads(output):
    return output[:, [1, 0, 3, 2]]


def bf16_sums(output):
    gen = torch.Generator().manual_seed(9)
    return output + (0.04 * torch.randn(output.shape, generator=gen)).to(output.dtype)


def pattern(details, dim):
    return next((p for p in details["patterns"] if p["dim"] == dim), None)


def test_a_tile_that_is_wrong_is_boxed():
    details = told(set_to((1, 2, slice(32, 64), slice(0, 16)), 5.0))
    assert details["box"] == [[1, 1], [2, 2], [32, 63], [0, 15]]
    assert details["mismatches"] == 32 * 16
    assert details["density"] == 1.0
    assert pattern(details, 2) == {
        "dim": 2, "size": 96, "kind": "range", "from": 32, "to": 63, "block": 32,
    }  # fmt: skip
    assert details["evenness"] < 0.1


def test_the_box_is_that_of_all_wrong_elements_not_of_the_samples():
    def spoil(output):
        output[0, 0, 3, 5] = 9.0
        output[1, 3, 90, 60] = 9.0
        return output

    assert told(spoil)["box"] == [[0, 1], [0, 3], [3, 90], [5, 60]]


def test_a_last_tile_that_was_never_written_is_nan_there():
    details = told(set_to((slice(None), slice(None), slice(64, None)), float("nan")))
    assert details["nonfinite"] == details["nan"] == 2 * 4 * 32 * 64
    assert details["nonfinite_box"][2] == [64, 95]
    assert [p["dim"] for p in details["nonfinite_patterns"]] == [2]
    assert "origin" not in details


def test_a_column_of_infinities_is_told_apart_from_nan():
    details = told(set_to((..., 7), float("inf")))
    assert details["nonfinite"] == 2 * 4 * 96
    assert details["nan"] == 0
    assert details["nonfinite_patterns"] == [{"dim": 3, "size": 64, "kind": "one", "at": 7}]


def test_every_other_row_is_a_pattern():
    details = told(set_to((slice(None), slice(None), slice(1, None, 2)), 3.0))
    assert pattern(details, 2) == {"dim": 2, "size": 96, "kind": "every", "step": 2, "from": 1}
    assert pattern(details, 3) is None


def test_the_second_half_of_each_block_is_a_pattern():
    def spoil(output):
        output.view(2, 4, 96, 4, 16)[..., 8:] = 3.0
        return output

    assert pattern(told(spoil), 3) == {
        "dim": 3, "size": 64, "kind": "period", "period": 16, "from": 8, "to": 15,
    }  # fmt: skip


@pytest.mark.parametrize(("keep", "side"), [(torch.tril, "above"), (torch.triu, "below")])
def test_a_side_of_the_diagonal_is_told(keep, side):
    golden = values((3, 48, 48))
    assert told(lambda o: keep(o.float()).to(o.dtype), golden)["diagonal"] == side


def test_one_ratio_is_told_with_its_spread():
    details = told(lambda o: o * 1.442695)
    assert details["ratio"]["median"] == pytest.approx(1.4427, rel=2e-3)
    assert details["ratio"]["spread"] < 0.01 * details["ratio"]["median"]
    assert details["ratio"]["share"] > 0.99
    assert "origin" not in details


def test_one_difference_is_told():
    details = told(lambda o: o + 3.0)
    assert details["difference"]["median"] == pytest.approx(3.0, rel=1e-2)
    assert details["difference"]["share"] > 0.99
    assert details["ratio"]["share"] < 0.9


def test_low_precision_is_an_even_error_without_place_or_law():
    details = told(bf16_sums)
    assert details["evenness"] > 0.4
    assert details["times_eager"] > 10
    assert details["patterns"] == []
    assert "origin" not in details
    assert abs(details["ratio"]["median"] - 1) < 0.02


@pytest.mark.parametrize(
    ("spoil", "origin"),
    [
        (copy_rows, {"kind": "shift", "dim": 2, "by": 1}),
        (lambda o: o.roll(-1, 1), {"kind": "shift", "dim": 1, "by": 1, "wraps": True}),
        (lambda o: o.roll(16, 3), {"kind": "shift", "dim": 3, "by": -16, "wraps": True}),
        (swap_heads, {"kind": "slices", "dim": 1, "map": [1, 0, 3, 2]}),
        (lambda o: o[:, :1].expand_as(o), {"kind": "slices", "dim": 1, "map": [0, 0, 0, 0]}),
        (lambda o: o.transpose(1, 2).reshape(o.shape), {"kind": "transposed", "dims": [1, 2]}),
        (lambda o: o.transpose(2, 3).reshape(o.shape), {"kind": "transposed", "dims": [2, 3]}),
        (torch.zeros_like, {"kind": "zero"}),
    ],
)
def test_values_that_belong_elsewhere_are_found(spoil, origin):
    assert told(spoil)["origin"] == origin


def test_a_long_dimension_is_searched_for_shifts_by_a_block():
    golden = values((3000, 16))
    shifted = told(lambda o: torch.cat([o[64:], o[:64]]), golden)
    assert shifted["origin"] == {"kind": "shift", "dim": 0, "by": 64, "wraps": True}


def test_a_copied_input_is_found():
    given = values(SHAPE, 5).to(torch.bfloat16)
    other = values(SHAPE, 6).to(torch.bfloat16)
    assert told(lambda o: given.clone(), inputs=[other, given])["origin"] == {
        "kind": "input", "index": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "spoil",
    [
        lambda o: values(SHAPE, 77).to(o.dtype),
        lambda o: o.roll(-1, 2) + 0.5 * o,
        lambda o: torch.where(torch.rand(o.shape) < 0.8, o.roll(-1, 2), o * 3),
        lambda o: o.abs() + 4,
        lambda o: torch.ones_like(o),
    ],
)
def test_unrelated_values_have_no_origin_and_no_ratio(spoil):
    details = told(spoil)
    assert "origin" not in details
    assert details["ratio"]["spread"] > 0.05 * abs(details["ratio"]["median"])


def test_values_of_few_kinds_have_no_origin():
    """Where any place explains many elements by chance, a match says nothing."""
    golden = (values(SHAPE) > 0.8).double()
    assert "origin" not in told(lambda o: (o.float() * 0 + 1).to(o.dtype), golden)


def test_samples_are_spread_and_hold_the_worst():
    def spoil(output):
        output += 1
        output[1, 3, 50, 50] = 40.0
        return output

    indices = [s["index"] for s in told(spoil)["samples"]]
    assert len(indices) == 5
    assert indices[0] == [1, 3, 50, 50]
    assert {i[0] for i in indices} == {0, 1}
    assert len({i[3] for i in indices}) > 1


def test_a_wrong_tile_of_small_values_is_placed_by_the_limit_of_its_own_tile():
    """Rows of attention shrink with their number of keys; one limit for all would hide the last."""
    golden = values((1024, 64)) * torch.linspace(1, 0.02, 1024)[:, None].double()

    def scaled(seed):
        gen = torch.Generator().manual_seed(seed)
        noise = torch.randn(golden.shape, generator=gen, dtype=torch.float64)
        return (golden * (1 + 4e-3 * noise)).to(torch.bfloat16)

    bound = make_bound(golden, [scaled(1)], torch.bfloat16, exact=False)
    output = scaled(2)
    assert gate(output, golden, bound).passed
    output[960:] = 0
    result = gate(output, golden, bound)
    case = case_result(Case("nominal", "normal", 7, (bound,)), 0, bound, result)
    details = diagnose(Wrong(case, output, golden, bound))
    assert details["box"][0][0] >= 960
    assert details["origin"] == {"kind": "zero"}


def test_a_very_long_dimension_still_has_a_box():
    length = (1 << 22) + 7
    mask = torch.zeros(length, dtype=torch.bool)
    mask[11] = mask[length - 3] = True
    assert describe_region(mask, (length,)) == {"box": [[11, length - 3]], "patterns": []}


def test_scalars_and_whole_numbers_are_described_too():
    golden = torch.tensor([3, 4, 5, 6])
    bound = make_bound(golden, [], torch.int64, exact=True)
    output = torch.tensor([3, 4, 0, 6])
    result = gate(output, golden, bound)
    case = case_result(Case("nominal", "normal", 7, (bound,)), 0, bound, result)
    details = diagnose(Wrong(case, output, golden, bound))
    assert details["mismatches"] == 1
    assert details["box"] == [[2, 2]]
    assert details["samples"] == [{"index": [2], "got": "0", "expected": "5"}]
    scalar = torch.tensor(2.0, dtype=torch.float64)
    bound = make_bound(scalar, [scalar], torch.float32, exact=False)
    output = torch.tensor(3.0)
    case = case_result(
        Case("nominal", "normal", 7, (bound,)), 0, bound, gate(output, scalar, bound)
    )
    assert diagnose(Wrong(case, output, scalar, bound))["samples"][0]["got"] == "3"


def test_a_held_out_workload_is_its_role_alone():
    problem = Problem(
        name="x", kind=ProblemKind.NATIVE, source="", settings={"D": 8},
        workloads=(
            Workload(name="nominal", role=Role.NOMINAL),
            Workload(name="boundary/0", role=Role.BOUNDARY, settings={"S": 5}),
            Workload(name="secret", role=Role.HELD_OUT, settings={"S": 977}),
        ),
    )  # fmt: skip
    assert workload_of(problem, "boundary/0") == {
        "role": "boundary", "name": "boundary/0", "settings": {"D": 8, "S": 5},
    }  # fmt: skip
    assert workload_of(problem, "secret") == {"role": "held_out"}
    assert workload_of(problem, "unheard of") == {"role": "held_out"}
