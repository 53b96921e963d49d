"""Constants: other values for parameters and buffers that every build begins with the same.

A scale of 1 and a statistic of 0 and 1 change nothing: a kernel that leaves them out, or exchanges
a scale with a maximum behind it, is right there and wrong once the model is trained. Signs and
sizes are shared out, not left to chance: of 1 + N(0, 1) / 2 one element in fifty is negative.

Not here: which they are (`parameters.py`), which values the reference bears (`trials.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

RUNNING_STATISTICS = frozenset({"running_mean", "running_var"})
SIZES = (0.5, 1.5)
"""Of scales that begin at 1, and of what may be a divisor."""
SHARE = 4
"""One element in so many is made an exception, of fewer one is."""
VARIANCE_BITS = 6.0
"""Running variances lie between two to the power of minus this and of this, log-uniform: a trained
model's are not near 1, and an iteration for their root may converge there alone."""
SLOPES = (1.0, 2.0)
"""What is added to other constants: a slope of 0.25 is over 1 then, where max(x, slope x) is not
what a PReLU is."""


def perturb(
    state: Mapping[str, Tensor],
    constant: frozenset[str],
    gen: torch.Generator,
    *,
    buffers: frozenset[str] = frozenset(),
    wide: bool = True,
) -> None:
    """Give constant-initialised parameters, buffers and batch statistics random values, in place.

    Args:
        state: parameters and buffers by name.
        constant: names of those that are overwritten.
        gen: of the draw's seed.
        buffers: names of buffers among them; those of ones may be what is divided by, and are
            drawn from U(0.5, 1.5).
        wide: with signs and sizes as a trained model may have them. Without, where the reference
            does not bear these, a parameter p becomes p + N(0, 1) / 2, so that norm scales are not
            1 and biases are not 0, and running variances are drawn from U(0.5, 1.5).
    """
    for name in sorted(constant):
        value, leaf = state[name], name.rpartition(".")[2]
        is_ones = bool((value == 1).all())
        if leaf == "running_var" and wide:
            value.uniform_(-VARIANCE_BITS, VARIANCE_BITS, generator=gen).exp2_()
        elif leaf == "running_var" or (name in buffers and is_ones):
            value.uniform_(*SIZES, generator=gen)
        elif leaf == "running_mean" and wide:
            value.add_(_normal(value, gen))  # as large as inputs
        elif wide and is_ones:
            value.uniform_(*SIZES, generator=gen)
            value[_exceptions(value, gen)] *= -1
        elif wide and _is_uniform(value):
            raised = _exceptions(value, gen)
            steps = torch.empty_like(value).uniform_(*SLOPES, generator=gen)
            value.copy_(torch.where(raised, value + steps, value + _normal(value, gen) / 2))
        else:
            value.add_(_normal(value, gen), alpha=0.5)


def _normal(like: Tensor, gen: torch.Generator) -> Tensor:
    return torch.empty_like(like).normal_(generator=gen)


def _exceptions(value: Tensor, gen: torch.Generator) -> Tensor:
    """Return a mask of one element in `SHARE`, at least one, at random places."""
    count = value.numel()
    order = torch.randperm(count, generator=gen, device=value.device)
    return (order < max(1, count // SHARE)).view(value.shape)


def _is_uniform(value: Tensor) -> bool:
    """Whether all elements are one number other than 0: a slope, a temperature, no bias."""
    return value.numel() > 0 and bool((value == value.reshape(-1)[0]).all()) and bool(value.any())
