"""All 200 problems of KernelBench levels 1 and 2, if HOTLOOP_KERNELBENCH says where they are."""

import os

import pytest
import torch

from hotloop.core.problem import ProblemKind
from hotloop.problems import list_kernelbench, load_problem_spec
from hotloop.worker.load import load_problem
from hotloop.worker.trace import trace_model

DATA = os.environ.get("HOTLOOP_KERNELBENCH")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="HOTLOOP_KERNELBENCH names no folder with kernelbench.jsonl"
)


def on_meta(name: str):
    """Load a problem and build its model and inputs without memory."""
    problem = load_problem_spec(name, device="cpu", data=DATA)
    loaded = load_problem(problem, device="cpu")
    assert loaded.model_class is not None
    assert loaded.get_inputs is not None
    with torch.device("meta"):
        return loaded, loaded.model_class(*loaded.init_args), loaded.get_inputs()


def test_every_problem_loads_builds_and_traces():
    entries = list_kernelbench(DATA)
    assert len(entries) == 200
    covered = 0
    for entry in entries:
        assert entry.problem().kind is ProblemKind.KERNELBENCH
        loaded, model, inputs = on_meta(entry.name)
        graph = trace_model(loaded, model, inputs)
        assert graph is not None, entry.name
        covered += all(node.op != "opaque" for node in graph.nodes)
    assert covered >= 65, "problems that templates may cover whole"


def test_known_problems_have_the_expected_graphs():
    expected = {
        "kernelbench/1/19": ["relu"],
        "kernelbench/1/23": ["softmax"],
        "kernelbench/1/40": ["layer_norm"],
        "kernelbench/1/1": ["matmul"],
        "kernelbench/2/76": ["linear", "add", "relu"],
    }
    for name, wanted in expected.items():
        graph = trace_model(*on_meta(name))
        assert graph is not None
        leaves = ("input", "parameter", "buffer")
        assert [n.op for n in graph.nodes if n.op not in leaves] == wanted, name


def test_settings_shrink_a_problem():
    problem = load_problem_spec(
        "kernelbench/1/19", device="cpu", data=DATA, settings={"batch_size": 2, "dim": 8}
    )
    loaded = load_problem(problem, device="cpu")
    assert loaded.get_inputs is not None
    assert loaded.get_inputs()[0].shape == (2, 8)
