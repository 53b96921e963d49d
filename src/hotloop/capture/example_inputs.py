"""`get_inputs` for example arguments: the same shapes and dtypes, other values at each call.

A kernel has to be right for any values, so the judge never uses the example's own: only shapes,
dtypes and the range say what is drawn. The range of floats is rounded up to a power of two, so that
the same call with other random examples is the same problem and its run goes on; signed floats that
look standard normal (largest magnitude from 1 to 8) are. That of integers is exact, for they may be
indices.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from hotloop.capture.gather import literal
from hotloop.errors import ConfigError

_DTYPES = (
    "float16", "bfloat16", "float32", "float64", "bool", "uint8", "int8", "int16", "int32", "int64",
)  # fmt: skip
_NORMAL = (1.0, 8.0)
"""Largest magnitudes that standard normal values have: of few values, and of very many."""


def inputs_source(arguments: Sequence[Any]) -> str:
    """Return the text of `get_inputs` for example arguments.

    Args:
        arguments: tensors (dense and contiguous, of any device, finite; float16, bfloat16, float32,
            float64, bool, uint8 and signed integers), or numbers, strings, None and lists, tuples,
            sets and dicts of those. A tensor inside a container has no text.

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
            f"inputs[{index}]: expected a tensor, a number, a string, None or a container of those "
            f"without tensors, got a {type(value).__name__}"
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
    if not value.numel():
        raise ConfigError(f"inputs[{index}]: the tensor is empty; give it the sizes that matter")
    shape, dtype = tuple(value.shape), value.dtype
    if str(dtype).removeprefix("torch.") not in _DTYPES:
        raise ConfigError(
            f"inputs[{index}]: expected one of {', '.join(_DTYPES)}, got {dtype}: pass one of "
            "those, and convert inside the function"
        )
    if dtype is torch.bool:
        return f"torch.rand({shape}) < 0.5"
    low, high = _range(index, value)
    if dtype.is_floating_point:
        return _floats(low, high, shape, dtype)
    if high == 2**63 - 1:
        raise ConfigError(
            f"inputs[{index}]: holds the largest int64, above which nothing can be drawn: pass "
            "smaller values"
        )
    return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"


def _range(index: int, value: Any) -> tuple[Any, Any]:
    """Return the least and the largest value."""
    if value.is_meta or isinstance(value, loaded_torch()._subclasses.FakeTensor):
        raise ConfigError(
            f"inputs[{index}]: a tensor on {value.device} without values: pass one that has some"
        )
    low, high = value.min().item(), value.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(
            f"inputs[{index}]: expected finite values, got NaN or infinity: pass finite ones, and "
            "put the others in inside the function"
        )
    return low, high


def _floats(low: float, high: float, shape: tuple[int, ...], dtype: Any) -> str:
    """Return the text that draws floats: positive, about standard normal, or signed."""
    torch = loaded_torch()
    wide = ", dtype=torch.float64" if dtype is torch.float64 else ""
    largest = max(-low, high)
    if low < 0 and _NORMAL[0] <= largest <= _NORMAL[1]:
        return f"torch.randn({shape}{wide}).to({dtype})"
    scale = min(_power_of_two(largest), torch.finfo(dtype).max) if largest else 1.0
    signed = ".mul(2).sub(1)" if low < 0 else ""
    return f"torch.rand({shape}{wide}){signed}.mul({scale!r}).to({dtype})"


def _power_of_two(value: float) -> float:
    """Return the least power of two that is not below a positive value."""
    fraction, exponent = math.frexp(value)
    exponent -= fraction == 0.5
    return math.ldexp(1.0, exponent) if exponent < sys.float_info.max_exp else math.inf
