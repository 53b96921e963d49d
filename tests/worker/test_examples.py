from pathlib import Path

import pytest
import torch

from hotloop.core.problem import Problem
from hotloop.problems import describe_sizes, load_problem_spec
from hotloop.worker.graph_eval import evaluate
from hotloop.worker.load import LoadedProblem, draw_buffers, install_buffers, load_problem
from hotloop.worker.trace import trace_attention, trace_model

EXAMPLES = Path(__file__).parents[2] / "examples"
DECODE = sorted((EXAMPLES / "attention").glob("decode*.py"))
ATTENTION = [p for p in sorted((EXAMPLES / "attention").glob("*.py")) if p not in DECODE]
MODELS = sorted(EXAMPLES.glob("*.py"))
S = 40


def load(problem: Problem, **settings) -> LoadedProblem:
    return load_problem(problem, device="cpu", settings=settings)


def mask(name: str, **settings) -> torch.Tensor:
    """Return the mask of an example as (S, S), query by key."""
    problem = load_problem_spec(EXAMPLES / "attention" / f"{name}.py", device="cuda")
    loaded = load(problem, S=S, **settings)
    index = torch.arange(S)
    assert loaded.mask_mod is not None
    return loaded.mask_mod(0, 0, index[:, None], index[None, :])


def scores(name: str, score: torch.Tensor, head: int) -> torch.Tensor:
    """Return the modified scores of an example as (S, S)."""
    problem = load_problem_spec(EXAMPLES / "attention" / f"{name}.py", device="cuda")
    loaded = load(problem, S=S)
    index = torch.arange(S)
    assert loaded.score_mod is not None
    return loaded.score_mod(score, 0, torch.tensor(head), index[:, None], index[None, :])


@pytest.mark.parametrize("path", ATTENTION, ids=lambda p: p.stem)
def test_attention_examples_load_and_trace(path):
    problem = load_problem_spec(path, device="cuda")
    assert problem.name == f"attention/{path.stem}"
    described = describe_sizes(problem)
    assert described.startswith("B 4, H 16, ")
    assert "S 4096, D 128, bfloat16" in described
    spec = trace_attention(load(problem, S=256))
    assert (spec.B, spec.H, spec.S, spec.D, spec.dtype) == (4, 16, 256, 128, "bfloat16")
    assert spec.Hkv == (4 if path.stem == "grouped_query" else 16)
    assert f"hotloop optimize examples/attention/{path.name}" in path.read_text()


@pytest.mark.parametrize("path", DECODE, ids=lambda p: p.stem)
def test_decode_examples_load_trace_and_are_small_without_a_gpu(path):
    assert describe_sizes(load_problem_spec(path, device="cuda")).startswith(
        "B 32, H 32, Hkv 8, S 1,"
    )
    problem = load_problem_spec(path, device="cpu")
    small = problem.workloads[0].settings
    assert small == {"B": 2, "H": 4, "Hkv": 1, "S": 1, "Skv": 512}
    spec = trace_attention(load(problem, **small))
    assert (spec.B, spec.Skv, spec.D) == (2, 512, 128)
    assert spec.page_size == (64 if path.stem == "decode_paged" else None)
    assert [(b.name, b.shape) for b in spec.buffers] == [("lengths", (2,))]
    assert f"hotloop optimize examples/attention/{path.name}" in path.read_text()


def test_there_are_examples_of_both_kinds():
    assert [p.stem for p in DECODE] == ["decode", "decode_paged"]
    assert len(ATTENTION) == 17
    assert [p.stem for p in MODELS] == ["layer_norm", "linear_relu", "row_softmax"]


def test_masks_are_what_their_names_say():
    query, key = torch.arange(S)[:, None], torch.arange(S)[None, :]
    causal = query >= key
    assert torch.equal(mask("causal"), causal)
    assert torch.equal(mask("grouped_query"), causal)
    assert torch.equal(mask("sliding_window", WINDOW=5), causal & (query - key < 5))
    assert torch.equal(mask("prefix_lm", PREFIX=7), causal | (key < 7))


def test_documents_are_cut_where_the_seed_says():
    problem = load_problem_spec(EXAMPLES / "attention" / "document.py", device="cuda")
    loaded = load(problem)
    assert loaded.buffer_seed == 3
    doc = draw_buffers(loaded, 3)["doc"]
    generator = torch.Generator().manual_seed(3)
    cuts = sorted((torch.randperm(4096 - 1, generator=generator)[:11] + 1).tolist())
    assert doc.shape == (4096,)
    assert torch.nonzero(doc.diff()).flatten().add(1).tolist() == cuts
    assert doc.unique().numel() == 12
    install_buffers(loaded, {"doc": doc})
    assert loaded.mask_mod is not None
    first = torch.tensor(cuts[0])
    assert not loaded.mask_mod(0, 0, first, first - 1)
    assert loaded.mask_mod(0, 0, torch.tensor(0), first - 1), "not causal"


def test_scores_are_what_their_names_say():
    score = torch.randn(S, S) * 30
    query, key = torch.arange(S)[:, None], torch.arange(S)[None, :]
    assert torch.equal(scores("relative", score, 0), score + (query - key))
    assert torch.allclose(scores("softcap", score, 0), 20 * torch.tanh(score / 20))
    for head in (0, 15):
        expected = score + 2.0 ** (-8 * (head + 1) / 16) * (key - query)
        assert torch.allclose(scores("alibi", score, head), expected)


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_model_examples_run_and_trace(path):
    names = {"M": 6, "K": 8, "N": 10, "ROWS": 6, "COLUMNS": 8}
    text = path.read_text()
    small = {n: v for n, v in names.items() if f"{n}, " in text or f", {n} =" in text}
    loaded = load(load_problem_spec(path, device="cpu", settings=small))
    assert loaded.model_class is not None
    assert loaded.get_inputs is not None
    model, inputs = loaded.model_class(*loaded.init_args), loaded.get_inputs()
    graph = trace_model(loaded, model, inputs)
    assert graph is not None
    assert "opaque" not in {n.op for n in graph.nodes}
    leaves = {f"input:{i}": x for i, x in enumerate(inputs)}
    leaves |= {f"parameter:{n}": p.detach() for n, p in model.named_parameters()}
    with torch.no_grad():
        torch.testing.assert_close(evaluate(graph, leaves)[0], model(*inputs))
    assert f"hotloop optimize examples/{path.name}" in text
