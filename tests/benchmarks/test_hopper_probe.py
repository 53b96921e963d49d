"""The probe of the Hopper family: what it would run, and that no kernel holds it up."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import pytest
import torch
from benchmarks.hopper_probe import SIDE_BY_SIDE, Job, Runner, line, make_jobs, run

from benchmarks import hopper_probe_child as probe_child

CHILD = """
import json, sys, time
from pathlib import Path
request = json.loads(sys.argv[1])
if request["does"] == "hangs":
    print("at the door of the kernel", flush=True)
    Path(request["marker"]).touch()
    time.sleep(60)
if request["does"] == "compiles":
    time.sleep(60)
if request["does"] == "waits":
    time.sleep(1)
if request["does"] == "works slowly":
    Path(request["marker"]).touch()
    time.sleep(1)
if request["does"] == "fails":
    raise RuntimeError("an illegal memory access")
print(json.dumps({"status": "right", "ms": 2.0, "tflops": 500.0, "error": 1e-3}))
"""


def _jobs(folder: Path, cases: str) -> list[Job]:
    options = argparse.Namespace(cases=cases, points=2, S=512, B=1, H=2)
    return list(make_jobs(options, folder))


@pytest.mark.parametrize("case", ["full-128", "causal-64", "softcap-64"])
def test_each_case_has_both_families_and_a_rival(tmp_path, case):
    jobs = _jobs(tmp_path, case)
    assert [job.name for job in jobs[:2]] == ["hopper tiny S=256", "hopper tiny S=512"]
    jobs = jobs[2:]
    names = [job.name.split()[0] for job in jobs]
    assert names[:2] == ["hopper", "portable"]
    assert [j.name.split("persistent=")[1].split()[0] for j in jobs if "persistent" in j.name] == [
        "True",
        "False",
    ]
    assert "flex" in names
    assert ("cudnn" in names) == (not case.startswith("softcap"))
    sources = [Path(job.request["source"]).read_text() for job in jobs if "source" in job.request]
    assert len(set(sources)) == 4
    assert sum("warp_specialize" in text for text in sources) == 2
    assert all("S = " in text and "constexpr(512)" in text for text in sources)


def test_a_hung_process_is_killed_and_a_failed_one_is_reported(tmp_path, capsys):
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    jobs = [Job("c", does, {"does": does}) for does in ("hangs", "fails", "works")]
    start = time.monotonic()
    run(jobs, Runner(tmp_path, seconds=30, child=child, gpu_limit_s=0.3))
    assert time.monotonic() - start < 20
    assert [job.result["status"] for job in jobs] == ["hung", "failed", "right"]
    assert "at the door" in line(jobs[0])
    assert "illegal memory access" in line(jobs[1])
    assert "500 TFLOP/s" in capsys.readouterr().out
    hung = jobs[0].process
    assert hung is not None
    with pytest.raises(ProcessLookupError):
        os.kill(hung.pid, 0)


def test_after_a_hang_the_hopper_kernels_of_that_head_size_are_left_out(tmp_path, capsys):
    child = tmp_path / "child.py"
    child.write_text(CHILD)

    def job(name, does, D):
        return Job("c", name, {"does": does, "D": D})

    under_way = job("hopper c", "compiles", 128)
    others = [job("hopper b", "waits", 64)]
    others += [job("portable", "waits", 128) for _ in range(SIDE_BY_SIDE - 3)]
    waiting = job("hopper d", "works", 128)
    jobs = [job("hopper x", "hangs", 128), under_way, *others, waiting]
    run(jobs, Runner(tmp_path, seconds=30, child=child, gpu_limit_s=0.4))
    assert jobs[0].result["status"] == "hung"
    assert {job.result["status"] for job in others} == {"right"}
    for left_out in (under_way, waiting):
        assert left_out.result["status"] == "skipped"
        assert "hopper x hung with D 128" in line(left_out)
    assert under_way.process.poll() is not None
    assert waiting.process is None
    assert all(len(row) <= 160 for row in capsys.readouterr().out.splitlines())


def test_a_rival_that_hangs_takes_no_kernel_of_ours_away(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    jobs = [
        Job("c", "flex", {"does": "hangs", "D": 64}),
        Job("c", "hopper", {"does": "works slowly", "D": 64}),
    ]
    run(jobs, Runner(tmp_path, seconds=30, child=child, gpu_limit_s=1.5))
    assert [job.result["status"] for job in jobs] == ["hung", "right"]


def test_time_to_compile_ends_where_the_gpu_begins(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    jobs = [Job("c", does, {"does": does}) for does in ("compiles", "works slowly")]
    run(jobs, Runner(tmp_path, seconds=30, child=child, limit_s=0.7))
    assert [job.result["status"] for job in jobs] == ["slow to compile", "right"]


def _heads(S):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn((2, 2, S, 16), generator=generator) for _ in range(3)]


def _exact(variant, q, k, v):
    rows = probe_child.checked_rows(q.shape[2], "cpu")
    heads = zip(*(x.flatten(0, 1) for x in (q, k, v)), strict=True)
    return torch.stack([probe_child.exact(variant, *x, rows) for x in heads]).view(q.shape).float()


@pytest.mark.parametrize("variant", ["full", "causal", "softcap"])
def test_right_outputs_pass_the_check(variant):
    q, k, v = _heads(64)
    out = _exact(variant, q, k, v)
    assert probe_child.worst_error(variant, q, k, v, out) < 1e-5


def test_one_wrong_row_of_small_values_is_found():
    q, k, v = _heads(64)
    out = _exact("causal", q, k, v)
    out[0, 1, 63] *= 1.05  # the mean of many keys: small beside row 0
    assert probe_child.worst_error("causal", q, k, v, out) > probe_child.ERROR_LIMIT


def test_first_last_and_middle_are_checked():
    rows = probe_child.checked_rows(4096, "cpu").tolist()
    assert rows == [*range(256), *range(3072, 4096)]
    assert probe_child.checked_rows(512, "cpu").tolist() == list(range(512))
    assert probe_child.checked_heads(4, 16) == [(0, 0), (1, 5), (2, 10), (3, 15)]
    assert probe_child.checked_heads(1, 1) == [(0, 0)]


def test_what_there_is_no_time_for_is_said_to_be_not_run(tmp_path):
    jobs = [Job("c", "works", {"does": "works"})]
    run(jobs, Runner(tmp_path, seconds=0))
    assert jobs[0].result["status"] == "not run"
    assert "not run" in line(jobs[0])
    assert json.dumps(jobs[0].result)
