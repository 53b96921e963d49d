"""Constant inputs: what `get_inputs` makes the same under every seed, and other values for it.

A scale of ones, a bias or a first state of zeros, a mask of True change nothing: a kernel that
leaves them out is right there and wrong for everybody who hands over others. As with constant
parameters (`constants.py`), the profiles `normal` or `parameters` put other values in their place,
as wild as the reference bears, and leave what it does not bear.

One number everywhere is a default. What has several (positions, an identity, a causal mask) is
structure: a kernel may rest on it, as on a triangular input, and it keeps its values. So do
integers, of which other values may be no indices. Either is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotloop.errors import ProblemError
from hotloop.worker.beside_kernels import plain_names
from hotloop.worker.census import ASSERTING, GATHERING
from hotloop.worker.constants import SIZES, perturb
from hotloop.worker.draw import broken_reason
from hotloop.worker.input_reach import Form, InputReach
from hotloop.worker.kept_inputs import FEW_SEEDS, TRIAL_SEED, has_few
from hotloop.worker.value_profiles import LARGEST_FRAC

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference
    from hotloop.worker.trials import Trials

MOST = 6
"""So many inputs are tried one by one, where the reference does not bear all at once."""
FACTOR = 4.0
"""Eager is at most so many times as far off with the other values: a mask of ones that scales a
score of -1e9 leaves nothing of the others."""
LARGE_FACTOR = 16.0
"""The same of large values. Scores divided by 1 are exact; by another number they round at their
size, which is 8 times as far off for a softmax. What is wrong there is thousands of times off."""

LOOKUPS = GATHERING | {
    "bincount", "embedding_bag", "_embedding_bag", "index_add", "index_copy", "index_fill",
    "index_put", "nll_loss2d_forward", "nll_loss_forward", "one_hot", "put", "scatter",
    "scatter_add", "scatter_reduce",
}  # fmt: skip
"""What takes indices. Where forward computes them of its inputs, other values may lead out of
range, which ends a GPU's context."""

READ = "_local_scalar_dense"
"""What takes a number out of a tensor. Where forward does, one of few numbers may be a size."""


def find(
    reach: InputReach,
    values: Sequence[Any],
    laws: Sequence[str | None],
    draw_again: Callable[[], Sequence[Any]],
) -> None:
    """Enter into the reach which tensors are the same under another seed, and which one number.

    Args:
        reach: of the reference.
        values: the arguments of forward.
        laws: their laws, as `inputs.draw_inputs` returns them; what has one is random.
        draw_again: draws the arguments under another seed; called where one has no law.
    """
    places = [
        i
        for i, (value, law) in enumerate(zip(values, laws, strict=True))
        if law is None and isinstance(value, Tensor) and value.numel()
    ]
    others = draw_again() if places else ()
    reach.constant_inputs = frozenset(i for i in places if _is_same(values[i], others[i]))
    uniform = {i for i in reach.constant_inputs if _is_uniform(values[i])}
    reach.uniform_masks = frozenset(i for i in uniform if values[i].dtype is torch.bool)
    reach.uniform_inputs = frozenset(uniform) - reach.uniform_masks


def fill(values: Sequence[Any], forms: Mapping[int, Form], gen: torch.Generator) -> None:
    """Overwrite constant inputs with values of these forms, in place.

    Args:
        values: the arguments of forward, as `get_inputs` made them.
        forms: by place.
        gen: of the draw's seed.
    """
    for place in sorted(forms):
        value, form = values[place], forms[place]
        if form is Form.BINARY:
            value.copy_(torch.empty(value.shape, device=value.device).bernoulli_(generator=gen))
        elif form is Form.NEAR and bool(value.any()):
            value.mul_(torch.empty_like(value).uniform_(*SIZES, generator=gen))
        else:
            perturb({"": value}, frozenset({""}), gen, wide=form is Form.WIDE)


def vary(trials: Trials, profile: str) -> None:
    """Let a profile, which was admitted, vary constant inputs as far as the reference bears it.

    An output that has another shape then (of `x[mask]`, or the first k) has no place in memory.
    """
    reach, usual, before = trials.reference.reach, list(trials.usual), trials.errors
    numbers, places = reach.uniform_inputs, sorted(reach.uniform_inputs | reach.uniform_masks)
    forms: dict[int, Form] = {}
    shapes = trials.shapes
    if not places:
        return
    if plain_names(trials.reference.census.names) & (LOOKUPS | ASSERTING):
        reach.varied[profile] = {}
        return

    def bears(more: Mapping[int, Form]) -> bool:
        reach.varied[profile] = {**forms, **more}
        is_borne = trials.plain(profile) is None and trials.shapes == shapes
        is_borne = is_borne and not trials.is_worse(before, FACTOR)
        return is_borne and not _is_luck(trials.reference, profile, shapes)

    for form in (Form.WIDE, Form.NEAR):
        wanted = {i: form if i in numbers else Form.BINARY for i in places}
        if not forms and bears(wanted):
            forms = wanted
    if not forms:
        for place in places[:MOST]:
            tried = Form if place in numbers else (Form.BINARY,)
            borne = next((form for form in tried if bears({place: form})), None)
            if borne is not None:
                forms[place] = borne
    reach.varied[profile] = forms
    trials.usual, trials.errors, trials.is_broken, trials.is_nan = usual, before, False, False


def vary_as(trials: Trials, profile: str, like: str) -> None:
    """Let a profile, which was admitted, vary constant inputs as another one does, if it can."""
    reference, before = trials.reference, trials.errors
    forms = reference.reach.varied.get(like)
    if not forms:
        return
    reference.reach.varied[profile] = forms
    if trials.plain(profile, below=LARGEST_FRAC) is not None or trials.is_worse(
        before, LARGE_FACTOR
    ):
        del reference.reach.varied[profile]


def unvaried(reach: InputReach) -> tuple[str, ...]:
    """Return a line that names the inputs which no call varies, if there are any."""
    varied = {place for forms in reach.varied.values() for place in forms}
    names = [reach.input_names[i] for i in sorted(reach.constant_inputs - varied)]
    if not names:
        return ()
    line = f"no call varies inputs {', '.join(names)}: get_inputs() makes them the same each time"
    return (line,)


def _is_luck(reference: ModelReference, profile: str, shapes: tuple[torch.Size, ...]) -> bool:
    """Whether other seeds break a profile that one did not: `sqrt(y)` of one number, `x[:y]`."""
    if not has_few(reference):
        return False
    if READ in reference.census.names:
        return True  # int(y) is the same on most seeds where y is near 0
    for seed in range(TRIAL_SEED + 1, TRIAL_SEED + FEW_SEEDS):
        try:
            outputs = reference.eager(reference.draw(seed, profile))
        except ProblemError:
            return True
        if tuple(output.shape for output in outputs) != shapes:
            return True
        if broken_reason(outputs, outputs, nonfinite=reference.nonfinite) is not None:
            return True
    return False


def masks(reach: InputReach, profile: str) -> frozenset[int]:
    """Return the places of constant masks that are random in a profile."""
    return reach.uniform_masks.intersection(reach.varied.get(profile, ()))


def _is_uniform(value: Tensor) -> bool:
    """Whether it is one floating-point number, or one boolean, everywhere."""
    varies = value.dtype.is_floating_point or value.dtype is torch.bool
    return varies and bool((value == value.reshape(-1)[0]).all())


def _is_same(a: Tensor, b: Any) -> bool:
    if not isinstance(b, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a, b)
