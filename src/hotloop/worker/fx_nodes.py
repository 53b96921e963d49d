"""What a traced fx node says: its operation, arguments, shape and dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node as FxNode

_VIEWS = frozenset({
    "view", "reshape", "flatten", "unflatten", "expand", "expand_as", "broadcast_to", "transpose",
    "swapaxes", "t", "numpy_T", "mT", "permute", "unsqueeze", "squeeze", "select", "slice",
    "narrow", "diagonal", "unbind", "split", "chunk", "unfold", "detach", "alias", "contiguous",
    "as_strided", "view_as", "to",
})  # fmt: skip
# Operations whose result may share memory with their argument.


class NotCovered(Exception):
    """An operation, with these arguments, has no form in the graph's vocabulary."""


def may_share_memory(node: FxNode) -> bool:
    """Whether a traced tensor is a view, or has one."""
    around = (node, *node.users)
    targets = [n.target for n in around if isinstance(n.target, torch._ops.OpOverload)]
    return any(aten_name(t) in _VIEWS for t in targets)


def operands(node: FxNode) -> dict[str, Any]:
    """Return the arguments of an ATen call by name, defaults included."""
    schema = node.target._schema
    bound = {a.name: a.default_value for a in schema.arguments}
    for argument, value in zip(schema.arguments, node.args, strict=False):
        bound[argument.name] = value
    return bound | dict(node.kwargs)


def aten_name(target: torch._ops.OpOverload) -> str:
    """Return `add` for `aten.add.Tensor`."""
    return str(target._schema.name).rpartition("::")[2]


def meta(node: FxNode) -> torch.Tensor:
    """Return the (fake) result of a traced operation; the first of several.

    Raises:
        NotCovered: it has none.
    """
    value = node.meta.get("val")
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if not isinstance(value, torch.Tensor):
        raise NotCovered
    return value


def dtype_name(dtype: torch.dtype) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def kind(dtype: torch.dtype) -> str:
    """Return `bool`, `int` or `float`."""
    if dtype is torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "int"
