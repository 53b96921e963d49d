"""Centres: which means that keep their dimension a reference subtracts from the values again.

A norm written by hand forms its mean like that, and an error of it is an error of the variance. A
mean of squares or of sizes (RMS norm, L1 norm) is none: it scales what it is divided by, and one
accumulator forms it as it forms any sum.

Not here: how either is formed (`sequential.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

aten = torch.ops.aten
SIZES = frozenset({aten.abs.default, aten.square.default})
POWERS = frozenset({aten.pow.Tensor_Scalar})


class Centres:
    """Follows one forward: which tensors are squares or sizes, whether a centre was formed."""

    def __init__(self) -> None:
        self._sizes: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        self._has_centre = False

    def follow(self, func: Any, args: Any, result: Any) -> None:
        """Take in one operation that ran."""
        if _gives_sizes(func, args):
            self._sizes[result] = True

    def is_centre(self, x: Tensor) -> bool:
        """Return whether a mean of x that keeps its dimension may be subtracted.

        Behind such a mean all of them count: the squares may be those of what is left.
        """
        self._has_centre |= x not in self._sizes
        return self._has_centre


def _gives_sizes(func: Any, args: Any) -> bool:
    if func in SIZES:
        return True
    if func in POWERS:
        return bool(args[1] == 2)
    return bool(func is aten.mul.Tensor and args[0] is args[1])
