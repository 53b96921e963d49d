import math

import pytest
import torch
from problem_files import SIZES, attention, mask_mod, score_mod

from hotloop.core.graph import AttentionSpec, Graph, Node
from hotloop.core.record import dumps, from_json, to_json
from hotloop.errors import ProblemError, UnsupportedOp
from hotloop.worker.graph_eval import evaluate
from hotloop.worker.load import install_buffers
from hotloop.worker.trace import trace_attention
from hotloop.worker.trace_check import compare_with_function

TABLES = (
    "doc = torch.arange(S) // 5\n"
    "bias = torch.randn(H, S, S)\n"
    "slopes = torch.rand(H, dtype=torch.bfloat16)\n"
    "cap = torch.tensor(20.0)\n"
)


def graph_of(loaded) -> Graph:
    spec = trace_attention(loaded)
    graph = spec.score_mod or spec.mask_mod
    assert graph is not None
    return graph


def ops(graph: Graph) -> set[str]:
    return {n.op for n in graph.nodes}


# Each is compared with the function at many positions while it is traced.
@pytest.mark.parametrize(
    "expression",
    [
        "score",
        "score + (q_idx - kv_idx)",
        "1 - score",
        "score * 0.5 - 2 / (1 + (q_idx - kv_idx).abs())",
        "20 * torch.tanh(score / 20)",
        "cap * torch.tanh(score / cap)",
        "score + slopes[h] * (kv_idx - q_idx)",
        "score + torch.exp2(-8.0 * (h + 1) / H) * (kv_idx - q_idx)",
        "score + bias[h, q_idx, kv_idx]",
        "score + bias[h][q_idx][kv_idx] + bias[1, q_idx, 0] + bias[-1][0, kv_idx]",
        "torch.where(q_idx >= kv_idx, score, -float('inf'))",
        "torch.where(q_idx >= kv_idx, score, torch.full_like(score, -math.inf))",
        "score.masked_fill(q_idx < kv_idx, float('-inf'))",
        "torch.where(doc[q_idx] == doc[kv_idx], score, -1e4)",
        "score.clamp(min=-3) + score.clamp(max=2) + torch.clamp(score, -1, 1)",
        "torch.maximum(score, q_idx.float()) + torch.min(score, q_idx.to(torch.float32))",
        "score + (q_idx // 4) % 3 + torch.div(kv_idx, 3, rounding_mode='floor')",
        "score + (q_idx == kv_idx).float() + (q_idx == kv_idx) * 2.0",
        "torch.nn.functional.gelu(score) + torch.sigmoid(score) + torch.relu(score)",
        "torch.nn.functional.hardtanh(score, -2.0, 2.0) + score ** 2 + 2 ** score",
        "torch.log1p(score.abs()) + torch.rsqrt(score.square() + 1) + torch.exp(-score.abs())",
        "score.to(torch.bfloat16).float()",
        "torch.add(score, q_idx, alpha=2) - torch.sub(score, kv_idx, alpha=0.5)",
        "score + torch.tensor(3.0) * torch.zeros_like(score) + torch.ones((), dtype=torch.int32)",
        "(score.double() * 2).half()",
        "helper(score, q_idx, kv_idx) if WIDE else score",
        "0.5",
    ],
)
def test_score_mods_are_traced(expression):
    before = (
        "import math\nWIDE = True\n"
        + TABLES
        + "def helper(score, i, j):\n    d = i - j\n    return score - d * d\n"
    )
    graph = graph_of(score_mod(expression, before))
    (output,) = graph.outputs
    assert graph.node(output).dtype == "float32"
    assert from_json(Graph, to_json(graph)) == graph, "it crosses a process as JSON"
    assert "opaque" not in ops(graph)


@pytest.mark.parametrize(
    "expression",
    [
        "q_idx >= kv_idx",
        "(q_idx >= kv_idx) & (q_idx - kv_idx < 8)",
        "(kv_idx < 8) | ~(q_idx < kv_idx)",
        "torch.logical_and(q_idx >= kv_idx, torch.logical_not(h == 1))",
        "(q_idx > kv_idx) ^ (h == 0)",
        "doc[q_idx] == doc[kv_idx]",
        "doc[q_idx] + 0.5 < doc[kv_idx]",
        "torch.where(h < 2, q_idx >= kv_idx, q_idx <= kv_idx)",
        "(b == 0) * (q_idx >= kv_idx)",
        "(q_idx // 4 == kv_idx // 4) & (b != 7) & (h <= 2)",
        "seen[q_idx]",
        "True",
    ],
)
def test_mask_mods_are_traced(expression):
    before = TABLES + "seen = torch.arange(S) % 3 == 0\n"
    graph = graph_of(mask_mod(expression, before))
    (output,) = graph.outputs
    assert graph.node(output).dtype == "bool"
    assert "score" not in ops(graph)


def test_the_spec_has_sizes_graphs_and_used_buffers():
    loaded = attention(
        TABLES + "def get_buffers(generator):\n"
        "    return {'ids': torch.randint(3, (S,), generator=generator)}\n"
        "def mask_mod(b, h, q_idx, kv_idx):\n    return ids[q_idx] == ids[kv_idx]\n"
        "def score_mod(score, b, h, q_idx, kv_idx):\n    return score * slopes[h]\n"
    )
    spec = trace_attention(loaded)
    assert (spec.B, spec.H, spec.Hkv, spec.S, spec.Skv, spec.D) == (2, 4, 4, 32, 32, 16)
    assert (spec.dtype, spec.scale, spec.normalize) == ("bfloat16", 0.25, "softmax")
    assert [(b.name, b.shape, b.dtype) for b in spec.buffers] == [
        ("slopes", (4,), "bfloat16"),
        ("ids", (32,), "int64"),
    ]
    assert from_json(AttentionSpec, to_json(spec)) == spec


def test_plain_attention_has_no_graphs():
    spec = trace_attention(attention(""))
    assert spec.score_mod is None
    assert spec.mask_mod is None


def test_nodes_carry_lines_and_kinds_are_explicit():
    loaded = attention(
        "def score_mod(score, b, h, q_idx, kv_idx):\n"
        "    far = q_idx - kv_idx\n"
        "    return score + far\n"
    )
    graph = graph_of(loaded)
    by_op = {n.op: n for n in graph.nodes}
    assert (by_op["sub"].line, by_op["sub"].dtype) == (4, "int32")
    assert (by_op["cast"].line, by_op["cast"].attrs) == (5, {"dtype": "float32"})
    assert by_op["add"].line == 5


def test_infinity_is_text_in_a_constant_node():
    graph = graph_of(score_mod("torch.where(q_idx >= kv_idx, score, float('-inf'))"))
    assert [n.attrs for n in graph.nodes if n.op == "constant"] == [{"value": "-inf"}]
    assert "Infinity" not in dumps(graph)


def test_the_trace_reads_buffers_that_are_drawn_later():
    loaded = attention(
        "def get_buffers(generator):\n    return {'w': torch.rand(H, generator=generator)}\n"
        "def score_mod(score, b, h, q_idx, kv_idx):\n    return score * w[h]\n"
    )
    graph = graph_of(loaded)
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    install_buffers(loaded, {"w": weights})
    leaves = {"score": torch.ones(4), "index_h": torch.arange(4), "buffer:w": weights}
    assert torch.equal(evaluate(graph, leaves)[0], weights)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("score + torch.cumsum(doc, 0)[q_idx]", "score_mod line 9: aten.cumsum.default cannot be"),
        ("score + torch.tensor([1.0, 2.0])[h % 2]", "no global of the file; return it from get_bu"),
        ("score + bias[h, q_idx]", "one float for one position, got float32 of shape"),
        ("score + bias[h].sum()", "aten.sum.default cannot be lowered"),
        ("score + (bias[h] * 2)[q_idx, kv_idx]", "'bias' has 3 dimensions and is indexed by 1"),
        ("score + torch.fmod(q_idx, 3)", "score_mod line 9: aten.fmod.Scalar cannot be lowered"),
        ("score + (q_idx & 3)", "aten.__and__.Scalar cannot be lowered"),
        ("score + q_idx.item()", "score_mod line 9: Python control flow on a tensor"),
        (
            "score if q_idx > kv_idx else -score",
            "score_mod line 9: Python control flow on a tensor",
        ),
        ("score + torch.rand(())", "aten.rand.default cannot be lowered"),
    ],
)
def test_what_cannot_be_traced_is_named_with_its_line(body, message):
    with pytest.raises(ProblemError, match=message) as info:
        trace_attention(score_mod(body, TABLES))
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("loaded", "message"),
    [
        (score_mod("undefined + score"), "p: score_mod, line 5: NameError"),
        (
            score_mod("torch.stack([score, score])"),
            "one float for one position, got float32 of sha",
        ),
        (score_mod("q_idx"), "score_mod must return one float for one position, got int32"),
        (score_mod("None"), "must return one float for one position, got NoneType"),
        (mask_mod("q_idx - kv_idx"), "mask_mod must return one bool for one position, got int32"),
        (mask_mod("1"), "mask_mod must return one bool for one position, got int"),
    ],
)
def test_wrong_modifications_are_the_problems_fault(loaded, message):
    with pytest.raises(ProblemError, match=message) as info:
        trace_attention(loaded)
    assert not isinstance(info.value, UnsupportedOp)


def test_a_trace_that_differs_from_its_function_is_refused():
    loaded = mask_mod("q_idx >= kv_idx")
    graph = graph_of(loaded)
    compare_with_function(loaded, "mask_mod", loaded.mask_mod, graph)
    flipped = tuple(
        Node(name=n.name, op="gt", args=n.args, dtype=n.dtype) if n.op == "ge" else n
        for n in graph.nodes
    )
    wrong = Graph(nodes=flipped, outputs=graph.outputs)
    with pytest.raises(UnsupportedOp, match="its trace differs from the function at .*False inst"):
        compare_with_function(loaded, "mask_mod", loaded.mask_mod, wrong)


def test_the_scale_of_the_file_is_kept():
    spec = trace_attention(attention("scale = 0.125\n"))
    assert spec.scale == 0.125
    assert math.isclose(trace_attention(attention("")).scale, 1 / math.sqrt(16))
    assert SIZES.count("\n") == 2
