"""Parameters of a model's draws: which of them a value profile replaces, and by what.

Not here: the inputs (`inputs.py`, `value_profiles.py`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.worker.census import Census
from hotloop.worker.inputs import perturb_constants
from hotloop.worker.value_profiles import BIAS, RANDOM_PARAMETERS, Reach, fill


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
    if profile in RANDOM_PARAMETERS:
        perturb_constants(state, constants, gen)
    elif profile == "biased":
        for name in product_biases(state):
            state[name].normal_(generator=gen).add_(BIAS)
    elif profile == "integers":
        for value in state.values():
            if value.dtype.is_floating_point:
                fill(value, profile, gen, reach)


def takes_biases(state: dict[str, Tensor], census: Census) -> bool:
    """Whether large biases show more than other values do: a variance is formed behind one.

    Not where there is a softmax: scores that large biases make are decided by one key, and where
    two all but tie, the error of eager is luck.
    """
    softmax = any("softmax" in name or "attention" in name for name in census.names)
    return census.has_variance_behind_bias and not softmax and bool(product_biases(state))


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


def _dimensions(state: dict[str, Tensor], name: str) -> int:
    value = state.get(name)
    return 0 if value is None else value.dim()
