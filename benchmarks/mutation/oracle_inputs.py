"""What the oracle feeds a mutant: values that the problem allows, drawn apart from the verifier's.

A profile overwrites the floating inputs that the substrate calls free. Parameters stay as they were
initialised in `shipped` and get noise in all others, so that a weight of ones shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Fill = Callable[[Tensor, torch.Generator], Tensor]


def _normal(like: Tensor, gen: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=gen)


def _uniform(low: float, high: float) -> Fill:
    return lambda like, gen: torch.rand(like.shape, generator=gen) * (high - low) + low


def _steps(like: Tensor, gen: torch.Generator) -> Tensor:
    return torch.randint(-3, 4, like.shape, generator=gen).float()


def _sparse(like: Tensor, gen: torch.Generator) -> Tensor:
    kept = torch.rand(like.shape, generator=gen) < 0.05
    return torch.where(kept, torch.randn(like.shape, generator=gen) * 5, 0.0)


def _mixed(like: Tensor, gen: torch.Generator) -> Tensor:
    """Rows of very different size: the first dimension's slices go from 1e-3 to 30."""
    if not like.dim():
        return _normal(like, gen)
    scale = torch.logspace(-3, 1.5, like.shape[0]).view(-1, *[1] * (like.dim() - 1))
    return torch.randn(like.shape, generator=gen) * scale


def _constant(like: Tensor, gen: torch.Generator) -> Tensor:
    return torch.full(like.shape, 0.75)


PROFILES: dict[str, Fill] = {
    "normal": _normal,
    "negative": _uniform(-2.0, -1.0),
    "very_negative": _uniform(-40.0, -20.0),
    "positive": _uniform(1.0, 2.0),
    "large": lambda like, gen: 12.0 * _normal(like, gen),
    "huge": lambda like, gen: 100.0 * _normal(like, gen),
    "small": lambda like, gen: 1e-3 * _normal(like, gen),
    "offset": lambda like, gen: 30.0 + _normal(like, gen),
    "steps": _steps,
    "sparse": _sparse,
    "mixed": _mixed,
    "constant": _constant,
}
SEEDS = {"shipped": (11, 12), "normal": (21, 22)}
"""Of other profiles one seed is tried."""


def cases() -> list[tuple[str, int]]:
    """Return the profiles and seeds to try, those that most mutants fail on first."""
    names = ["normal", "shipped", *(p for p in PROFILES if p != "normal")]
    return [(name, seed) for name in names for seed in SEEDS.get(name, (31,))]


def fill_inputs(
    values: Sequence[object], profile: str, seed: int, *, fixed: Sequence[int]
) -> list[object]:
    """Return the arguments with free tensors overwritten by the profile's values."""
    gen = torch.Generator().manual_seed(seed)
    filled: list[object] = []
    for i, value in enumerate(values):
        free = isinstance(value, Tensor) and value.is_floating_point() and i not in fixed
        if profile == "shipped" or not free:
            filled.append(value)
        else:
            assert isinstance(value, Tensor)
            filled.append(PROFILES[profile](value, gen).to(value.dtype))
    return filled


def fill_state(state: dict[str, Tensor], profile: str, seed: int) -> dict[str, Tensor]:
    """Return parameters and buffers; but for `shipped` with noise, variances positive."""
    if profile == "shipped":
        return state
    gen = torch.Generator().manual_seed(seed + 1)
    filled = {}
    for name, value in state.items():
        if not value.is_floating_point():
            filled[name] = value
        elif name.rpartition(".")[2] == "running_var":
            filled[name] = torch.rand(value.shape, generator=gen) + 0.5
        else:
            filled[name] = value + torch.randn(value.shape, generator=gen) * 0.5
    return filled
