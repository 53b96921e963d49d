"""What the built-in generator gets to see of a problem: a graph, traced from the user's functions.

A score_mod or mask_mod must be covered whole by the vocabulary of `core.graph`; a model may keep
opaque parts. A trace of a modification is compared with the function itself on many positions
before anybody builds on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from hotloop.core.graph import AttentionSpec, BufferSpec, Graph
from hotloop.errors import HotloopError, ProblemError, UnsupportedOp
from hotloop.worker.attribution import failing_line, user_code
from hotloop.worker.fx_nodes import dtype_name, kind
from hotloop.worker.load import LoadedProblem
from hotloop.worker.lowering import Lowering, PartialGather
from hotloop.worker.trace_check import compare_with_function
from hotloop.worker.trace_model_ops import MODEL_RULES
from hotloop.worker.trace_ops import POINTWISE_RULES
from hotloop.worker.tracing import IndexByTensor, trace

_INDEX_LEAVES = ("index_b", "index_h", "index_q", "index_kv")
_LEAVES = {"score_mod": ("score", *_INDEX_LEAVES), "mask_mod": _INDEX_LEAVES}


def trace_attention(loaded: LoadedProblem) -> AttentionSpec:
    """Return sizes and traced modifications of an attention problem.

    Raises:
        ProblemError: a modification raises, or returns something else than one score or one bool.
        UnsupportedOp: a modification uses an operation, or Python control flow, that cannot be
            traced; the message has the operation and the file's line.
    """
    sizes = loaded.sizes
    if sizes is None:
        raise ProblemError(f"{loaded.problem.name}: expected an attention problem")
    graphs = {
        role: _trace_modification(loaded, role, function)
        for role, function in (("score_mod", loaded.score_mod), ("mask_mod", loaded.mask_mod))
        if function is not None
    }
    return AttentionSpec(
        B=sizes.B,
        H=sizes.H,
        Hkv=sizes.Hkv,
        S=sizes.S,
        Skv=sizes.Skv,
        D=sizes.D,
        dtype=dtype_name(sizes.dtype),
        scale=sizes.scale,
        normalize=sizes.normalize,
        score_mod=graphs.get("score_mod"),
        mask_mod=graphs.get("mask_mod"),
        buffers=_buffer_specs(graphs.values()),
        page_size=sizes.page_size,
        pages=None if sizes.page_size is None else sizes.kv_shape[0],
    )


def trace_model(
    loaded: LoadedProblem, model: torch.nn.Module, inputs: Sequence[Any]
) -> Graph | None:
    """Return the op graph of `model(*inputs)`; None when it cannot be traced.

    Nothing is computed and no memory is taken on the device. What the vocabulary does not cover
    becomes an `opaque` node.
    """
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tensors = {i: x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}

    def forward(state: dict[str, torch.Tensor], tensors: dict[int, torch.Tensor]) -> Any:
        arguments = tuple(tensors.get(i, x) for i, x in enumerate(inputs))
        return torch.func.functional_call(model, state, arguments)

    try:
        module = trace(loaded.problem, forward, (state, tensors), fake=True)
    except Exception:  # noqa: BLE001  models may do what no tracer follows; they work untraced
        return None
    lowering = Lowering(module, MODEL_RULES, name=loaded.problem.name, opaque=True)
    parameters = {name for name, _ in model.named_parameters()}
    leaves = [
        *(("parameter" if n in parameters else "buffer", {"name": n}) for n in state),
        *(("input", {"index": i}) for i in tensors),
    ]
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for node, (op, attrs) in zip(placeholders, leaves, strict=True):
        lowering.bind(node, lowering.leaf(op, node, attrs=attrs))
    for node in module.graph.nodes:
        if node.op == "get_attr":
            lowering.bind(node, lowering.tensor_constant(getattr(module, str(node.target)), node))
    try:
        return lowering.run()
    except Exception:  # noqa: BLE001  changes of tensors with views; sizes that depend on values
        return None


def _trace_modification(loaded: LoadedProblem, role: str, function: Callable[..., Any]) -> Graph:
    problem = loaded.problem
    args = tuple(
        torch.zeros((), dtype=torch.float32 if n == "score" else torch.int32, device=loaded.device)
        for n in _LEAVES[role]
    )
    with user_code(problem, role), torch.no_grad(), IndexByTensor():
        _check_result(problem.name, role, function(*args))

    def traced(*inner: torch.Tensor) -> Any:
        result = function(*inner)
        is_score = role == "score_mod" and isinstance(result, torch.Tensor)
        return result.to(torch.float32) if is_score else result

    try:
        module = trace(problem, traced, args, fake=False)
    except HotloopError:
        raise
    except Exception as exc:  # noqa: BLE001  it ran just now, so the tracer is what stopped
        line = failing_line(problem, exc)
        where = role if line is None else f"{role} line {line}"
        raise UnsupportedOp(
            f"{problem.name}: {where}: Python control flow on a tensor (`if`, `and`, `or`, `not`, "
            "int(), .item()) cannot be traced; use torch.where, `&`, `|`, `~`"
        ) from exc
    lowering = Lowering(module, POINTWISE_RULES, name=f"{problem.name}: {role}", opaque=False)
    _bind_leaves(lowering, module, role, _named_tensors(loaded))
    graph = lowering.run()
    compare_with_function(loaded, role, function, graph)
    return graph


def _check_result(name: str, role: str, result: Any) -> None:
    wanted = "one float" if role == "score_mod" else "one bool"
    got = type(result).__name__
    if isinstance(result, torch.Tensor):
        got = f"{dtype_name(result.dtype)} of shape {tuple(result.shape)}"
        right_kind = kind(result.dtype) == wanted.removeprefix("one ")
        if right_kind and result.shape == ():
            return
    elif isinstance(result, float if role == "score_mod" else bool):
        return
    raise ProblemError(f"{name}: {role} must return {wanted} for one position, got {got}")


def _named_tensors(loaded: LoadedProblem) -> dict[str, torch.Tensor]:
    tensors = {n: t for n, t in loaded.namespace.items() if isinstance(t, torch.Tensor)}
    return tensors | loaded.fixed_buffers


def _bind_leaves(
    lowering: Lowering,
    module: torch.fx.GraphModule,
    role: str,
    named: dict[str, torch.Tensor],
) -> None:
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for node, op in zip(placeholders, _LEAVES[role], strict=True):
        lowering.bind(node, lowering.leaf(op, node))
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        tensor = getattr(module, str(node.target))
        name = next((n for n, t in named.items() if t is tensor), None)
        if name is not None:
            buffer = lowering.leaf("buffer", node, attrs={"name": name})
            lowering.bind(node, PartialGather(buffer, ()))
        elif tensor.ndim == 0:
            lowering.bind(node, lowering.tensor_constant(tensor, node))
        else:
            user = next((u for u in node.users), node)
            raise lowering.unsupported(
                user,
                f"it reads a tensor of shape {tuple(tensor.shape)} that is no global of the "
                "file; return it from get_buffers()",
            )


def _buffer_specs(graphs: Iterable[Graph]) -> tuple[BufferSpec, ...]:
    nodes = {n.attrs["name"]: n for g in graphs for n in g.nodes if n.op == "buffer"}
    return tuple(BufferSpec(name=k, shape=n.shape, dtype=n.dtype) for k, n in nodes.items())
