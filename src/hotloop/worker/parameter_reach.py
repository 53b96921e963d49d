"""How far the values of a problem's parameters go: what admission found that its reference bears.

Not here: the same of inputs (`value_profiles.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

BIAS = 2.0**8
"""Of `biased`. A variance in one pass loses (bias / deviation) ** 2 * 2**-24 of itself: 1 % at the
deviation 0.6 of a convolution with torch's initial weights. Values round to 2**-16 of the bias in
any kernel, and sums that begin at it are some ten times that off."""
BIASES = ((BIAS, 1.0), (4.0, 0.1))
"""Sizes and deviations of biases that are tried. Behind a tanh or a sigmoid the large ones leave
nothing to see; 4 is over what a linear layer adds with torch's initial weights, and these are not
at their end yet."""


@dataclass(slots=True)
class ParameterReach:
    """The part of `Reach` that is about parameters and buffers."""

    wide: set[str] = field(default_factory=set)
    """Profiles whose constants get signs and sizes as a trained model may have them."""
    buffers: frozenset[str] = frozenset()
    """Buffers that begin as constants."""
    has_buffers: bool = True
    """Whether these get other values."""
    bias_sign: float = 1.0
    """Of the biases of `biased`."""
    bias: tuple[float, float] = BIASES[0]
    """Their size and deviation."""
    unbiased_weights: frozenset[str] = frozenset()
    """Weights of two dimensions or more, where no product has a bias."""
    positive_weights: bool = False
    """Whether these have no signs in `far`."""
    opposed_weights: frozenset[str] = frozenset()
    """Weights that `opposed` scales down and `lowered` up."""
    tables: frozenset[str] = frozenset()
    """Tables that get a profile's values, where all inputs are indices."""
