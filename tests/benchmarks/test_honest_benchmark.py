"""The benchmark of false refusals: its catalogue, its plan, its counts."""

import ast
import json

import pytest
from benchmarks.gpu_pool import seats
from benchmarks.honest import Benchmark, _options, _parse, main
from benchmarks.honest_catalogue import FAMILIES, HonestKernel, catalogue, chosen
from benchmarks.honest_plan import fresh, keys_of, plan, runs_of
from benchmarks.honest_summary import is_refused, summarise, table, told, upper_bound
from benchmarks.results_file import ROOT

from hotloop.core.verdict import Tier
from hotloop.problems import load_problem_spec
from hotloop.verify.static_rules import check_candidate

KERNELS = catalogue()
ASKED = (
    "atomics", "split_k", "autotuned", "one_stream", "several_kernels", "in_place",
    "custom_layout", "tf32", "bf16", "first_call", "cuda", "attention", "library",
)  # fmt: skip
MIN_KERNELS, MIN_RUNS, MIN_OF_A_FAMILY = 80, 300, 3


def kernel(name, problem="p.py", **fields):
    return HonestKernel(
        name=name, problem=problem, families=("plain",), origin="own", text=f"# {name}", **fields
    )


def row(key, status="PASSED", **fields):
    name, tier, _ = key.split("/")
    base = {"key": key, "kernel": name, "problem": "p.py", "families": ["plain"], "tier": tier}
    base |= {"by_design": False, "message": "", "error": None, "wall_s": 1.0, "load_s": 0.5}
    return base | {"status": status} | fields


def test_the_catalogue_is_as_large_as_the_claim():
    judged = [k for k in KERNELS if not k.by_design]
    assert len({k.candidate().id if k.text else k.name for k in judged}) >= MIN_KERNELS
    assert sum(len(keys_of(job)) for job in plan(judged, "cuda", 2)) >= MIN_RUNS
    for family in ASKED:
        of = [k.name for k in judged if family in k.families]
        assert len(of) >= MIN_OF_A_FAMILY, f"{family}: {of}"
    assert any("cuda_module" in k.families for k in judged)


@pytest.mark.parametrize("problem", sorted({k.problem for k in KERNELS}))
def test_problems_can_be_read_at_both_sizes(problem):
    first = next(k for k in KERNELS if k.problem == problem)
    for device, sizes in (("cuda", first.settings), ("cpu", first.small)):
        loaded = load_problem_spec(ROOT / problem, device=device, settings=dict(sizes))
        assert loaded.source == (ROOT / problem).read_text(encoding="utf-8")


def test_python_kernels_can_be_read():
    for one in KERNELS:
        candidate = one.candidate() if one.text else None
        if candidate and candidate.entry.endswith(".py"):
            assert ast.parse(candidate.text())
        elif candidate:
            assert candidate.text().startswith("/* {"), one.name


def test_the_contract_refuses_several_streams_by_their_text():
    streams = [k for k in KERNELS if k.by_design]
    assert streams
    for one in streams:
        policy = load_problem_spec(
            ROOT / one.problem, device="cuda", settings=dict(one.settings)
        ).policy
        found = check_candidate(one.candidate(), policy)
        assert found is not None
        assert "current stream" in found.message


def test_kernels_are_chosen_by_name_family_problem_or_origin():
    assert [k.name for k in chosen(KERNELS, "matmul/tiles")] == ["matmul/tiles"]
    assert {k.origin for k in chosen(KERNELS, "corpus,mutants")} == {"corpus", "mutants"}
    assert all("tf32" in k.families for k in chosen(KERNELS, "tf32"))
    assert chosen(KERNELS, "") == KERNELS
    with pytest.raises(ValueError, match="got 'tensor'"):
        chosen(KERNELS, "atomics,tensor")


def test_rounds_come_one_after_the_other_and_share_loads():
    kernels = [kernel("a"), kernel("b", "q.py"), kernel("c"), kernel("d", "q.py", needs_gpu=True)]
    jobs = plan([*kernels, kernel("e")], "cuda", 2)
    assert [(job.problem, job.round, len(job.kernels)) for job in jobs] == [
        ("p.py", 0, 3), ("q.py", 0, 2), ("p.py", 1, 3), ("q.py", 1, 2),
    ]  # fmt: skip
    keys = [key for job in jobs for key in keys_of(job)]
    assert len(set(keys)) == len(keys) == 5 * 2 * 2
    assert [r.tier for r in runs_of(jobs[0])][:2] == [Tier.FAST, Tier.FINAL]


def test_without_a_gpu_there_is_one_tier_and_no_kernel_that_needs_one():
    jobs = plan([kernel("a"), kernel("b", needs_gpu=True)], "cpu", 1)
    assert [key for job in jobs for key in keys_of(job)] == ["a/fast/0"]


def test_sizes_of_their_own_are_another_load():
    two = [kernel("a", settings={"N": 1}), kernel("b", settings={"N": 2})]
    assert len(plan(two, "cuda", 1)) == 2


def test_what_the_contract_refuses_is_judged_once():
    jobs = plan([kernel("a", by_design=True)], "cuda", 2)
    assert [key for job in jobs for key in keys_of(job)] == ["a/static"]


def test_a_row_of_another_text_is_judged_again():
    (job,) = plan([kernel("a"), kernel("b")], "cpu", 1)
    runs = list(runs_of(job))
    rows = {run.key: row(run.key, candidate_id=run.kernel.candidate().id) for run in runs}
    assert fresh(rows, runs) == rows
    rows["a/fast/0"]["candidate_id"] = "another"
    assert list(fresh(rows, runs)) == ["b/fast/0"]


@pytest.mark.parametrize(
    ("refused", "runs", "bound"),
    [
        (0, 300, 1 - 0.05 ** (1 / 300)),
        (0, 1, 0.95),
        (1, 1, 1.0),
        (2, 20, 0.282619),
        (1, 10, 0.39416),
    ],
)
def test_upper_bound(refused, runs, bound):
    # 2 of 20 and 1 of 10: quantiles of the beta distribution, Beta(k + 1, n - k) at 0.95.
    assert upper_bound(refused, runs) == pytest.approx(bound, abs=1e-5)


def test_no_bound_without_runs():
    assert upper_bound(0, 0) is None
    with pytest.raises(ValueError, match="0 to 3"):
        upper_bound(4, 3)


ROWS = [
    row("a/fast/0"),
    row("a/final/0", "INCONCLUSIVE", message="ill-conditioned"),
    row("b/fast/0", "REWARD_HACK", message="torch did it"),
    row("b/final/0", None, error="WorkerDied: gone"),
    row("s/static/0", "REJECTED_STATIC", message="current stream", by_design=True),
]


def test_every_status_but_passed_is_counted_and_told():
    found = summarise(ROWS)
    assert (found["runs"], found["kernels"], found["passed"]) == (3, 2, 1)
    assert (found["refused"], found["inconclusive"], found["errors"]) == (1, 1, 1)
    assert found["refused_kernels"] == ["b"]
    assert found["families"]["plain"] == {"kernels": 2, "runs": 3, "refused": 1}
    assert set(found["families"]) == set(FAMILIES)
    assert found["refused_by_the_contract"] == {"s": "current stream"}
    lines = table(ROWS).splitlines()
    assert "b/fast/0: REWARD_HACK: torch did it" in lines
    assert "a/final/0: INCONCLUSIVE: ill-conditioned" in lines
    assert "b/final/0: no result: WorkerDied: gone" in lines
    assert not any(line.startswith("a/fast/0") for line in lines)


def test_a_machine_that_failed_refused_nothing():
    assert not is_refused(ROWS[3])
    assert is_refused(ROWS[2])
    assert told(ROWS[0]) == "PASSED"


def test_rows_of_this_commit_are_kept(tmp_path):
    (job,) = plan([kernel("a")], "cpu", 1)
    path = tmp_path / "honest.json"
    first = Benchmark("cpu", path, tmp_path / "logs")
    key = keys_of(job)[0]
    first._rows[key] = row(key, candidate_id=job.kernels[0].candidate().id, origin="own")
    first._write()
    again = Benchmark("cpu", path, tmp_path / "logs")
    rows = again.run([job], [""], seconds=None)
    assert [r["key"] for r in rows] == [key]
    assert json.loads(path.read_text())["summary"]["runs"] == 1


def test_one_tier_may_be_asked_for():
    (job,) = plan([kernel("a"), kernel("b")], "cuda", 1, (Tier.FAST,))
    assert keys_of(job) == ["a/fast/0", "b/fast/0"]


def test_the_command_of_the_results_names_what_was_asked_for(tmp_path):
    asked = ["--device", "cpu", "--only", "index_add", "--rounds", "1", "--tier", "fast"]
    options = _options(_parse([*asked, "--judges", "3"]))
    assert options == "--only index_add --judges 3 --tier fast --rounds 1"
    assert _options(_parse([])) == ""
    path = tmp_path / "honest.json"
    Benchmark("cpu", path, tmp_path, options=options)._write()
    assert json.loads(path.read_text())["command"] == f"make bench-honest ARGS='{options}'"


def test_judges_that_share_a_gpu_are_told():
    assert seats(["0", "1"], None) == ["0", "1"]
    assert seats(["0", "1"], 3) == ["0", "1", "0"]
    assert summarise(ROWS)["judges_per_gpu"] == 1
    shared = [r | {"judges_per_gpu": 4} for r in ROWS]
    assert summarise(shared)["judges_per_gpu"] == 4


def test_an_unknown_name_is_one_line(capsys):
    assert main(["--device", "cpu", "--only", "nothing-like-it"]) == 2
    assert capsys.readouterr().err.startswith("honest: expected kernels")


def test_the_catalogue_is_listed(capsys):
    assert main(["--device", "cpu", "--list", "--only", "cuda"]) == 0
    assert "column_sums/atomics-in-cuda" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_one_kernel_is_judged(tmp_path):
    out = tmp_path / "honest.json"
    arguments = ["--device", "cpu", "--only", "index_add/atomics", "--rounds", "1"]
    assert main([*arguments, "--out", str(out), "--logs", str(tmp_path)]) == 0
    record = json.loads(out.read_text())
    assert record["summary"]["passed"] == 1
    assert record["environment"]["torch"]
