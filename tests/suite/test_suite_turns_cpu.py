"""Two runs that share the CPU, with their real judges."""

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Tier
from hotloop.engine import StopFlag
from hotloop.errors import ConfigError
from hotloop.problems import list_kernelbench
from hotloop.suite.folder import Suite
from hotloop.suite.planning import plan_suite
from hotloop.suite.runner import SuiteOptions, run_suite, standings
from hotloop.verify import LocalVerifier
from hotloop.verify.outside import OutsideVerifier
from hotloop.verify.ssh import SshVerifier, parse_judge
from hotloop.verify.turn_verifier import TurnVerifier
from hotloop.verify.turns import Turns
from hotloop.wiring import in_turns

PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * {n}


def get_inputs():
    return [torch.rand(1{n}, 33) - 0.5]


def get_init_inputs():
    return []
"""


@pytest.fixture
def plan(tmp_path):
    folder = tmp_path / "data" / "level1"
    folder.mkdir(parents=True)
    for n in (2, 3):
        (folder / f"{n}_Relu.py").write_text(PROBLEM.format(n=n))
    options = {"device": "cpu", "budget": 60.0, "max_candidates": 1}
    return plan_suite(list_kernelbench(tmp_path / "data"), tmp_path / "s", options)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [{}, {None: 1000}])
def test_both_find_a_kernel_also_where_one_judge_fits_only(plan, memory):
    """With 1000 bytes of memory neither leaves room for the other: each turn drops a judge."""
    told = []
    chosen = SuiteOptions(seats=(None,), runs_per_seat=2, memory_bytes=memory)
    with Suite(plan.folder, plan.record) as suite:
        fatal = run_suite(
            suite, plan, chosen, tell=lambda job, line: told.append(line), stop=StopFlag()
        )
        rows = standings(suite)
        use = suite.record.use["cpu"]
    assert fatal is None
    assert all(row.passed for row in rows)
    assert told.count("done") == 2
    assert not any("Died" in line for line in told)
    assert use.verdicts == 2
    assert 0 < use.worked_s <= use.wall_s


def test_only_a_judge_on_this_machine_takes_turns():
    turns, stop = Turns(), StopFlag()
    assert isinstance(in_turns(LocalVerifier("cpu"), turns, stop), TurnVerifier)
    elsewhere = SshVerifier(parse_judge("ssh://nowhere"), "cpu")
    assert in_turns(elsewhere, turns, stop) is elsewhere
    elsewhere.close()
    by_files = OutsideVerifier(None, None)
    assert in_turns(by_files, turns, stop) is by_files


def test_nothing_is_verified_before_a_load():
    judge = in_turns(LocalVerifier("cpu"), Turns(), StopFlag())
    kernel = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text="x = 1"),))
    with pytest.raises(ConfigError, match="expected `load`"):
        judge.verify(kernel, Tier.FAST)
