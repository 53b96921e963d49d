"""The GPU of a suite's worker reaches the judge of the run."""

from dataclasses import replace

import pytest

from hotloop.problems import KernelBenchEntry
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.planning import plan_suite
from hotloop.wiring import open_verifier

CODE = "class Model:\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize("gpu", [None, "3"])
def test_a_judge_here_sees_the_gpu_of_its_plan_alone(tmp_path, gpu):
    entry = KernelBenchEntry(level=1, problem_id=1, title="1_X", code=CODE)
    (job,) = plan_suite([entry], tmp_path / "s", {"device": "cpu"}).jobs
    with SqliteStore(job.plan.folder) as store:
        verifier = open_verifier(replace(job.plan, gpu=gpu), store)
        try:
            assert verifier.gpus.wanted == gpu
        finally:
            verifier.close()
