"""How alike two problems are, by the operators of their graphs.

What helps a model is verified code of the same kind, not much text (GEAK's ablation of retrieval).
The leading operator has to be the same one: a matrix product says little about a pooling, though
both may end with a ReLU.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from hotloop.core.graph import Node
from hotloop.core.problem import ProblemInfo

DEPTHWISE = "depthwise"
"""Goes before the name of a convolution whose filters see one channel each: bound by bytes, it has
nothing in common with one that is a matrix product."""
LEADING = (
    ("attention", ("attention", "scaled_dot_product_attention")),
    ("depthwise convolution", (DEPTHWISE,)),
    ("convolution", ("conv1d", "conv2d", "conv3d", "convolution")),
    ("transposed convolution", ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")),
    ("matrix product", ("matmul", "linear", "einsum")),
    ("scan", ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")),
    ("pooling", ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool")),
    ("normalisation", ("group_norm", "instance_norm", "batch_norm", "layer_norm", "rms_norm")),
    ("softmax", ("softmax", "log_softmax", "logsumexp")),
    ("loss", ("loss", "kl_div")),
    ("reduction", ("sum", "mean", "amax", "amin", "prod", "var", "argmax", "argmin", "norm")),
)
"""Classes of operators, the one that decides a kernel's structure first; by words that an
operator's name begins or ends with. What has none of them is element-wise."""
ELEMENTWISE = "elementwise"
_NO_ARITHMETIC = frozenset(
    {
        *("input", "parameter", "buffer", "constant", "getitem", "score"),
        *("index_q", "index_kv", "index_b", "index_h"),
        *("cast", "reshape", "transpose", "permute", "expand", "unsqueeze", "squeeze"),
    }
)


def operators(info: ProblemInfo) -> Counter[str]:
    """Count the operators of a problem by name; leaves and changes of shape are none.

    Attention is the operator `attention` and the way it is normalised, with what its functions
    compute. A problem whose graph is unknown has none.
    """
    if info.attention is not None:
        functions = (info.attention.score_mod, info.attention.mask_mod)
        nodes = [node for graph in functions if graph is not None for node in graph.nodes]
        found = Counter(["attention", info.attention.normalize])
    else:
        nodes, found = list(info.graph.nodes) if info.graph is not None else [], Counter()
    shapes = {node.name: node.shape for node in nodes}
    for node in nodes:
        name = _operator(node, shapes)
        if name and name not in _NO_ARITHMETIC:
            found[name] += 1
    return found


def _operator(node: Node, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if node.op != "opaque":
        return node.op
    name = str(node.attrs.get("target", "")).removeprefix("aten.").split(".")[0]
    operands = [
        shapes[arg.node] for arg in node.args if arg.node is not None and arg.node in shapes
    ]
    if name.startswith("conv") and len(operands) > 1 and len(operands[1]) > 2:
        image, weight = operands[:2]  # (N, C, ...) and (C, 1, ...) where each filter sees a channel
        if weight[1] == 1 and weight[0] == image[1] > 1:
            return f"{DEPTHWISE}_{name}"
    return name


def leading(found: Mapping[str, int]) -> str:
    """Return the class of the operator that decides a kernel's structure."""
    for name, words in LEADING:
        if any(op.startswith(word) or op.endswith(word) for op in found for word in words):
            return name
    return ELEMENTWISE


def distance(left: ProblemInfo, right: ProblemInfo) -> float:
    """Return how far apart two problems are in size and in operations per byte, in powers of two.

    A problem whose operations are unknown counts as one operation a byte.
    """
    return abs(_size(left) - _size(right)) + abs(_intensity(left) - _intensity(right))


def _size(info: ProblemInfo) -> float:
    return math.log2(max(info.io_bytes, 1))


def _intensity(info: ProblemInfo) -> float:
    return math.log2(max((info.flops or info.io_bytes) / max(info.io_bytes, 1), 1.0))


def likeness(left: Counter[str], right: Counter[str]) -> float:
    """Return the weighted Jaccard index of two problems' operators, from 0 to 1."""
    either = sum((left | right).values())
    return sum((left & right).values()) / either if either else 0.0
