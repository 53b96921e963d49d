"""The oracle: an input that shows a fault is found, and a correct kernel is left in peace."""

import json
import os
import subprocess
import sys

import pytest
import torch
from benchmarks.mutation.oracle import FACTOR, Oracle, difference
from benchmarks.mutation.oracle_inputs import PROFILES, cases, fill_inputs, fill_state
from benchmarks.mutation.oracle_reference import OracleCase, OracleProblem
from benchmarks.mutation.substrates import substrates_of
from benchmarks.results_file import ROOT

PROBLEM = """
import torch
ROWS, COLUMNS = 4096, 64
width = height = 8


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 3)

    def forward(self, x, t):
        return self.linear(x) * width + t * height


def get_inputs():
    return [torch.rand(ROWS, COLUMNS), torch.randint(0, 2, (ROWS, 1))]


def get_init_inputs():
    return [COLUMNS]
"""


def case(golden, yardstick):
    return OracleCase("nominal: normal/21", [], {}, [golden], [yardstick])


def test_settings_replace_constants_in_every_form_of_assignment():
    problem = OracleProblem(PROBLEM, {"ROWS": 5, "COLUMNS": 7, "width": 2, "height": 3})
    inputs, state = problem.draw("shipped", 1, ())
    assert inputs[0].shape == (5, 7)
    assert state["linear.weight"].shape == (3, 7)
    (got,) = problem.run(inputs, state, torch.float64)
    linear = inputs[0].double() @ state["linear.weight"].double().T + state["linear.bias"].double()
    torch.testing.assert_close(got, linear * 2 + inputs[1] * 3)


def test_a_case_holds_eagers_own_error_and_never_less_than_half_a_unit():
    problem = OracleProblem(PROBLEM, {"ROWS": 5})
    for profile, seed in cases():
        found = problem.case(profile, seed, ())
        assert found is not None, profile
        largest = float(found.golden[0].abs().max())
        assert largest * 2.0**-24 <= found.yardstick[0] < largest * 1e-5


def test_a_reference_that_is_off_itself_gives_no_case():
    source = PROBLEM.replace("* width", "* 0 + (1e8 + x[:, :1]) - 1e8")
    assert OracleProblem(source, {"ROWS": 5}).case("normal", 1, ()) is None


def test_wrong_results_are_told_from_right_ones():
    golden = torch.linspace(-1, 1, 64, dtype=torch.float64)
    right = case(golden, 1e-6)
    assert difference([golden.float()], right) is None
    assert difference([(golden + 0.9 * FACTOR * 1e-6).float()], right) is None
    assert difference([(golden + 1.1 * FACTOR * 1e-6).float()], right)["kind"] == "value"
    one_nan = golden.float()
    one_nan[3] = torch.nan
    assert difference([one_nan], right)["error"] == "not finite"
    assert difference([golden], right)["kind"] == "dtype"
    assert difference([golden.float()[:8]], right)["kind"] == "shape"
    assert difference([golden.float()] * 2, right)["kind"] == "count"


def test_whole_numbers_must_be_equal():
    golden = torch.arange(9)
    assert difference([golden], case(golden, 0.0)) is None
    assert difference([golden + 1], case(golden, 0.0))["kind"] == "value"
    assert difference([golden.int()], case(golden, 0.0))["kind"] == "dtype"


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_fill_free_inputs_alone(profile):
    values = [torch.full((4, 6), 9.0), torch.full((4,), 9.0), torch.arange(4), 3]
    free, fixed, index, plain = fill_inputs(values, profile, 5, fixed=(1,))
    assert not torch.equal(free, values[0])
    assert bool(free.isfinite().all())
    assert fixed is values[1]
    assert index is values[2]
    assert plain == 3


def test_parameters_get_noise_but_for_the_shipped_profile():
    state = {"norm.weight": torch.ones(50), "norm.running_var": torch.ones(50)}
    assert fill_state(state, "shipped", 1) is state
    noisy = fill_state(state, "normal", 1)
    assert not torch.equal(noisy["norm.weight"], state["norm.weight"])
    assert float(noisy["norm.running_var"].min()) >= 0.5


@pytest.mark.slow
def test_the_oracle_finds_faults_in_a_kernel_and_none_in_the_correct_one():
    substrate = substrates_of("max_reduction")[0]
    right = substrate.source()
    sources = {
        "shown": right.replace('other=float("-inf")', "other=0.0"),
        "not_shown": right.replace("(x.shape[0],)](", "(x.shape[0] + 1,)]("),
        "raises": right.replace("x.shape[1], BLOCK", "x.shape[7], BLOCK"),
        "hangs": right.replace("y = torch", "while True: pass\n        y = torch"),
    }
    load = {
        "op": "load", "source": (ROOT / substrate.problem).read_text(), "settings": {},
        "workloads": {}, "fixed": [], "kernel": right,
    }  # fmt: skip
    *quick, last = sources.values()
    asked = [
        load,
        {"op": "try", "kernels": quick, "limit_s": 20.0},
        {"op": "try", "kernels": [last], "limit_s": 1.0},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutation.oracle"],
        input="".join(json.dumps(message) + "\n" for message in asked),
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded, *parts = (json.loads(line) for line in done.stdout.splitlines())
    answers = [answer for part in parts for answer in part["answers"]]
    assert (loaded["outcome"], loaded["oob"]) == ("ran", {"loads": 0, "stores": 0})
    assert loaded["worst_ratio"] <= 1
    assert [a["outcome"] for a in answers] == list(sources)
    assert "negative" in answers[0]["witness"]["case"]
    assert answers[1]["oob"]["stores"] > 0


NEGATING = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return -x
"""


def test_without_the_interpreter_one_process_serves_many_mutants():
    """Device `cpu:0` takes the way of a GPU: eager there is the yardstick, children are shared."""
    problem = NEGATING.replace("ModelNew", "Model") + (
        "\n\ndef get_inputs():\n    return [torch.rand(3, 5)]\n"
        "\n\ndef get_init_inputs():\n    return []\n"
    )
    message = {"source": problem, "settings": {}, "workloads": {}, "fixed": []}
    oracle = Oracle(message, device="cpu:0")
    found = oracle.check_original(NEGATING)
    assert (found["outcome"], found["worst_ratio"]) == ("ran", 0.0)
    assert len(oracle.cases) == len(cases())
    wrong, raising = NEGATING.replace("-x", "x"), NEGATING.replace("-x", "x[9]")
    sources = [wrong, "import os; os._exit(3)", NEGATING, raising, wrong]
    outcomes = [a["outcome"] for a in oracle.try_mutants(sources, 20.0, 60.0)]
    assert outcomes == ["shown", "crashes", "not_shown", "raises", "shown"]
