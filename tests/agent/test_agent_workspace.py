"""An agent names files in its workspace, and none outside."""

import pytest

from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError

PROBLEM = """\
import torch

N = 8


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "problem.py").write_text(PROBLEM)
    (tmp_path / "secret.py").write_text(PROBLEM)
    return Workspace(tmp_path / "in", device="cpu")


def test_what_lies_inside_is_found(workspace, tmp_path):
    assert workspace.inside("problem.py") == tmp_path / "in" / "problem.py"
    assert workspace.inside("deep/../problem.py") == tmp_path / "in" / "problem.py"
    assert workspace.inside(str(tmp_path / "in" / "deep")) == tmp_path / "in" / "deep"
    assert workspace.told(workspace.inside("deep/x.py")) == "deep/x.py"
    assert workspace.problem("problem.py", "N=16").settings == {"N": 16}


def test_a_precision_is_chosen_as_on_the_command_line(workspace):
    own = workspace.problem("problem.py")
    assert own == workspace.problem("problem.py", precision="")
    strict = workspace.problem("problem.py", precision="strict")
    assert (own.policy.precision, strict.policy.precision) == ("as_shipped", "strict")
    assert own.id != strict.id
    told = "--precision: expected one of as_shipped, strict, tf32, got 'half'"
    with pytest.raises(ConfigError, match=told):
        workspace.problem("problem.py", precision="half")


@pytest.mark.parametrize("path", ["../secret.py", "/etc/passwd", "deep/../../in2", "", "a\0b"])
def test_what_lies_outside_is_refused(workspace, path):
    with pytest.raises(ConfigError):
        workspace.inside(path)
    with pytest.raises(ConfigError):
        workspace.problem(path)


def test_a_link_leads_nowhere_else(workspace, tmp_path):
    (tmp_path / "in" / "link.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "in" / "also.py").symlink_to(tmp_path / "in" / "problem.py")
    with pytest.raises(ConfigError, match="outside of the workspace"):
        workspace.problem("link.py")
    assert workspace.problem("also.py").source == PROBLEM


def test_a_root_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="--root"):
        Workspace(tmp_path / "nowhere", device="cpu")
