import pytest
import torch

from hotloop.core.graph import Arg, Graph, Node
from hotloop.errors import UnsupportedOp
from hotloop.worker.graph_eval import evaluate, leaf_key


def graph(*nodes: Node) -> Graph:
    return Graph(nodes=nodes, outputs=(nodes[-1].name,))


def test_leaves_are_looked_up_by_what_they_are():
    assert leaf_key(Node(name="a", op="score")) == "score"
    assert leaf_key(Node(name="a", op="input", attrs={"index": 1})) == "input:1"
    assert leaf_key(Node(name="a", op="parameter", attrs={"name": "fc.weight"})) == (
        "parameter:fc.weight"
    )


def test_scalar_graphs_broadcast():
    plus = graph(
        Node(name="q", op="index_q", dtype="int32"),
        Node(name="k", op="index_kv", dtype="int32"),
        Node(name="d", op="sub", args=(Arg(node="q"), Arg(node="k")), dtype="int32"),
    )
    q, k = torch.arange(3)[:, None], torch.arange(4)[None, :]
    assert torch.equal(evaluate(plus, {"index_q": q, "index_kv": k})[0], q - k)


def test_gathers_take_numbers_and_tensors():
    table = torch.arange(12).reshape(3, 4)
    read = graph(
        Node(name="t", op="buffer", attrs={"name": "t"}, shape=(3, 4), dtype="int64"),
        Node(name="k", op="index_kv", dtype="int32"),
        Node(name="g", op="gather", args=(Arg(node="t"), Arg(value=1), Arg(node="k"))),
    )
    index = torch.tensor([0, 3], dtype=torch.int32)
    assert evaluate(read, {"buffer:t": table, "index_kv": index})[0].tolist() == [4, 7]


def test_infinite_constants_are_text():
    inf = graph(Node(name="c", op="constant", attrs={"value": "-inf"}))
    assert evaluate(inf, {})[0].item() == -float("inf")


def test_what_cannot_be_evaluated_is_refused():
    conv = graph(
        Node(name="x", op="input", attrs={"index": 0}),
        Node(name="c", op="opaque", args=(Arg(node="x"),), attrs={"target": "aten.conv2d"}),
    )
    with pytest.raises(UnsupportedOp, match="'opaque' cannot be evaluated"):
        evaluate(conv, {"input:0": torch.zeros(1)})
    with pytest.raises(KeyError):
        evaluate(conv, {})
