"""The op graph: what the built-in generator lowers to kernels.

The judge traces user code; the coordinator receives this frozen form, free of torch. Nodes stand in
topological order. The vocabulary is small and named after the ATen operations:

pointwise, float or int
    add sub mul div floordiv remainder pow neg abs sign minimum maximum exp exp2 log log1p expm1
    sqrt rsqrt tanh sigmoid erf sin cos floor ceil round relu reciprocal square
    gelu_erf gelu_tanh silu hardsigmoid hardswish softsign mish selu
    softplus (attrs beta, threshold), elu (attrs alpha), leaky_relu (attrs negative_slope)
    hardtanh (attrs min_val, max_val), clamp (args x, low, high; an empty Arg: no bound)
pointwise, boolean
    eq ne lt le gt ge logical_and logical_or logical_not where
conversion
    cast (attrs dtype)
leaves
    input (attrs index: position among forward's arguments), parameter (attrs name),
    buffer (attrs name), constant (attrs value; what JSON has not is text: `inf` `-inf` `nan`)
    index_q index_kv index_b index_h score      (the arguments of a score_mod or mask_mod)
gather
    gather (args: buffer node, then one index node a dimension)
reductions (attrs dims, keepdim)
    sum mean amax amin prod var (attrs correction) logsumexp argmax argmin
row-wise composites
    softmax log_softmax (attrs dim), layer_norm rms_norm (attrs normalized_shape, eps)
products
    matmul (args a, b), linear (args x, weight[, bias]: x @ weight.T + bias)
shape
    reshape transpose permute expand unsqueeze squeeze (attrs as in torch)
other
    opaque (attrs target, arguments): an operation that no template lowers; the graph stays readable

Operands of a pointwise node are of one kind (bool, int or float) and, if float, of one width: where
torch would promote, a `cast` stands before. Widths of integers may differ. Shapes broadcast as in
torch. A scalar argument takes the kind of the other operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """One argument of a node: the name of another node, or a scalar."""

    node: str | None = None
    value: int | float | bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation. `name` is unique in its graph and a valid identifier."""

    name: str
    op: str
    args: tuple[Arg, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    """Empty for the scalars of a score_mod or mask_mod."""
    dtype: str = "float32"
    line: int | None = None
    """1-based line in the problem's source; None when unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes in topological order and the names of those that are returned."""

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    def node(self, name: str) -> Node:
        """Return the node called `name`.

        Raises:
            KeyError: there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSpec:
    """A tensor captured by a score_mod or mask_mod, a buffer of the Model by this name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec:
    """One attention problem: sizes and the traced modifications.

    q is `(B, H, S, D)`, k and v are `(B, Hkv, Skv, D)`, all contiguous, in `dtype`; the output is
    `(B, H, S, D)`. Scores are scaled by `scale` before `score_mod`, as FlexAttention does.

    With a `page_size` k and v are a paged cache, `(pages, Hkv, page_size, D)`, and the Model has a
    buffer `page_table`, `(B, Skv / page_size)`, int32, that is not among `buffers`: the page of the
    keys `i * page_size` and on of batch b is `page_table[b, i]`. `index_kv` counts keys of a batch.
    """

    B: int
    H: int
    Hkv: int
    S: int
    Skv: int
    D: int
    dtype: str
    scale: float
    normalize: str = "softmax"
    """`softmax`, or `sigmoid` (no row normalisation)."""
    score_mod: Graph | None = None
    """Float-valued; leaves score, index_b, index_h, index_q, index_kv, constant, buffer."""
    mask_mod: Graph | None = None
    """Bool-valued; the same leaves without score."""
    buffers: tuple[BufferSpec, ...] = ()
    page_size: int | None = None
    """Keys of a page, a power of two from 16 to 256; None: k and v are contiguous."""
    pages: int | None = None
    """Pages of the cache, used or not; None where it is not paged."""
