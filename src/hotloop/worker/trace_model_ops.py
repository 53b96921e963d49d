"""ATen's reductions, products and shape operations in the graph's vocabulary, for models."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node as FxNode

from hotloop.core.graph import Arg
from hotloop.worker.fx_nodes import NotCovered, meta
from hotloop.worker.lowering import Lowering, Operands, Rule, Value
from hotloop.worker.trace_ops import POINTWISE_RULES


def _rank(item: Any) -> int:
    return meta(item).ndim


def _dims(given: Operands) -> list[int]:
    """Return the reduced dimensions, counted from 0; all of them where none is named."""
    rank = _rank(given["self"])
    dims = given.get("dim")
    listed = [dims] if isinstance(dims, int) else list(dims or range(rank))
    return sorted(d % rank for d in listed)


def _reduce(lw: Lowering, node: FxNode, op: str, given: Operands, **attrs: Any) -> Arg:
    """Write a reduction of `self`, converted to the result's dtype before."""
    source = lw.arg(given["self"], node)
    if op not in ("argmax", "argmin"):
        source = lw.cast(source, lw.dtype(node), node)
    attrs = {"dims": _dims(given), "keepdim": bool(given.get("keepdim", False)), **attrs}
    return lw.emit(op, [source], node, attrs=attrs)


def _reduction(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        return _reduce(lw, node, op, given)

    return rule


def _variance(*, root: bool) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        correction = given.get("correction", 1 if given.get("unbiased", True) else 0)
        value = _reduce(lw, node, "var", given, correction=1 if correction is None else correction)
        return lw.emit("sqrt", [value], node) if root else value

    return rule


def _arg_extremum(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        if given["dim"] is None and _rank(given["self"]) != 1:
            raise NotCovered  # an index into the flattened tensor
        return _reduce(lw, node, op, given)

    return rule


def _extremum(name: str) -> Rule:
    """`max` is pointwise with `other`, a reduction alone, and values and indices with `dim`."""

    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        if "other" in given:
            return POINTWISE_RULES[name](lw, node, given)
        value = _reduce(lw, node, f"a{name}", given)
        if "dim" not in given:
            return value
        like = node.meta["val"][1]
        attrs = {"dims": _dims(given), "keepdim": given["keepdim"]}
        source = lw.arg(given["self"], node)
        return value, lw.emit(f"arg{name}", [source], node, attrs=attrs, like=like)

    return rule


def _vector_norm(lw: Lowering, node: FxNode, given: Operands) -> Value:
    if given["ord"] not in (1, 2) or given.get("dtype") is not None:
        raise NotCovered
    source = lw.arg(given["self"], node)
    op = "abs" if given["ord"] == 1 else "square"
    powers = lw.emit(op, [source], node, like=meta(given["self"]))
    attrs = {"dims": _dims(given), "keepdim": bool(given["keepdim"])}
    total = lw.emit("sum", [powers], node, attrs=attrs)
    return total if given["ord"] == 1 else lw.emit("sqrt", [total], node)


def _softmax(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        source = lw.cast(lw.arg(given["self"], node), lw.dtype(node), node)
        return lw.emit(op, [source], node, attrs={"dim": given["dim"] % _rank(given["self"])})

    return rule


def _norm(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        weight, bias = given.get("weight"), given.get("bias")
        if weight is None and bias is not None:
            raise NotCovered
        eps = given.get("eps")
        attrs = {
            "normalized_shape": [int(s) for s in given["normalized_shape"]],
            "eps": torch.finfo(lw.dtype(node)).eps if eps is None else eps,
        }
        items = [given["input"], *(i for i in (weight, bias) if i is not None)]
        return lw.emit(op, [lw.arg(i, node) for i in items], node, attrs=attrs)

    return rule


def _linear(lw: Lowering, node: FxNode, given: Operands) -> Value:
    items = [given["input"], given["weight"], *([given["bias"]] if given["bias"] else [])]
    return lw.emit("linear", [lw.arg(i, node) for i in items], node)


def _matmul(second: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        return lw.emit("matmul", [lw.arg(given[n], node) for n in ("self", second)], node)

    return rule


def _addmm(first: str, second: str) -> Rule:
    """`beta * self + alpha * (first @ second)`."""

    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        product = lw.emit("matmul", [lw.arg(given[n], node) for n in (first, second)], node)
        if given["alpha"] != 1:
            product = lw.emit("mul", [product, Arg(value=given["alpha"])], node)
        addend = lw.arg(given["self"], node)
        if given["beta"] != 1:
            scaled = [addend, Arg(value=given["beta"])]
            addend = lw.emit("mul", scaled, node, like=meta(given["self"]))
        return lw.emit("add", [product, addend], node)

    return rule


def _reshape(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _shaped(lw, node, given, "reshape", shape=list(meta(node).shape))


def _expand(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _shaped(lw, node, given, "expand", shape=list(meta(node).shape))


def _transpose(lw: Lowering, node: FxNode, given: Operands) -> Value:
    rank = _rank(given["self"])
    if rank < 2:
        return lw.value(given["self"])
    dim0, dim1 = given.get("dim0", -2) % rank, given.get("dim1", -1) % rank
    return _shaped(lw, node, given, "transpose", dim0=dim0, dim1=dim1)


def _reverse(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _shaped(lw, node, given, "permute", dims=list(range(_rank(given["self"])))[::-1])


def _permute(lw: Lowering, node: FxNode, given: Operands) -> Value:
    dims = [d % _rank(given["self"]) for d in given["dims"]]
    return _shaped(lw, node, given, "permute", dims=dims)


def _unsqueeze(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _shaped(lw, node, given, "unsqueeze", dim=given["dim"] % (_rank(given["self"]) + 1))


def _squeeze(lw: Lowering, node: FxNode, given: Operands) -> Value:
    shape = meta(given["self"]).shape
    dims = [d for d in _dims(given) if shape[d] == 1]
    return _shaped(lw, node, given, "squeeze", dims=dims)


def _shaped(lw: Lowering, node: FxNode, given: Operands, op: str, **attrs: Any) -> Arg:
    attrs = {k: [int(i) for i in v] if isinstance(v, list) else v for k, v in attrs.items()}
    return lw.emit(op, [lw.arg(given["self"], node)], node, attrs=attrs)


def _dropout(lw: Lowering, node: FxNode, given: Operands) -> Value:
    if given["train"] and not math.isclose(given["p"], 0):
        raise NotCovered
    return lw.value(given["input"])


MODEL_RULES: dict[str, Rule] = {
    **{k: v for k, v in POINTWISE_RULES.items() if k not in ("index", "select")},
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "amax": _reduction("amax"),
    "amin": _reduction("amin"),
    "prod": _reduction("prod"),
    "logsumexp": _reduction("logsumexp"),
    "var": _variance(root=False),
    "std": _variance(root=True),
    "argmax": _arg_extremum("argmax"),
    "argmin": _arg_extremum("argmin"),
    "max": _extremum("max"),
    "min": _extremum("min"),
    "linalg_vector_norm": _vector_norm,
    "softmax": _softmax("softmax"),
    "_softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "layer_norm": _norm("layer_norm"),
    "rms_norm": _norm("rms_norm"),
    "linear": _linear,
    "matmul": _matmul("other"),
    "mm": _matmul("mat2"),
    "bmm": _matmul("mat2"),
    "mv": _matmul("vec"),
    "addmm": _addmm("mat1", "mat2"),
    "baddbmm": _addmm("batch1", "batch2"),
    "view": _reshape,
    "reshape": _reshape,
    "_unsafe_view": _reshape,
    "flatten": _reshape,
    "unflatten": _reshape,
    "expand": _expand,
    "expand_as": _expand,
    "broadcast_to": _expand,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "t": _transpose,
    "numpy_T": _reverse,
    "mT": _transpose,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "dropout": _dropout,
}
"""By ATen name without overload."""
