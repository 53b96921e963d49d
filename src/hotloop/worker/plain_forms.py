"""Plain forms: functions as a simple kernel writes them, where libraries take more care.

Triton has no `tanh`, `expm1` or `log1p`, so kernels write `exp(x) - 1` and `log(1 + exp(x))`. Near
zero their error is one unit in the last place of 1, not of the result: as good as any for what
follows, and a thousand times eager's own error on values of 1e-3. Such kernels are legitimate, so
members of the envelope compute this way. Half precision is still refused there: its error is 5e-4
of the result or more.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hotloop.worker.sequential import compute_dtype


def expm1(x: Tensor) -> Tensor:
    """Return `exp(x) - 1`."""
    return (_exp(_wide(x)) - 1).to(x.dtype)


def log1p(x: Tensor) -> Tensor:
    """Return `log(1 + x)`."""
    return torch.log(1 + _wide(x)).to(x.dtype)


def tanh(x: Tensor) -> Tensor:
    """Return `2 / (1 + exp(-2 x)) - 1`."""
    return _tanh(_wide(x)).to(x.dtype)


def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Return `log(1 + exp(beta x)) / beta`, and `x` where `beta x` is over the threshold."""
    wide = _wide(x)
    return torch.where(wide * beta > threshold, wide, _softplus(wide * beta) / beta).to(x.dtype)


def mish(x: Tensor) -> Tensor:
    """Return `x tanh(softplus(x))`."""
    wide = _wide(x)
    return (wide * _tanh(torch.where(wide > 20, wide, _softplus(wide)))).to(x.dtype)


def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Return `scale * x`, below 0 `scale * alpha * (exp(input_scale * x) - 1)`."""
    wide = _wide(x)
    below = alpha * (_exp(wide.clamp(max=0) * input_scale) - 1)
    return (scale * torch.where(wide > 0, wide, below)).to(x.dtype)


def _exp(wide: Tensor) -> Tensor:
    """Return the exponential as kernels have it: the device's own, without a GPU numpy's.

    Triton's interpreter calls numpy, which is up to 2.5 units in the last place off (SIMD), where
    torch is within 0.6 and CUDA's power of two within 2. Nowhere but near 1, with 1 taken off
    again, is that seen.
    """
    if wide.is_cuda or wide.dtype != torch.float32:
        return torch.exp(wide)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return torch.from_numpy(np.asarray(np.exp(wide.detach().numpy())))


def _wide(x: Tensor) -> Tensor:
    return x.to(compute_dtype(x.dtype))


def _tanh(wide: Tensor) -> Tensor:
    return 2 / (1 + _exp(-2 * wide)) - 1


def _softplus(wide: Tensor) -> Tensor:
    return torch.log(1 + _exp(wide))
