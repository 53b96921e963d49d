import pytest
import torch
from problem_files import forward

from hotloop.core.graph import Graph
from hotloop.core.record import from_json, to_json
from hotloop.worker.graph_eval import evaluate
from hotloop.worker.trace import trace_model

X = "torch.randn(6, 8)"
Y = "torch.randn(8, 5)"


def build(loaded):
    torch.manual_seed(0)
    model = loaded.model_class(*loaded.init_args)
    inputs = loaded.get_inputs()
    return model, inputs, trace_model(loaded, model, inputs)


def leaves(model, inputs):
    return {
        **{f"input:{i}": x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)},
        **{f"parameter:{n}": p.detach() for n, p in model.named_parameters()},
        **{f"buffer:{n}": b for n, b in model.named_buffers()},
    }


@pytest.mark.parametrize(
    ("body", "init", "wanted"),
    [
        ("torch.relu(self.fc(x))", "self.fc = torch.nn.Linear(8, 3)", {"linear", "relu"}),
        ("self.fc(x)", "self.fc = torch.nn.Linear(8, 3, bias=False)", {"linear"}),
        ("torch.softmax(x, dim=-1)", "pass", {"softmax"}),
        ("torch.nn.functional.log_softmax(x, dim=0)", "pass", {"log_softmax"}),
        ("self.norm(x)", "self.norm = torch.nn.LayerNorm(8)", {"layer_norm"}),
        ("self.norm(x)", "self.norm = torch.nn.RMSNorm(8)", {"rms_norm"}),
        ("x @ y", "pass", {"matmul"}),
        ("torch.mm(x, y).t()", "pass", {"matmul", "transpose"}),
        ("torch.addmm(torch.ones(5), x, y, beta=2, alpha=3)", "pass", None),
        ("x.sum(dim=1, keepdim=True) + x.mean(dim=1, keepdim=True)", "pass", {"sum", "mean"}),
        ("torch.max(x, dim=1)[0] + torch.min(x, dim=1).values", "pass", {"amax", "amin"}),
        ("torch.max(x, dim=1)[1]", "pass", {"argmax"}),
        ("torch.argmin(x, dim=0)", "pass", {"argmin"}),
        ("x.max() + x.sum()", "pass", {"amax", "sum"}),
        ("x.var(dim=1) + x.std(dim=1, unbiased=False)", "pass", {"var", "sqrt"}),
        ("x / torch.norm(x, p=2, dim=1, keepdim=True)", "pass", {"square", "sum", "sqrt", "div"}),
        ("x / torch.norm(x)", "pass", {"square", "sum", "sqrt", "div"}),
        ("torch.logsumexp(x, dim=1)", "pass", {"logsumexp"}),
        ("(x * self.w + self.c).reshape(-1, 4).permute(1, 0)", None, {"reshape", "permute"}),
        ("x.unsqueeze(1).squeeze(1).expand(2, 6, 8)", "pass", {"unsqueeze", "squeeze", "expand"}),
        ("x.T.contiguous().view(-1)", "pass", {"permute", "reshape"}),
        ("torch.nn.functional.gelu(x, approximate='tanh')", "pass", {"gelu_tanh"}),
        ("torch.nn.functional.leaky_relu(x, 0.2)", "pass", {"leaky_relu"}),
        ("torch.nn.functional.elu(x, 0.3)", "pass", {"elu"}),
        ("torch.nn.functional.softplus(x, 2, 5)", "pass", {"softplus"}),
        ("torch.nn.functional.relu6(3 * x)", "pass", {"clamp", "mul"}),
        ("torch.nn.functional.mish(x) + torch.nn.functional.hardswish(x)", "pass", None),
        ("torch.nn.functional.dropout(x, 0.5, training=False)", "pass", set()),
        ("x.relu_().add_(1)", "pass", {"relu", "add"}),
    ],
)
def test_models_are_traced_and_compute_the_same(body, init, wanted):
    init = (
        init or "self.w = torch.nn.Parameter(torch.rand(8)); self.register_buffer('c', self.w * 2)"
    )
    loaded = forward(
        body, X, *([Y] if "y" in body.split("(")[0] or ", y" in body else []), init=init
    )
    model, inputs, graph = build(loaded)
    assert graph is not None
    assert from_json(Graph, to_json(graph)) == graph
    copies = leaves(model, [x.clone() for x in inputs])
    used = {n.op for n in graph.nodes} - {"input", "parameter", "buffer"}
    assert wanted is None or wanted <= used
    with torch.no_grad():
        (got,) = evaluate(graph, copies)
        expected = model(*inputs)
    assert got.shape == expected.shape
    torch.testing.assert_close(got, expected)


def test_nothing_is_allocated_or_computed():
    loaded = forward("torch.relu(self.fc(x))", X, init="self.fc = torch.nn.Linear(8, 3)")
    with torch.device("meta"):
        model = loaded.model_class()
        inputs = [torch.empty(1 << 20, 8)]
    graph = trace_model(loaded, model, inputs)
    assert graph is not None
    relu = graph.node(graph.outputs[0])
    assert (relu.op, relu.shape, relu.line) == ("relu", (1 << 20, 3), 7)


def test_what_the_vocabulary_lacks_is_opaque():
    init = "self.conv = torch.nn.Conv1d(8, 4, 1); self.pool = torch.nn.MaxPool1d(2)"
    loaded = forward("torch.relu(self.conv(x))", "torch.randn(2, 8, 16)", init=init)
    _, _, graph = build(loaded)
    assert graph is not None
    conv = next(n for n in graph.nodes if n.op == "opaque")
    assert conv.attrs["target"] == "aten.conv1d.default"
    assert conv.shape == (2, 4, 16)
    assert len(conv.args) == 3
    assert graph.node(graph.outputs[0]).op == "relu"


def test_arguments_that_are_no_tensors_are_constants():
    loaded = forward("x * y", X, "3")
    _, _, graph = build(loaded)
    assert graph is not None
    assert [n.attrs for n in graph.nodes if n.op == "input"] == [{"index": 0}]


def test_several_outputs_are_flattened():
    _, _, graph = build(forward("(x + 1, {'a': x * 2})", X))
    assert graph is not None
    assert [graph.node(n).op for n in graph.outputs] == ["add", "mul"]


@pytest.mark.parametrize(
    "body",
    [
        "x if x.sum() > 0 else -x",
        "x[:, 0].add_(1).sum() + x",
        "torch.from_numpy(x.numpy())",
        "torch.bincount(x.abs().long().flatten())",  # a size that depends on values
        "x[x > 0]",
    ],
)
def test_untraceable_models_have_no_graph(body):
    _, _, graph = build(forward(body, X))
    assert graph is None
