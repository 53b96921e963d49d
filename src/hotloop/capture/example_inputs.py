"""`get_inputs` for example arguments: the same shapes and dtypes, other values at each call.

A kernel has to be right for any values, so the judge never uses the example's own: only shapes,
dtypes and the range say what is drawn. The range of floats is rounded up to a power of two, so that
the same call with other random examples is the same problem and its run goes on; that of integers
is exact, for they may be indices.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from hotloop.capture.gather import literal
from hotloop.errors import ConfigError


def inputs_source(arguments: Sequence[Any]) -> str:
    """Return the text of `get_inputs` for example arguments.

    Args:
        arguments: tensors (dense; values of any device), numbers, strings, None and containers of
            those.

    Raises:
        ConfigError: one has no text.
    """
    lines = [f"        {_drawn(i, argument)}," for i, argument in enumerate(arguments)]
    return "\n".join(["def get_inputs():", "    return [", *lines, "    ]"])


def loaded_torch() -> Any:
    """Return the caller's torch: hotloop itself imports it in the judge alone.

    Raises:
        ConfigError: the caller has not imported it, so nothing here can be a tensor.
    """
    if "torch" not in sys.modules:
        raise ConfigError("expected a function of tensors; import torch and pass some in inputs")
    return sys.modules["torch"]


def _drawn(index: int, value: Any) -> str:
    if type(value).__module__.startswith("torch") and hasattr(value, "shape"):
        return _tensor(index, value)
    text = literal(value)
    if text is None:
        raise ConfigError(
            f"inputs[{index}]: expected a tensor, a number, a string or None, got a "
            f"{type(value).__name__}"
        )
    return text


def _tensor(index: int, value: Any) -> str:
    torch = loaded_torch()
    if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
        raise ConfigError(
            f"inputs[{index}]: expected a dense real tensor, got {value.layout} of {value.dtype}"
        )
    if not value.is_contiguous():
        raise ConfigError(
            f"inputs[{index}]: strides {tuple(value.stride())} of shape {tuple(value.shape)}: pass "
            "it contiguous, and change its layout inside the function"
        )
    shape, dtype = tuple(value.shape), value.dtype
    if dtype is torch.bool:
        return f"torch.rand({shape}) < 0.5"
    if not value.numel():
        raise ConfigError(f"inputs[{index}]: the tensor is empty; give it the sizes that matter")
    low, high = value.min().item(), value.max().item()
    if not dtype.is_floating_point:
        return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"
    if low >= 0:
        scale = 2.0 ** math.ceil(math.log2(high)) if 0 < high < math.inf else 1.0
        return f"torch.rand({shape}).mul({scale!r}).to({dtype})"
    return f"torch.randn({shape}).to({dtype})"
