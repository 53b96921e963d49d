"""Scale-free operations: those whose error is a share of the result, in any usual form.

A sum of small numbers is as exact as one of large numbers. A hyperbolic sine is not: written as
`(exp(x) - exp(-x)) / 2` it is off by a unit in the last place of 1, however small x is, and that is
no fault. Of the functions that have such forms those are here whose forms are members of the
envelope (`plain_forms.py`): what they lose is known. In 16 bits it is not: members round each
result, so that `x - tanh(x)` is 0 there, where a kernel that stays in float32 is off by that of 1.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from hotloop.worker.census import LIBRARY_PRODUCTS, NO_ARITHMETIC

SCALE_FREE = (
    NO_ARITHMETIC
    | LIBRARY_PRODUCTS
    | frozenset(
        {
            "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_batch_norm_with_update",
            "_fused_rms_norm", "_log_softmax", "_native_batch_norm_legit",
            "_native_batch_norm_legit_no_training", "_prelu_kernel", "_softmax", "abs",
            "adaptive_max_pool2d", "add", "addcdiv", "addcmul", "amax", "amin", "aminmax", "argmax",
            "argmin", "avg_pool2d", "avg_pool3d", "clamp", "clamp_max", "clamp_min",
            "cudnn_batch_norm", "cummax", "cummin", "cumsum", "div", "dropout", "eq", "exp",
            "ge", "gelu", "gt", "hardsigmoid", "hardswish", "hardtanh", "huber_loss", "le",
            "leaky_relu", "lerp", "linalg_vector_norm", "log", "logical_and",
            "logical_not", "logical_or", "logsumexp", "lt", "masked_fill", "max",
            "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum", "mean", "min",
            "minimum", "mse_loss", "mul", "native_batch_norm", "native_dropout",
            "native_group_norm", "native_layer_norm", "ne", "neg", "norm", "pow", "reciprocal",
            "relu", "rsqrt", "rsub", "sigmoid", "sign", "silu", "smooth_l1_loss",
            "sort", "sqrt", "square", "std", "std_mean", "sub", "sum", "topk", "var",
            "var_mean", "where",
        }
    )
)  # fmt: skip
"""By their names without a trailing underscore."""
PLAIN = frozenset({"elu", "expm1", "log1p", "mish", "softplus", "tanh"})
"""Those whose plain forms are members of the envelope."""


def is_scale_free(names: Iterable[str], dtype: torch.dtype) -> bool:
    """Whether a reference runs such operations alone.

    Args:
        names: of its operations, as a census has them.
        dtype: of the output.
    """
    known = SCALE_FREE if dtype.itemsize < torch.float32.itemsize else SCALE_FREE | PLAIN
    return all(name in known or name.rstrip("_") in known for name in names)
