"""Decomposed: operations that torch takes apart into sums, products and element-wise ones.

So taken apart, a norm or a loss has the orders of its parts (`envelope.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten

_DECOMPOSED_NAMES = (
    "native_layer_norm.default",
    "native_group_norm.default",
    "native_batch_norm.default",
    "cudnn_batch_norm.default",
    "_native_batch_norm_legit.default",
    "_native_batch_norm_legit.no_stats",
    "_batch_norm_with_update.default",
    "_fused_rms_norm.default",
    "logsumexp.default",
    "linalg_vector_norm.default",
    "norm.ScalarOpt_dim",
    "norm.Scalar",
    "mse_loss.default",
    "smooth_l1_loss.default",
    "huber_loss.default",
)


def _decompositions() -> dict[Any, Callable[..., Any]]:
    table = {}
    for name in _DECOMPOSED_NAMES:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(aten, packet, None), overload, None)  # older torch lacks a few
        if op is not None and op in decomposition_table:
            table[op] = decomposition_table[op]
    return table


DECOMPOSED = _decompositions()
"""What runs in place of each operation."""
