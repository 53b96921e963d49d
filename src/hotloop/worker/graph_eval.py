"""Evaluate a `core.graph.Graph` on torch tensors.

The judge uses it to compare a trace with the function it came from; it is no reference, and nothing
is judged by it. Opaque nodes cannot be evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  the name everybody uses

from hotloop.core.graph import Arg, Graph, Node
from hotloop.errors import UnsupportedOp

Evaluate = Callable[..., Any]

# Operations that torch and torch.nn.functional call by the same name as the graph.
_TORCH = (
    "add", "sub", "mul", "remainder", "pow", "neg", "abs", "sign", "exp", "exp2", "log", "log1p",
    "expm1", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "floor", "ceil", "round",
    "relu", "reciprocal", "square", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
    "logical_not", "where", "selu", "matmul", "softmax", "log_softmax",
)  # fmt: skip
_FUNCTIONAL = (
    "silu", "hardsigmoid", "hardswish", "softsign", "mish", "softplus", "elu", "leaky_relu",
    "hardtanh", "linear",
)  # fmt: skip

_FUNCTIONS: dict[str, Evaluate] = {
    **{name: getattr(torch, name) for name in _TORCH},
    **{name: getattr(F, name) for name in _FUNCTIONAL},
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "minimum": lambda a, b: torch.minimum(*_tensors(a, b)),
    "maximum": lambda a, b: torch.maximum(*_tensors(a, b)),
    "gelu_erf": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "clamp": torch.clamp,
    "cast": lambda x, dtype: x.to(getattr(torch, dtype)),
    "layer_norm": lambda x, w=None, b=None, *, normalized_shape, eps: F.layer_norm(
        x, normalized_shape, w, b, eps
    ),
    "rms_norm": lambda x, w=None, *, normalized_shape, eps: F.rms_norm(x, normalized_shape, w, eps),
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, dim0, dim1: x.transpose(dim0, dim1),
    "permute": lambda x, dims: x.permute(dims),
    "expand": lambda x, shape: x.expand(shape),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "squeeze": lambda x, dims: x.squeeze(dims),
    "argmax": lambda x, dims, keepdim: torch.argmax(x, dims[0], keepdim=keepdim),
    "argmin": lambda x, dims, keepdim: torch.argmin(x, dims[0], keepdim=keepdim),
    "var": lambda x, dims, keepdim, correction: torch.var(
        x, dims, keepdim=keepdim, correction=correction
    ),
    "gather": lambda table, *indices: table[tuple(i.long() for i in indices)],
}
_REDUCTIONS = {n: getattr(torch, n) for n in ("sum", "mean", "amax", "amin", "logsumexp")}


def evaluate(graph: Graph, leaves: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the outputs of a graph.

    Args:
        graph: Without opaque nodes.
        leaves: Tensors by `leaf_key`: `score`, `index_q`, `input:0`, `parameter:fc.weight`,
            `buffer:slopes`. Those of a score_mod or mask_mod may have any shapes that broadcast.

    Raises:
        UnsupportedOp: a node has no meaning here.
        KeyError: a leaf was not given.
    """
    device = next((t.device for t in leaves.values()), torch.device("cpu"))
    values: dict[str, Any] = {}
    for node in graph.nodes:
        values[node.name] = _evaluate(node, values, leaves, device)
    return tuple(values[name] for name in graph.outputs)


def leaf_key(node: Node) -> str:
    """Return the name under which `evaluate` looks a leaf up."""
    attribute = node.attrs.get("name", node.attrs.get("index"))
    return node.op if attribute is None else f"{node.op}:{attribute}"


def _evaluate(
    node: Node, values: Mapping[str, Any], leaves: Mapping[str, torch.Tensor], device: torch.device
) -> Any:
    if node.op == "constant":
        fill = float(node.attrs["value"]) if node.dtype != "bool" else node.attrs["value"]
        return torch.full(node.shape, fill, dtype=getattr(torch, node.dtype), device=device)
    if not node.args:
        return leaves[leaf_key(node)]
    args = [_value(arg, values) for arg in node.args]
    if node.op in _REDUCTIONS:
        return _REDUCTIONS[node.op](args[0], node.attrs["dims"], keepdim=node.attrs["keepdim"])
    function = _FUNCTIONS.get(node.op)
    if function is None:
        raise UnsupportedOp(f"graph node {node.name!r}: {node.op!r} cannot be evaluated")
    if node.op == "gather":
        args = [a if isinstance(a, torch.Tensor) else torch.tensor(a, device=device) for a in args]
    return function(*args, **node.attrs)


def _value(arg: Arg, values: Mapping[str, Any]) -> Any:
    return values[arg.node] if arg.node is not None else arg.value


def _tensors(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    like = a if isinstance(a, torch.Tensor) else b
    first, second = (
        i if isinstance(i, torch.Tensor) else torch.tensor(i, dtype=like.dtype, device=like.device)
        for i in (a, b)
    )
    return first, second
