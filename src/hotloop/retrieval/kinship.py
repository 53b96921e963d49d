"""How alike two problems are, by the operators of their graphs.

What helps a model is verified code of the same kind, not much text (GEAK's ablation of retrieval).
The leading operator has to be the same one: a matrix product says little about a pooling, though
both may end with a ReLU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hotloop.core.problem import ProblemInfo

LEADING = (
    ("attention", ("attention", "scaled_dot_product_attention")),
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
    for node in nodes:
        name = node.op
        if name == "opaque":
            name = str(node.attrs.get("target", "")).removeprefix("aten.").split(".")[0]
        if name and name not in _NO_ARITHMETIC:
            found[name] += 1
    return found


def leading(found: Mapping[str, int]) -> str:
    """Return the class of the operator that decides a kernel's structure."""
    for name, words in LEADING:
        if any(op.startswith(word) or op.endswith(word) for op in found for word in words):
            return name
    return ELEMENTWISE


def likeness(left: Counter[str], right: Counter[str]) -> float:
    """Return the weighted Jaccard index of two problems' operators, from 0 to 1."""
    either = sum((left | right).values())
    return sum((left & right).values()) / either if either else 0.0
