"""Value profiles: which values inputs are checked on, and which mistakes each of them finds.

One table for models, one for attention. Profiles of the fast tier run for every candidate, those of
the final tier for the few that get there. A profile that cannot judge a problem (the reference does
not accept its values, its result is not finite, or eager itself is far off) is left out there.

Not here: which inputs may be overwritten (`inputs.py`), what attention's values are
(`attention_values.py`), which profiles a problem admits (`admission.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.core.verdict import Tier

LARGE_SCALES = (64.0, 32.0, 16.0, 8.0)
"""Factors of `large` that are tried, the largest that the reference bears is taken."""
LARGEST_FRAC = 0.5
"""Results of `large` stay below this share of the largest number of their dtype."""
SMALL_SCALE = 1e-3
ZERO_FRAC = 0.8
RAMP = 3.0
"""`sorted` ascends from minus to plus this many deviations."""
EXACT_FRAC = 0.75
"""Share of a dtype's range of whole numbers that sums of `integers` may reach on the draw that is
tried: on others the largest of many sums is a few per cent higher or lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueProfile:
    """One row of the table."""

    name: str
    tier: Tier
    """The first tier that runs it; the final tier runs all."""
    values: str
    finds: str
    """What a kernel does wrong that passes on most other profiles."""


def _fast(name: str, values: str, finds: str) -> ValueProfile:
    return ValueProfile(name=name, tier=Tier.FAST, values=values, finds=finds)


def _final(name: str, values: str, finds: str) -> ValueProfile:
    return ValueProfile(name=name, tier=Tier.FINAL, values=values, finds=finds)


MODEL_PROFILES = (
    _fast("shipped", "the file's own", "anything that shows where the problem is used"),
    _fast(
        "normal",
        "N(0, 1); constant-initialised parameters get random values too",
        "an activation left out, parameters taken for 0 or 1",
    ),
    _fast(
        "parameters",
        "the file's own, with random values in constant-initialised parameters",
        "parameters taken for 0 or 1, where `normal` is left out",
    ),
    _fast("positive_mean", "U(1, 2)", "sums in low precision, values below 1 taken for granted"),
    _fast("negative", "U(-2, -1)", "maxima that begin at 0, or that padding of 0 wins"),
    _fast("large", "N(0, 1) times 8 to 64", "exp without the maximum subtracted, overflow"),
    _fast("integers", "{-1, 0, 1}", "an element left out or counted twice, bit for bit"),
    _final("uniform", "U(-1, 1)", "negative values, where `normal` leaves the domain"),
    _final("small", "N(0, 1) times 1e-3", "a wrong or missing epsilon, small values skipped"),
    _final("sparse", "N(0, 1), 80 % zeros", "zeros taken for padding, division by an element"),
    _final("constant_rows", "one N(0, 1) value a row", "variance in one pass, broken ties"),
    _final("sorted", "ascending along rows", "the first block's maximum taken for the row's"),
)
"""Values of free inputs of a model; the others keep what `get_inputs` gives them."""

ATTENTION_PROFILES = (
    _fast("normal", "N(0, 1)", "anything that shows where the problem is used"),
    _fast("positive_mean", "v from U(1, 2)", "sums in low precision"),
    _fast("large", "q times 4", "peaked rows: probabilities rounded, masks off by one"),
    _fast("needles", "a few far keys carry the result", "far keys skipped"),
    _fast(
        "offset",
        "scores of a row raised or lowered by 128, which softmax does not see",
        "exp without the maximum subtracted",
    ),
    _final("uniform", "q, k, v from U(-1, 1)", "flat rows: normalisation off by a few keys"),
    _final("small", "N(0, 1) times 1e-3", "small values skipped, rounding to a fixed grid"),
    _final("sparse", "N(0, 1), 80 % zeros", "zeros taken for padding or for masked keys"),
    _final("constant_rows", "one N(0, 1) value a row", "ties between keys"),
    _final("sorted", "scores ascend along the keys", "the first block's maximum taken for all"),
)
"""Values of q, k, v."""

KEEPS_INPUTS = frozenset({"shipped", "parameters"})
"""Profiles of the file's own inputs."""
RANDOM_PARAMETERS = frozenset({"normal", "parameters"})
"""Profiles that replace constant-initialised parameters; each tier has one of them."""
TIES = frozenset({"sparse", "constant_rows"})
"""Profiles with equal elements: which of them an index names is often left open."""


def names(table: tuple[ValueProfile, ...], tier: Tier | None = None) -> tuple[str, ...]:
    """Return the names of all profiles, or of those that a tier adds, in order."""
    return tuple(row.name for row in table if tier is None or row.tier is tier)


def fill(tensor: Tensor, profile: str, gen: torch.Generator, scale: float) -> None:
    """Overwrite a floating-point tensor with values of a model's `profile`.

    `scale` is the factor of `large` and `sorted`. A row is what lies along the last dimension.

    Raises:
        ValueError: the profile has no values of its own.
    """
    if profile not in _FILLS:
        raise ValueError(f"no values for profile {profile!r}")
    _FILLS[profile](tensor, gen, scale)


def largest_exact(dtype: torch.dtype) -> float:
    """Return up to where a dtype holds every whole number: 2**24, 2**11 (fp16), 2**8 (bf16)."""
    return 2.0 / torch.finfo(dtype).eps


def _normal(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.normal_(generator=gen)


def _uniform(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.uniform_(-1, 1, generator=gen)


def _positive_mean(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.uniform_(1, 2, generator=gen)


def _negative(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.uniform_(-2, -1, generator=gen)


def _large(tensor: Tensor, gen: torch.Generator, scale: float) -> None:
    tensor.normal_(generator=gen).mul_(scale)


def _integers(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.random_(0, 3, generator=gen).sub_(1)


def _small(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.normal_(generator=gen).mul_(SMALL_SCALE)


def _sparse(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    values = torch.empty_like(tensor).normal_(generator=gen)
    tensor.bernoulli_(1 - ZERO_FRAC, generator=gen).mul_(values)


def _constant_rows(tensor: Tensor, gen: torch.Generator, _: float) -> None:
    tensor.copy_(_row_values(tensor).normal_(generator=gen).expand_as(tensor))


def _sorted(tensor: Tensor, gen: torch.Generator, scale: float) -> None:
    # A ramp, stretched and moved at random a row: sorting would take several times the memory.
    columns = tensor.shape[-1] if tensor.dim() else 1
    ramp = torch.linspace(-RAMP * scale, RAMP * scale, columns, device=tensor.device)
    tensor.copy_(ramp.expand_as(tensor) if tensor.dim() else ramp[0])
    tensor.mul_(_row_values(tensor).uniform_(0.5, 1, generator=gen))
    tensor.add_(_row_values(tensor).normal_(generator=gen))


def _row_values(tensor: Tensor) -> Tensor:
    """Return room for one value a row, which broadcasts against the tensor."""
    shape = (*tensor.shape[:-1], 1) if tensor.dim() else ()
    return torch.empty(shape, dtype=tensor.dtype, device=tensor.device)


_FILLS: Mapping[str, Callable[[Tensor, torch.Generator, float], None]] = {
    "normal": _normal,
    "uniform": _uniform,
    "positive_mean": _positive_mean,
    "negative": _negative,
    "large": _large,
    "integers": _integers,
    "small": _small,
    "sparse": _sparse,
    "constant_rows": _constant_rows,
    "sorted": _sorted,
}
