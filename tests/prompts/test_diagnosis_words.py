"""The diagnosis of a wrong output in words: first what it means, then where, then examples."""

import pytest
from prompt_cases import attention_task, candidate, case, norm_task, verdict, wrong_values

from hotloop.core.verdict import Correctness, KernelResources, Stage, Status, Tier
from hotloop.prompts.feedback import Judged, make_feedback

NOMINAL = {"role": "nominal", "name": "nominal", "settings": {}}


def told(judged_verdict, task=None):
    task = task or norm_task()
    return make_feedback(
        Judged(verdict=judged_verdict, candidate=candidate(), problem=task.problem, info=task.info)
    ).text


def wrong_attention(details, **fields):
    shape = {"shape": [4, 16, 4096, 128], "mismatches": 1 << 20}
    return told(wrong_values(shape | details, **({"rmse": 0.5} | fields)), attention_task())


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("no_mask", "equals attention without the mask"),
        ("exp2_without_log2e", "1.4427 that exp2 needs"),
        ("last_64_keys_left_out", "leaves out the last 64 keys"),
        ("key_index_within_block_32", "counted within its block of 32"),
    ],
)
def test_a_mistake_that_was_recognised_comes_first_and_alone(mistake, words):
    details = {"mistake": mistake, "ratio": {"median": 2.0, "spread": 0.0}}
    text = wrong_attention(details)
    assert text.startswith("What it means: Your output equals")
    assert words in text
    assert "constant ratio" not in text


@pytest.mark.parametrize("mistake", ["of_a_later_version", "last_x_keys_left_out", 7, None])
def test_a_mistake_that_is_not_known_is_not_told(mistake):
    assert "equals" not in wrong_attention({"mistake": mistake})


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"kind": "shift", "dim": 2, "by": 1},
         "shifted along dimension 2 (query row): index i holds what belongs at i + 1."),
        ({"kind": "shift", "dim": 1, "by": -1, "wraps": True}, "i - 1 (counted round the end)"),
        ({"kind": "transposed", "dims": [1, 2]},
         "with dimension 1 (head) and dimension 2 (query row) transposed"),
        ({"kind": "slices", "dim": 1, "map": [0] * 16}, "every index holds what belongs at 0"),
        ({"kind": "slices", "dim": 1, "map": list(range(16))[::-1]}, "in reverse order"),
        ({"kind": "slices", "dim": 1, "map": [1, 0, *range(2, 16)]},
         "0 holds what belongs at 1, 1 holds what belongs at 0."),
        ({"kind": "input", "index": 0}, "a copy of input 0"),
        ({"kind": "zero"}, "All wrong elements are 0"),
    ],
)  # fmt: skip
def test_an_origin_is_told_in_words(origin, words):
    assert words in wrong_attention({"origin": origin})


@pytest.mark.parametrize(
    "origin",
    [{"kind": "shift"}, {"kind": "wormhole"}, {"kind": "transposed", "dims": [1]}, "x", []],
)
def test_an_origin_of_another_form_is_left_out(origin):
    assert "right values are there" not in wrong_attention({"origin": origin})


def test_a_last_partial_block_is_told_with_its_dimension():
    pattern = {"dim": 2, "size": 100, "kind": "range", "from": 96, "to": 99, "block": 32}
    text = wrong_attention({"shape": [4, 16, 100, 128], "patterns": [pattern],
                            "box": [[0, 3], [0, 15], [96, 99], [0, 127]]})  # fmt: skip
    assert "last partial block of dimension 2 (query row) (size 100, no multiple of 32)" in text
    assert "96..99 of 100 in dimension 2 (query row)" in text


@pytest.mark.parametrize(("first", "last"), [(0, 63), (32, 63), (50, 99)])
def test_other_ranges_are_no_last_block(first, last):
    pattern = {"dim": 2, "size": 100, "kind": "range", "from": first, "to": last, "block": 32}
    text = wrong_attention({"shape": [4, 16, 100, 128], "patterns": [pattern]})
    assert "last partial block" not in text.split("They lie at")[0]


def test_nan_of_masked_rows_is_told_apart_from_memory_never_written():
    nonfinite = {"nonfinite": 512, "nan": 512, "mismatches": 512,
                 "nonfinite_box": [[0, 3], [0, 15], [0, 0], [0, 127]],
                 "box": [[0, 3], [0, 15], [0, 0], [0, 127]]}  # fmt: skip
    fields = {"rmse": None, "rule": "nonfinite"}
    assert "every key is masked" in wrong_attention(nonfinite | {"masked_rows": True}, **fields)
    assert "never written" in wrong_attention(nonfinite, **fields)
    assert "look for exp of a large" in wrong_attention(nonfinite | {"nan": 0}, **fields)


def test_an_even_error_is_low_precision_and_a_concentrated_one_is_not():
    fields = {"rmse": 0.016, "eager_rmse": 0.0004}
    assert "lower precision" in told(wrong_values({"evenness": 0.6}, **fields))
    assert "lower precision" not in told(wrong_values({"evenness": 0.01}, **fields))
    larger = fields | {"rmse": 0.06}
    assert "lower precision" in told(wrong_values({"evenness": 0.6}, **larger))
    assert "lower precision" not in told(wrong_values({"evenness": 0.3}, **larger))


@pytest.mark.parametrize(
    ("law", "is_told"),
    [
        ({"median": 1.4427, "spread": 0.002, "share": 1.0}, True),
        ({"median": 1.4427, "spread": 0.002, "share": 0.5}, False),
        ({"median": 1.4427, "spread": 0.05, "share": 1.0}, True),
        ({"median": 1.4427, "spread": 0.3, "share": 1.0}, False),
        ({"median": 1.001, "spread": 0.002, "share": 1.0}, False),
    ],
)
def test_a_ratio_is_told_only_if_it_is_one(law, is_told):
    text = told(wrong_values({"ratio": law}, rmse=0.4))
    assert ("log2(e)" in text) is is_told


def test_the_length_at_which_it_becomes_wrong_is_told():
    both = {"passes": {"S": 64}, "fails": {"S": 128}}
    text = wrong_attention({"smaller": both})
    assert "With S = 64 it is right, with S = 128 it is wrong already" in text
    assert "is right" not in wrong_attention({"smaller": {"fails": {"S": 16}}})
    assert "it is wrong already" not in wrong_attention({"smaller": {"passes": {"S": 64}}})


@pytest.mark.parametrize(
    ("law", "is_told"),
    [
        ({"median": 1.01, "spread": 1e-6}, True),
        ({"median": 0.995, "spread": 1e-5}, True),
        ({"median": 1.01, "spread": 0.004}, False),  # as 16-bit results scatter
        ({"median": 1.0001, "spread": 0.0001}, False),
        ({"median": 1.0, "spread": 0.0}, False),
    ],
)
def test_a_ratio_near_1_is_told_where_it_is_sharp(law, is_told):
    text = told(wrong_values({"ratio": law}, rmse=0.01))
    assert ("constant ratio" in text) == is_told


@pytest.mark.parametrize("ratio", [64 / 63, 63 / 64, (64 / 63) ** 0.5, (63 / 64) ** 0.5])
def test_a_variance_that_divides_by_the_other_count_is_named(ratio):
    law = {"median": ratio, "spread": 1e-6}
    text = told(wrong_values({"ratio": law, "shape": [32, 64]}, rmse=0.01))
    assert "as n to n - 1, or their roots, n near 64" in text
    other = {"median": 1 + 1.2 * (ratio - 1), "spread": 1e-6}
    assert "n - 1" not in told(wrong_values({"ratio": other, "shape": [32, 64]}, rmse=0.01))


def test_a_ratio_far_from_1_is_no_matter_of_counts():
    for ratio, shape in ((1.5, [8, 3, 32]), (0.75, [4, 64]), (0.8, [5])):
        law = {"median": ratio, "spread": 1e-6}
        text = told(wrong_values({"ratio": law, "shape": shape}, rmse=0.3))
        assert f"got / expected is {ratio}" in text
        assert "n - 1" not in text


def test_a_ratio_near_1_is_told_by_what_is_missing_to_1():
    law = {"median": 1.000122, "spread": 1e-9}
    assert "got / expected is 1 +0.000122 everywhere" in told(
        wrong_values({"ratio": law}, rmse=1e-4)
    )


def test_a_ratio_of_a_size_names_the_dimension():
    law = {"median": 2048**0.5, "spread": 0.01, "share": 1.0}
    assert "square root of the size of dimension 1" in told(wrong_values({"ratio": law}, rmse=0.4))


def test_a_difference_is_told_only_if_it_explains_all():
    law = {"median": 2.0, "spread": 0.001, "share": 1.0}
    assert "constant difference" in told(wrong_values({"difference": law}, rmse=0.4))
    partly = law | {"share": 0.7}
    assert "constant difference" not in told(wrong_values({"difference": partly}, rmse=0.4))


def failed_call(role, *, tier=Tier.FAST, profile="large", **fields):
    details = {"workload": {"role": role, "name": "odd", "settings": {"ROWS": 31}},
               "profile": profile}  # fmt: skip
    return verdict(Status.RUNTIME_ERROR, message="it raised", details=details, tier=tier,
                   stage_s={"gpu": 1.0}, **fields)  # fmt: skip


def test_a_crash_says_on_which_sizes_and_values():
    text = told(failed_call("boundary"))
    assert "other sizes than the problem's own: ROWS=31" in text
    assert "inputs of large magnitude" in text
    assert "ROWS=31" not in told(failed_call("nominal"))


def test_nothing_is_told_of_held_out_sizes():
    text = told(failed_call("held_out", tier=Tier.FINAL))
    assert "not shown" in text
    assert "ROWS" not in text
    assert "it raised" not in text


def test_a_nominal_crash_at_the_final_tier_is_told():
    assert "it raised" in told(failed_call("nominal", tier=Tier.FINAL))


def test_what_passed_before_is_told_for_the_same_sizes_only():
    cases = (
        case(passed=True, profile="shipped"),
        case(passed=True, profile="integers", workload="secret"),
        case(profile="large"),
    )
    details = {"workload": NOMINAL, "profile": "large"}
    text = told(
        verdict(Status.INCORRECT_NUMERICAL, kind="wrong_values", details=details,
                correctness=Correctness(cases=cases, deterministic=True))
    )  # fmt: skip
    assert "It had passed on the problem's own inputs." in text
    assert "whole numbers" not in text


@pytest.mark.parametrize("kind", ["cuda_error", "exception"])
def test_a_fault_of_the_device_names_the_kernel(kind):
    text = told(
        verdict(Status.RUNTIME_ERROR, stage=Stage.CORRECTNESS, kind=kind,
                message="CUDA error: an illegal memory access was encountered",
                resources=(KernelResources(name="norm_kernel"),))
    )  # fmt: skip
    assert ("`norm_kernel`" in text) is (kind == "cuda_error")
