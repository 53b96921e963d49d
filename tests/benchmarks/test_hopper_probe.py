"""The probe of the Hopper family: what it would run, and that no kernel holds it up."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import pytest
from benchmarks.hopper_probe import Job, Runner, line, make_jobs, run

CHILD = """
import json, sys, time
from pathlib import Path
request = json.loads(sys.argv[1])
if request["does"] == "hangs":
    Path(request["marker"]).touch()
    time.sleep(60)
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
    names = [job.name.split()[0] for job in jobs]
    assert names[:2] == ["hopper", "portable"]
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
    assert "illegal memory access" in line(jobs[1])
    assert "500 TFLOP/s" in capsys.readouterr().out
    hung = jobs[0].process
    assert hung is not None
    with pytest.raises(ProcessLookupError):
        os.kill(hung.pid, 0)


def test_what_there_is_no_time_for_is_said_to_be_not_run(tmp_path):
    jobs = [Job("c", "works", {"does": "works"})]
    run(jobs, Runner(tmp_path, seconds=0))
    assert jobs[0].result["status"] == "not run"
    assert "not run" in line(jobs[0])
    assert json.dumps(jobs[0].result)
