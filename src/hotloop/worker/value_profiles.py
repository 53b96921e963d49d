"""Value profiles: which values inputs are checked on, and which mistakes each of them finds.

One table for models, one for attention. Profiles of the fast tier run for every candidate, those of
the final tier for the few that get there. A profile that cannot judge a problem (the reference does
not accept its values, its result is not finite, or eager itself is far off) is left out there.

Not here: which inputs may be overwritten (`inputs.py`), what attention's values are
(`attention_values.py`), which profiles a problem admits (`admission.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hotloop.core.verdict import Tier
from hotloop.worker import apart
from hotloop.worker.apart import FACTORS, Factors, Sides, row_values
from hotloop.worker.bound import Rigour
from hotloop.worker.input_reach import InputReach
from hotloop.worker.spikes import add_spikes

LARGE_SCALES = (64.0, 32.0, 16.0, 8.0, 4.0)
"""Factors of `large` that are tried, the largest that the reference bears is taken."""
LARGEST_FRAC = 0.5
"""Results of `large` stay below this share of the largest number of their dtype."""
FAR_SCALE = 2.0**17
"""Of `far`: 62 % of its values are over 65504, float16's largest, 32 % over twice that, where the
second of two clamped float16 parts overflows too."""
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
        "N(0, 1), where the domain is positive its size; random values in constant parameters and "
        "buffers, a quarter of the scales negative; masks with empty, full and padded rows",
        "an activation left out, parameters taken for 0 or 1, a scale moved past a maximum",
    ),
    _fast(
        "parameters",
        "the file's own, with random values in constant-initialised parameters",
        "parameters taken for 0 or 1, where `normal` is left out",
    ),
    _fast("positive_mean", "U(1, 2)", "narrow sums, a variance in one pass, values below 1"),
    _fast(
        "negative",
        "U(-2, -1), parts of the first dimension times 2**-24, 1, 0, -6, 16 and -16; columns of 0 "
        "where sums take in all rows",
        "extrema that begin at 0, 10 or -10, or that padding of 0 wins; rows that share a scale; "
        "divisions by a norm of 0; softplus without its end",
    ),
    _fast(
        "large",
        "N(0, 1) times 4 to 64, in half of the rows one value of 8 to 9 deviations; constant "
        "parameters as in `normal`",
        "exp without the row's maximum subtracted: none, or that of one block; overflow",
    ),
    _fast(
        "far",
        "N(0, 1) times 2**17; before an extremum a quarter of the rows or columns, or all, on one "
        "side of 0, and weights positive where no bias stands behind them",
        "values that go through float16 unscaled, numbers that stand for infinity; a maximum or "
        "softmax that begins at 0",
    ),
    _fast(
        "opposed",
        "N(0, 1) times 2**17, weights that multiply it times 2**-17",
        "weights that go through float16 unscaled; overflow, behind what saturates",
    ),
    _fast(
        "biased",
        "N(0, 1), biases of products and convolutions near 256 or -256, or 4 or -4 behind what "
        "saturates",
        "a variance in one pass behind a bias; extrema that begin at 0 behind one",
    ),
    _fast(
        "alike",
        "N(0, 1), or its size, in one of the inputs of a shape; others are within 1 % of it, and "
        "each pair, in some rows, within 2**-20",
        "an epsilon within a distance left out; squares taken apart, which cancel",
    ),
    _fast("integers", "{-1, 0, 1}", "an element left out or counted twice, bit for bit"),
    _final("uniform", "U(-1, 1)", "negative values, where `normal` leaves the domain"),
    _final("small", "N(0, 1) times 1e-3", "a wrong or missing epsilon, small values skipped"),
    _final(
        "lowered",
        "N(0, 1) times 2**-17, weights that multiply it times 2**17",
        "values that go through float16 with a scale that only goes down",
    ),
    _final("sparse", "N(0, 1), 80 % zeros", "zeros taken for padding, division by an element"),
    _final("constant_rows", "one N(0, 1) value a row", "variance in one pass, broken ties"),
    _final("sorted", "ascending along rows", "a maximum that every block of a row raises"),
)
"""Values of free inputs of a model; the others keep what `get_inputs` gives them. Where all of them
are indices, the tables that they look up have these values."""

ATTENTION_PROFILES = (
    _fast("normal", "N(0, 1)", "anything that shows where the problem is used"),
    _fast(
        "positive_mean",
        "v from U(1, 2); all scores 4 lower where weights are sigmoids",
        "sums in low precision, small sigmoids taken for 0",
    ),
    _fast(
        "large",
        "q times 4; unless in float16, v times 2**17, and q and k 2**17 apart, scores as they are",
        "peaked rows: probabilities rounded, masks off by one; values that go through float16",
    ),
    _fast("needles", "a few far keys carry the result", "far keys skipped"),
    _fast(
        "sink",
        "one key, the first, the last or one a third along, outweighs the rest of its row",
        "keys far below a row's maximum skipped",
    ),
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

RANDOM_PARAMETERS = frozenset({"normal", "parameters"})
"""Profiles that replace constant-initialised parameters; each tier has one of them."""
TIES = frozenset({"sparse", "constant_rows"})
"""Profiles with equal elements: which of them an index names is often left open."""


def names(table: tuple[ValueProfile, ...], tier: Tier | None = None) -> tuple[str, ...]:
    """Return the names of all profiles, or of those that a tier adds, in order."""
    return tuple(row.name for row in table if tier is None or row.tier is tier)


@dataclass(slots=True)
class Reach(InputReach):
    """How far a problem's values go: the farthest that its reference bears, found by admission."""

    scale: float = LARGE_SCALES[0]
    """Factor of `large` and `sorted`."""
    factors: Factors = FACTORS[0]
    """Factors of the parts of `negative`."""
    rules: dict[str, tuple[Rigour, ...]] = field(default_factory=dict)
    """Which rules hold on a profile, by output; all of them where none is told."""
    unsigned: set[str] = field(default_factory=set)
    """Profiles whose values have no signs: the domain is positive."""
    masked: dict[str, frozenset[str]] = field(default_factory=dict)
    """Which kinds of rows a profile makes in random masks."""
    sides: Sides = Sides()
    """Which parts of `far` have one sign."""
    zero_columns: bool = False
    """Whether `negative` has columns of 0."""
    varies_rows: bool = False
    """Whether only a part of `constant_rows` is constant."""
    opposed_inputs: frozenset[int] = frozenset()
    """Places of what `opposed` scales up and `lowered` down."""
    alike: tuple[tuple[int, ...], ...] = ()
    """Places of inputs that share a shape, by shape."""


def fill(tensor: Tensor, profile: str, gen: torch.Generator, reach: Reach) -> None:
    """Overwrite a floating-point tensor with values of a model's `profile`.

    A row is what lies along the last dimension.

    Raises:
        ValueError: the profile has no values of its own.
    """
    if profile not in _FILLS:
        raise ValueError(f"no values for profile {profile!r}")
    _FILLS[profile](tensor, gen, reach)
    if profile in reach.unsigned:
        tensor.abs_()


def largest_exact(dtype: torch.dtype) -> float:
    """Return up to where a dtype holds every whole number: 2**24, 2**11 (fp16), 2**8 (bf16)."""
    return 2.0 / torch.finfo(dtype).eps


def _normal(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    tensor.normal_(generator=gen)


def _uniform(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    tensor.uniform_(-1, 1, generator=gen)


def _positive_mean(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    tensor.uniform_(1, 2, generator=gen)


def _negative(tensor: Tensor, gen: torch.Generator, reach: Reach) -> None:
    for part, factor in apart.parts(tensor, reach.factors):
        part.uniform_(-2, -1, generator=gen).mul_(factor)
        if not factor:
            part.zero_()  # not -0
    if reach.zero_columns:
        apart.columns(tensor).zero_()


def _large(tensor: Tensor, gen: torch.Generator, reach: Reach) -> None:
    tensor.normal_(generator=gen).mul_(reach.scale)
    add_spikes(tensor, gen, reach.scale)


def _far(tensor: Tensor, gen: torch.Generator, reach: Reach) -> None:
    tensor.normal_(generator=gen)
    for part, sign in apart.sided(tensor, reach.sides):
        part.uniform_(*apart.SIDE, generator=gen).mul_(sign)
    tensor.mul_(FAR_SCALE)


def _integers(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    tensor.random_(0, 3, generator=gen).sub_(1)


def _small(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    tensor.normal_(generator=gen).mul_(SMALL_SCALE)


def _sparse(tensor: Tensor, gen: torch.Generator, _: Reach) -> None:
    values = torch.empty_like(tensor).normal_(generator=gen)
    tensor.bernoulli_(1 - ZERO_FRAC, generator=gen).mul_(values)


def _constant_rows(tensor: Tensor, gen: torch.Generator, reach: Reach) -> None:
    tensor.copy_(row_values(tensor).normal_(generator=gen).expand_as(tensor))
    if reach.varies_rows:
        apart.varied(tensor).normal_(generator=gen)


def _sorted(tensor: Tensor, gen: torch.Generator, reach: Reach) -> None:
    # A ramp, stretched and moved at random a row: sorting would take several times the memory.
    end = RAMP * reach.scale
    columns = tensor.shape[-1] if tensor.dim() else 1
    ramp = torch.linspace(-end, end, columns, device=tensor.device)
    tensor.copy_(ramp.expand_as(tensor) if tensor.dim() else ramp[0])
    tensor.mul_(row_values(tensor).uniform_(0.5, 1, generator=gen))
    tensor.add_(row_values(tensor).normal_(generator=gen))


_FILLS: Mapping[str, Callable[[Tensor, torch.Generator, Reach], None]] = {
    "normal": _normal,
    "uniform": _uniform,
    "positive_mean": _positive_mean,
    "negative": _negative,
    "large": _large,
    "far": _far,
    "biased": _normal,
    "opposed": _normal,
    "lowered": _normal,
    "alike": _normal,
    "integers": _integers,
    "small": _small,
    "sparse": _sparse,
    "constant_rows": _constant_rows,
    "sorted": _sorted,
}
