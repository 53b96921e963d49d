"""The oracle and the whole benchmark on a GPU: both languages, both tiers."""

import json
import os
import subprocess
import sys

import pytest
from benchmarks.mutation.oracle_client import OracleClient
from benchmarks.mutation.substrates import substrates_of
from benchmarks.results_file import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]
KERNEL_HANGS = "for (volatile int k = 0; i < n && k == 0;)"
HOST_HANGS = "while True: pass\n        y = "


@pytest.mark.parametrize(
    ("name", "right", "wrong", "hanging"),
    [
        ("cuda_relu", "fmaxf(", "fminf(", ("if (i < n)", KERNEL_HANGS)),
        ("max_reduction", 'other=float("-inf")', "other=0.0", ("y = ", HOST_HANGS)),
    ],
)  # fmt: skip
def test_the_oracle_tells_right_from_wrong(tmp_path, name, right, wrong, hanging):
    substrate = substrates_of(name)[0]
    source = substrate.source()
    assert right in source
    problem = (ROOT / substrate.problem).read_text(encoding="utf-8")
    with OracleClient(tmp_path / "oracle.log", device="cuda") as oracle:
        told = oracle.load(substrate, problem, source)
        assert told["outcome"] == "ran", told
        assert told["worst_ratio"] <= 1
        mutants = [
            source.replace(right, wrong),
            source + "\nnot a language",
            source.replace(*hanging, 1),
            source,
        ]
        outcomes = [a["outcome"] for a in oracle.judge(mutants, left_s=200.0)]
    assert outcomes == ["shown", "raises", "hangs", "not_shown"]


def test_a_run_judges_both_languages_at_both_tiers(tmp_path):
    out = tmp_path / "results.json"
    command = [
        sys.executable, "-m", "benchmarks.mutation", "--device", "cuda", "--workers", "2",
        "--gpus", "1", "--problems", "cuda_relu,hard_tanh", "--limit", "3", "--final-share", "0.5",
        "--progress", str(tmp_path / "rows.jsonl"), "--logs", str(tmp_path), "--out", str(out),
    ]  # fmt: skip
    env = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    record = json.loads(out.read_text(encoding="utf-8"))
    assert set(record["summary"]["by_language"]) == {"cuda", "triton"}
    assert record["summary"]["mutants"] == 9
    assert record["environment"]["gpu"]
