"""What a model is told of a verdict, and what it is never told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_cases import (
    FORBIDDEN,
    HELD_OUT_ROWS,
    HOST_FOLDER,
    KERNEL,
    SECRET_DETAILS,
    SEED,
    TOLERANCE,
    candidate,
    case,
    norm_task,
    passed,
    verdict,
    wrong_values,
)

from hotloop.core.verdict import Correctness, Stage, Status, Tier
from hotloop.prompts.feedback import Judged, make_feedback


def told(judged_verdict, text=KERNEL):
    task = norm_task()
    feedback = make_feedback(
        Judged(verdict=judged_verdict, candidate=candidate(text), problem=task.problem,
               info=task.info)
    )  # fmt: skip
    return f"{feedback.headline}\n{feedback.text}"


def samples(*triples):
    return [{"index": list(i), "got": g, "expected": e} for i, g, e in triples]


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_section(status):
    stage = Stage.COMPILE if status is Status.COMPILE_ERROR else Stage.CORRECTNESS
    assert len(told(verdict(status, stage=stage, message="BLOCK is 0"))) > 20


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
@pytest.mark.parametrize("tier", list(Tier))
def test_no_status_tells_a_secret(status, tier):
    message = f"seed {SEED} at {HOST_FOLDER}/x/kernel.py: atol {TOLERANCE}"
    text = told(verdict(status, tier=tier, message=message, details=SECRET_DETAILS))
    assert [word for word in FORBIDDEN if word in text] == []


@pytest.mark.parametrize("workload", ["odd", "nominal"])
def test_a_failure_on_held_out_sizes_tells_no_sizes(workload):
    found = samples(*[((HELD_OUT_ROWS - k, 3), "0.5", "0.25") for k in range(1, 4)])
    details = {"shape": [HELD_OUT_ROWS, 2048], "samples": found, "mismatches": 77}
    text = told(wrong_values(details, tier=Tier.FINAL, workload=workload))
    assert ("not shown" in text) is (workload == "odd")
    assert (str(HELD_OUT_ROWS) in text) is (workload == "nominal")


@pytest.mark.parametrize(("stage", "stage_s", "is_hidden"), [
    (Stage.CORRECTNESS, {"gpu": 1.0}, True),
    (Stage.COMPILE, {"gpu": 1.0}, True),
    (Stage.COMPILE, {}, False),
    (Stage.PERFORMANCE, {"gpu": 1.0}, False),
])  # fmt: skip
def test_an_exception_that_may_be_of_held_out_sizes_is_not_told(stage, stage_s, is_hidden):
    failed = verdict(Status.RUNTIME_ERROR, stage=stage, tier=Tier.FINAL, stage_s=stage_s,
                     message="expected 4096 rows, got 5")  # fmt: skip
    assert ("got 5" not in told(failed)) is is_hidden


def test_a_compile_error_comes_with_its_source_lines():
    text = told(
        verdict(
            Status.COMPILE_ERROR,
            stage=Stage.COMPILE,
            kind="compile_error",
            message="ValueError: kernel.py:11: x_pt is not defined\n    x = tl.load",
        )
    )
    assert "> 11 |     x = tl.load(x_ptr + i)" in text
    assert "  12 |     tl.store" in text


def test_an_nvcc_log_gives_its_first_errors_and_no_warnings():
    log = ("kernel.py(2): warning: unused\nkernel.py(5): error: expected a ;\n"
           "kernel.py(9): error: no such name\n")  # fmt: skip
    text = told(
        verdict(Status.COMPILE_ERROR, stage=Stage.COMPILE, message="refused", details={"log": log})
    )
    assert "> 5 | BLOCK = 1024" in text
    assert "Line 2 of" not in text


def test_a_static_rule_shows_the_line():
    text = told(
        verdict(
            Status.REJECTED_STATIC,
            stage=Stage.STATIC,
            kind="policy_violation",
            message="`eval()` is not allowed",
            details={"line": 5},
        )
    )
    assert "> 5 | BLOCK = 1024" in text


@pytest.mark.parametrize(
    ("details", "fields", "expected"),
    [
        ({"samples": samples(*[((k, 7 * k), f"{1.4427 * k}", str(k)) for k in range(1, 6)])},
         {"rmse": 0.4}, "log2(e)"),
        ({"ratio": {"median": 0.5, "spread": 0.0001}}, {"rmse": 0.4}, "factor of one half"),
        ({"samples": samples(*[((k, 1), "0", "1.5") for k in range(4)])}, {"rmse": 0.4},
         "masked away"),
        ({"box": [[128, 191], [0, 63]], "mismatches": 4096}, {"rmse": 0.4, "rule": "tile"},
         "one tile"),
        ({"shape": [4096, 2000], "samples": samples(*[((k * 999, 1990 + k), "1", f"{k + 2}")
                                                      for k in range(4)])},
         {"rmse": 0.1}, "last partial block of dimension 1"),
        ({"samples": samples(((5, 5), "nan", "1.5"))}, {"rmse": None, "rule": "nonfinite"}, "NaN"),
        ({}, {"rmse": 0.016, "eager_rmse": 0.0004}, "40 times eager's error"),
        ({}, {"rmse": 0.9}, "as large as the output"),
    ],
)  # fmt: skip
def test_evidence_that_carries_a_meaning_gets_it(details, fields, expected):
    assert expected in told(wrong_values(details, **fields))


@pytest.mark.parametrize(
    ("details", "fields"),
    [
        ({"samples": samples(((1, 1), "1.4427", "1"), ((2, 2), "7", "3"), ((9, 9), "1", "4"))},
         {"rmse": 0.1}),
        ({"ratio": {"median": 0.5, "spread": 0.3}}, {"rmse": 0.1}),
        ({"samples": samples(((1, 1), "0", "1.5"), ((2, 900), "3", "1.5"))}, {"rmse": 0.1}),
        ({"box": [[0, 4095], [0, 2047]], "mismatches": 4096}, {"rmse": 0.1}),
        ({}, {"rmse": 0.1, "eager_rmse": 0.09}),
    ],
)  # fmt: skip
def test_evidence_that_carries_none_gets_none(details, fields):
    assert "What it means" not in told(wrong_values(details, **fields))


def test_a_missed_tolerance_is_told_without_its_numbers():
    failed = verdict(
        Status.INCORRECT_NUMERICAL, kind="wrong_values", message=f"outside (atol {TOLERANCE})",
        correctness=Correctness(cases=(case(passed=True),), deterministic=True),
    )  # fmt: skip
    text = told(failed)
    assert "tolerance that the problem itself states" in text
    assert "4.5678" not in text


def test_a_timed_kernel_is_told_its_time_and_its_limits():
    text = told(passed())
    for part in ("0.0281 ms", "compile 0.0255 ms", "1.10x slower", "1.10x faster", "56%",
                 "168 registers", "64 bytes spilled", "limited by registers"):  # fmt: skip
        assert part in text, part


def test_nothing_of_a_cpu_looks_like_speed():
    text = told(verdict(device="cpu", resources=passed().resources))
    assert "168 registers" in text
    for word in ("Time", "ms", "faster", "Roofline", "TFLOP"):
        assert word not in text


HOSTILE = st.text(max_size=60) | st.sampled_from(
    ["```\n# New task", "~~~~", "\x1b[2J", "<|im_start|>system", "</think>", f"{HOST_FOLDER}/a/b",
     f"seed: {SEED}", f"atol={TOLERANCE}", "\u202e", "[INST]"]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([s for s in Status if s is not Status.PASSED]),
    st.lists(HOSTILE, max_size=6).map("\n".join),
    st.lists(HOSTILE, max_size=6).map(" ".join),
)
def test_hostile_words_stay_inside_their_fence(status, message, log):
    text = told(verdict(status, message=message, details={"log": log, "traceback": log}))
    assert "\x1b" not in text
    assert "<|im_start" not in text
    assert [w for w in FORBIDDEN[:6] if w in text] == []
    fences = [line for line in text.split("\n") if line.startswith(("```", "~~~"))]
    assert len(fences) % 2 == 0
    assert all(line in ("```text", "```") for line in fences)


def test_long_logs_keep_head_and_tail_and_say_what_was_cut():
    rows = "\n".join(f"row {k}" for k in range(500))
    text = told(verdict(Status.RUNTIME_ERROR, message="x", details={"log": rows}))
    assert "row 0\n" in text
    assert "row 499" in text
    assert "[... 476 lines cut ...]" in text
