"""Parameters of a model's draws: which of them a value profile replaces, and by what.

Not here: the inputs (`inputs.py`, `value_profiles.py`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.bound import Rigour
from hotloop.worker.census import Census
from hotloop.worker.constants import RUNNING_STATISTICS, perturb
from hotloop.worker.input_reach import KEEPS_INPUTS
from hotloop.worker.lookups import fill_table
from hotloop.worker.opposed import SCALES
from hotloop.worker.value_profiles import RANDOM_PARAMETERS, Reach, fill

DOWN = frozenset(
    {
        "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "amax", "aminmax",
        "cummax", "logcumsumexp", "logsumexp", "max", "max_pool1d", "max_pool2d",
        "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "log_softmax",
        "softmax", "_log_softmax", "_softmax",
    }
)  # fmt: skip
"""Operations with a maximum: what it begins at shows on values far below 0."""
RANKS = frozenset({"argsort", "kthvalue", "sort", "topk"})
"""Operations whose indices follow from an order among equals, too."""
ORDERS = RANKS | {"argmax"}
"""Operations with an order, or with the place of a maximum."""
UP = frozenset({"amin", "aminmax", "cummin", "min"})
"""Operations with a minimum."""
SCORES = frozenset({"bmm", "baddbmm", "matmul", "einsum", "scaled_dot_product_attention"})
"""Where one of these runs beside a softmax, its scores may be products of biases."""


def replace(
    state: dict[str, Tensor],
    profile: str,
    gen: torch.Generator,
    *,
    constants: frozenset[str],
    reach: Reach,
) -> None:
    """Overwrite the parameters that `profile` has values for, in place.

    Args:
        state: parameters and buffers by name.
        profile: a model's value profile.
        gen: of the draw's seed.
        constants: names of those that begin as constants.
        reach: how far values go.
    """
    is_wide = profile in reach.wide
    if is_wide or profile in RANDOM_PARAMETERS:
        chosen = constants if reach.has_buffers else constants - reach.buffers
        perturb(state, chosen, gen, buffers=reach.buffers, wide=is_wide)
    elif profile == "biased":
        size, deviation = reach.bias
        for name in product_biases(state):
            state[name].normal_(generator=gen).mul_(deviation).add_(reach.bias_sign * size)
    elif profile == "far" and reach.positive_weights:
        for name in sorted(reach.unbiased_weights):
            state[name].abs_()
    elif profile in SCALES:
        for name in sorted(reach.opposed_weights):
            state[name].mul_(1 / SCALES[profile])
    elif profile == "integers":
        for value in state.values():
            if value.dtype.is_floating_point:
                fill(value, profile, gen, reach)
    if profile not in KEEPS_INPUTS:
        for name in sorted(reach.tables):
            fill_table(state[name], profile, gen, reach)


def constant_names(
    first: dict[str, Tensor], second: dict[str, Tensor], parameters: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return what begins as a constant and may have other values, and which of it are buffers.

    Buffers are batch statistics, and those that are 0 or 1 everywhere; of others (tables, masks)
    the values may be what makes them right.

    Args:
        first: parameters and buffers of a module by name.
        second: those of another one, built under another seed.
        parameters: names of the parameters.
    """
    found = frozenset(
        name
        for name, value in first.items()
        if value.dtype.is_floating_point
        and torch.equal(value, second[name])
        and (name in parameters or _is_plain(name, value))
    )
    kept = (n for n in found - parameters if n.rpartition(".")[2] not in RUNNING_STATISTICS)
    return found, frozenset(kept)


def _is_plain(name: str, buffer: Tensor) -> bool:
    if name.rpartition(".")[2] in RUNNING_STATISTICS:
        return True
    return bool((buffer == 0).all()) or bool((buffer == 1).all())


def bias_rules(state: dict[str, Tensor], census: Census) -> Rigour | None:
    """Return the rules under which large biases show more than other values do; None: nowhere.

    All of them where a variance is formed behind one. Gross errors only where there is an extremum
    or a softmax, which may begin at 0: by how much sums of that size are off, and which of two
    scores that all but tie is the larger, is luck. None where scores may be products of biases.
    """
    if not product_biases(state):
        return None
    softmax = any("softmax" in name or "attention" in name for name in census.names)
    if census.has_variance_behind_bias:
        return None if softmax else Rigour.FULL
    if softmax and census.names & SCORES or not census.names & (DOWN | UP):
        return None
    return Rigour.GROSS


def has_maximum(census: Census) -> bool:
    """Whether there is an operation with a maximum, or with an order."""
    attends = any("attention" in name for name in census.names)
    return bool(attends or census.names & (DOWN | ORDERS))


def bias_signs(census: Census) -> tuple[float, ...]:
    """Return the signs of large biases to try, the first that the reference bears is taken."""
    if census.has_variance_behind_bias:
        return (1.0,)
    down, up = bool(census.names & DOWN), bool(census.names & UP)
    return (-1.0, 1.0) if down and not up else (1.0, -1.0)


def product_biases(state: dict[str, Tensor]) -> tuple[str, ...]:
    """Return the names of float32 biases that stand beside a weight of two dimensions or more.

    Those of linear layers and convolutions; a norm's scale has one dimension.
    """
    return tuple(
        name
        for name in sorted(state)
        if name.rpartition(".")[2] == "bias"
        and state[name].dtype == torch.float32
        and _dimensions(state, name.removesuffix("bias") + "weight") >= 2
    )


def unbiased_weights(state: dict[str, Tensor]) -> frozenset[str]:
    """Return the names of weights of two dimensions or more, where no product has a bias."""
    if product_biases(state):
        return frozenset()
    return frozenset(
        name for name, t in state.items() if t.dim() >= 2 and t.dtype.is_floating_point
    )


def _dimensions(state: dict[str, Tensor], name: str) -> int:
    value = state.get(name)
    return 0 if value is None else value.dim()
