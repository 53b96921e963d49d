"""Lowering for tiles of tensors: leaves are loaded at offsets made of the tile's indices.

The dimensions of the covered shape are dealt out to index groups: each group has one flat index in
the generated code and the level at which that index varies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.graph import Graph, Node
from hotloop.templates.lower import Lowering
from hotloop.templates.operators import kind_of
from hotloop.templates.tensor_view import SHAPE_OPS, View, offset_text
from hotloop.templates.value import Level, Names, Value


@dataclass(frozen=True, slots=True)
class IndexGroup:
    """Dimensions of the covered shape that share one flat index."""

    index: str
    dims: Sequence[int]
    level: Level


@dataclass(frozen=True, slots=True)
class TileMemory:
    """How a tile reaches its tensors."""

    views: Mapping[str, View]
    """Of leaves and moved leaves, broadcast to the covered shape."""
    pointers: Mapping[str, str]
    """Leaf node -> name of its pointer argument."""
    groups: Sequence[IndexGroup]
    guards: Mapping[Level, str]
    """Load masks; empty where nothing is past the end."""


class TileLowering(Lowering):
    """Lowers pointwise work on tensors."""

    def __init__(self, graph: Graph, names: Names, memory: TileMemory) -> None:
        super().__init__({n.name: n for n in graph.nodes}, names)
        self._memory = memory

    def leaf(self, node: Node) -> Value | None:
        """Return loads, and shape operations as what they are applied to."""
        if node.op == "constant":
            return None
        if node.name in self._memory.views:
            return self._load(self._memory.views[node.name])
        if node.op in SHAPE_OPS:
            return self.value(str(node.args[0].node))
        return None

    def _load(self, view: View) -> Value:
        level, parts = Level.PROGRAM, []
        for group in self._memory.groups:
            extents = [view.shape[d] for d in group.dims]
            text = offset_text(group.index, extents, [view.strides[d] for d in group.dims])
            if text:
                level |= group.level
                parts.append(text)
        pointer = self._memory.pointers[view.leaf]
        guard = self._memory.guards[level]
        address = " + ".join([pointer, *parts])
        text = f"tl.load({address}{f', mask={guard}, other=0' if guard else ''})"
        dtype = self.nodes[view.leaf].dtype
        kind = kind_of(dtype)
        if kind == "float" and dtype != "float32":
            text += ".to(tl.float32)"
        return self.bind(Value(text, kind, level), pointer.removesuffix("_ptr"))
