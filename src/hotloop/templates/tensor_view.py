"""Tensor leaves as strided views, and how a tile addresses them.

Shape operations on inputs and parameters move no data: they only change how an index becomes an
offset. `View` follows them; `offset_text` writes the offset of a group of dimensions that share
one flat index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.graph import Node

LEAVES = ("input", "parameter", "buffer", "constant")
SHAPE_OPS = ("reshape", "transpose", "permute", "expand", "unsqueeze", "squeeze")


@dataclass(frozen=True, slots=True)
class View:
    """A leaf tensor, seen with another shape and strides (in elements)."""

    leaf: str
    """Name of the leaf's node."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def broadcast(self, shape: Sequence[int]) -> View | None:
        """Return the view expanded to `shape`; None where it cannot be."""
        missing = len(shape) - len(self.shape)
        if missing < 0:
            return None
        strides = [0] * missing
        for own, stride, wanted in zip(self.shape, self.strides, shape[missing:], strict=True):
            if own not in (1, wanted):
                return None
            strides.append(0 if own != wanted or own == 1 else stride)
        return View(self.leaf, tuple(shape), tuple(strides))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor of `shape`."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def leaf_views(nodes: Sequence[Node]) -> dict[str, View]:
    """Return the view of every node that is a leaf or a leaf moved by shape operations."""
    views: dict[str, View] = {}
    for node in nodes:
        if node.op in LEAVES:
            views[node.name] = View(node.name, node.shape, contiguous_strides(node.shape))
        elif node.op in SHAPE_OPS and node.args[0].node in views:
            moved = _moved(node, views[str(node.args[0].node)])
            if moved is not None:
                views[node.name] = moved
    return views


def _moved(node: Node, view: View) -> View | None:
    if node.op == "expand":
        return view.broadcast(node.shape)
    if node.op in ("transpose", "permute"):
        order = _permutation(node, len(view.shape))
        shape, strides = ([values[i] for i in order] for values in (view.shape, view.strides))
        return View(view.leaf, tuple(shape), tuple(strides))
    return _reshaped(view, node.shape)


def _permutation(node: Node, rank: int) -> list[int]:
    if node.op == "permute":
        return [int(d) for d in node.attrs["dims"]]
    order = list(range(rank))
    a, b = int(node.attrs["dim0"]), int(node.attrs["dim1"])
    order[a], order[b] = order[b], order[a]
    return order


def _reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    """Reshape; dimensions of extent 1 come and go, others must lie together in memory."""
    kept = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    if [n for n, _ in kept] == [n for n in shape if n != 1]:
        strides = iter(s for _, s in kept)
        return View(view.leaf, shape, tuple(0 if n == 1 else next(strides) for n in shape))
    if math.prod(view.shape) != math.prod(shape):
        return None
    own = tuple(s if n != 1 else 0 for n, s in zip(view.shape, view.strides, strict=True))
    plain = contiguous_strides(view.shape)
    is_plain = all(n == 1 or s == p for n, s, p in zip(view.shape, own, plain, strict=True))
    return View(view.leaf, shape, contiguous_strides(shape)) if is_plain else None


def offset_text(index: str, extents: Sequence[int], strides: Sequence[int]) -> str:
    """Return the offset for flat `index` over dimensions of the given extents and strides.

    Adjacent dimensions that lie in memory as one are taken as one. An empty text is offset 0.
    """
    merged: list[list[int]] = []
    for extent, stride in zip(extents, strides, strict=True):
        if extent == 1:
            continue
        if merged and merged[-1][1] == stride * extent:
            merged[-1] = [merged[-1][0] * extent, stride]
        else:
            merged.append([extent, stride])
    parts, below = [], 1
    for position, (extent, stride) in reversed(list(enumerate(merged))):
        text = index if below == 1 else f"{index} // {below}"
        if position > 0:
            text = f"({text}) % {extent}" if below > 1 else f"{text} % {extent}"
        if stride:
            is_plain = text == index
            scaled = text if is_plain else f"({text})"
            parts.append(text if stride == 1 else f"{scaled} * {stride}")
        below *= extent
    return " + ".join(reversed(parts))


def parameter_name(node: Node, used: Mapping[str, str]) -> str:
    """Return an identifier for a leaf: its own name, or x0, x1, ... for inputs."""
    if node.op == "input":
        return f"x{node.attrs['index']}"
    name = str(node.attrs["name"]).replace(".", "_")
    return name if name not in used.values() else f"{name}_{len(used)}"
