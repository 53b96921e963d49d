"""Draw and Reference: one set of inputs, and everything trusted that is computed from it.

`Reference` is the judge's view of a problem at one workload on one device. It never sees candidate
code. `model_reference.py` and `attention_reference.py` implement it; `reference.py` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from hotloop.core.problem import TensorSpec
from hotloop.errors import ProblemError
from hotloop.worker.bound import Rigour
from hotloop.worker.error_stats import error_stats, size_stats
from hotloop.worker.nonfinite import void_reason
from hotloop.worker.pieces import PIECE
from hotloop.worker.precision import Precision, precision

if TYPE_CHECKING:
    from hotloop.worker.load import LoadedProblem

Outputs = tuple[Tensor, ...]
Specs = tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...], tuple[TensorSpec, ...]]

MAX_CONDITIONING = 0.10
"""Largest error of eager, as a share of the golden's largest value, at which a profile says
something about a candidate."""


@dataclass(slots=True)
class Draw:
    """One set of inputs and parameters on the device."""

    inputs: tuple[Any, ...]
    """Forward's arguments in order, tensors and others."""
    state: dict[str, Tensor]
    """Parameters and buffers by the reference's names."""
    seed: int
    profile: str


class Reference(ABC):
    """One problem at one workload on one device."""

    profiles: tuple[str, ...]
    """Value profiles of the fast tier that apply; empty when no profile can tell a right candidate
    from a wrong."""
    final_profiles: tuple[str, ...] = ()
    """What the final tier adds; not tried yet, so each may turn out to judge nothing."""
    notes: list[str]
    """Why profiles or envelope members were left out; safe to show a model."""
    prepare_ms: dict[str, float]
    """Time of the work that a baseline does once ahead of its calls, by baseline name."""
    flops: float | None
    """Dense operations of one call; None when unknown."""
    useful_flops: float | None = None
    """Operations that a mask leaves; None: all of them."""
    io_bytes: int
    """Inputs, parameters and outputs, once each."""
    useful_bytes: int | None = None
    """Those of them that a mask leaves, at the timed values; None without masks."""

    def __init__(self, loaded: LoadedProblem) -> None:
        self.loaded = loaded
        self.device: str = loaded.device
        self.precision: Precision = precision(loaded.problem.policy.precision)
        self.notes = []
        self.prepare_ms = {}
        self._compiles = False
        self.nonfinite = False
        """Whether NaN or Inf belong to the outputs on the problem's own values."""

    @property
    def timed_profile(self) -> str:
        """The value profile of timed calls: the one that the file names, else the first.

        Raises:
            ProblemError: the file names one that does not apply here.
        """
        wanted = self.loaded.timed_profile
        if wanted is None:
            return self.profiles[0]
        if wanted not in self.profiles:
            raise ProblemError(
                f"{self.loaded.problem.name}: timed_profile: expected one of "
                f"{', '.join(self.profiles)}, got {wanted!r}"
            )
        return wanted

    def skip_compiled(self) -> None:
        """Leave the compiled member out of the envelope: it takes seconds a shape."""
        self._compiles = False

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)

    @abstractmethod
    def draw(self, seed: int, profile: str, *, timed: bool = False) -> Draw:
        """Draw inputs and parameters; the same seed and profile give the same values."""

    @abstractmethod
    def redraw_inputs(self, draw: Draw, seed: int) -> None:
        """Write new values of the same distribution into the draw's own input tensors."""

    @abstractmethod
    def eager(self, draw: Draw) -> Outputs:
        """Run the reference in the problem's dtype; outputs flattened from nested structures."""

    @abstractmethod
    def golden(self, draw: Draw) -> Outputs:
        """Run the reference in float64; integer outputs stay integers."""

    @abstractmethod
    def envelope(self, draw: Draw) -> dict[str, Outputs]:
        """Return the outputs of legitimate implementations by name; `eager` is always there."""

    @abstractmethod
    def is_exact(self, profile: str) -> bool:
        """Whether outputs must equal the golden exactly under `profile`."""

    def rigour(self, profile: str, output: int) -> Rigour:
        """Return which rules hold on `profile` for an output: all, unless a kind says otherwise."""
        return Rigour.FULL

    @abstractmethod
    def baseline_names(self) -> tuple[str, ...]:
        """Return the baselines that this kind of problem has on this device."""

    @abstractmethod
    def baseline(self, name: str, draw: Draw) -> Callable[[], Any]:
        """Return a callable that runs the baseline on the draw's own tensors.

        Raises:
            ProblemError: the baseline does not apply, with the reason.
            InfraError: it failed to compile or run.
        """

    @abstractmethod
    def specs(self) -> Specs:
        """Return the specs of inputs, outputs and parameters at the nominal draw."""

    def eager_uses_tf32(self, draw: Draw) -> bool | None:
        """Return whether eager's convolutions round to TF32 on `draw`; None where none may."""
        return None

    @abstractmethod
    def degenerate(self) -> tuple[str, ...]:
        """Return the reasons why a speed-up on this problem would say nothing."""


STEPS_FRAC = 1e-4
"""Share of whole numbers in which eager may be off: rounding moves some over a step (`steps.py`).
A value v with a relative error e crosses one with probability 2 v e: 2e-6 at 30 of 127 steps in
float32."""


def unfit_reason(eager: Outputs, golden: Outputs) -> str | None:
    """Return why these values cannot judge a candidate, or None.

    They cannot when the golden or eager is not finite, when an integer output depends on rounding,
    or when eager itself is more than `MAX_CONDITIONING` off.
    """
    return broken_reason(eager, golden) or ill_reason(eager, golden)


def broken_reason(eager: Outputs, golden: Outputs, *, nonfinite: bool = False) -> str | None:
    """Return why these values cannot even tell a candidate that breaks down, or None."""
    for i, (got, want) in enumerate(zip(eager, golden, strict=True)):
        if not want.dtype.is_floating_point:
            if got.shape != want.shape or _share_of_differing(got, want) > STEPS_FRAC:
                return f"output {i} is not floating point and depends on rounding"
            continue
        void = void_reason(got, want, allowed=nonfinite)
        if void is not None:
            return f"output {i} {void}"
    return None


def _share_of_differing(got: Tensor, want: Tensor) -> float:
    return float((got != want).sum().item()) / max(1, want.numel())


def ill_reason(eager: Outputs, golden: Outputs) -> str | None:
    """Return where eager is more than `MAX_CONDITIONING` off, or None."""
    reasons = (ill_output(i, *pair) for i, pair in enumerate(zip(eager, golden, strict=True)))
    return next((reason for reason in reasons if reason is not None), None)


def ill_output(i: int, got: Tensor, want: Tensor) -> str | None:
    """Return that eager is more than `MAX_CONDITIONING` off in output `i`, or None."""
    if not want.dtype.is_floating_point:
        return None
    error, largest = error_stats(got, want).max_abs, size_stats(want).max_abs
    if error <= MAX_CONDITIONING * largest:
        return None
    return (
        f"output {i} is ill-conditioned: the reference is off by {error:.3g} "
        f"where its largest value is {largest:.3g}"
    )


def max_abs_difference(a: Tensor, b: Tensor) -> float:
    """Return max|a - b|, evaluated in float64, in pieces."""
    pairs = zip(a.reshape(-1).split(PIECE), b.reshape(-1).split(PIECE), strict=True)
    return max((float((x.double() - y.double()).abs().max()) for x, y in pairs), default=0.0)


def nbytes(tensors: Iterable[Any]) -> int:
    """Return the bytes of the tensors among `tensors`."""
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, Tensor))


def tensor_spec(name: str, tensor: Tensor) -> TensorSpec:
    """Describe one tensor."""
    return TensorSpec(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        strides=tuple(tensor.stride()),
    )


def output_specs(outputs: Outputs) -> tuple[TensorSpec, ...]:
    """Describe outputs as `output0`, `output1`, ..."""
    return tuple(tensor_spec(f"output{i}", t) for i, t in enumerate(outputs))


def specs_of(names: Iterable[str], draw: Draw, outputs: Outputs) -> Specs:
    """Describe the tensors among a draw's inputs, by these names, its outputs and its state."""
    pairs = zip(names, draw.inputs, strict=True)
    return (
        tuple(tensor_spec(n, t) for n, t in pairs if isinstance(t, Tensor)),
        output_specs(outputs),
        tuple(tensor_spec(n, t) for n, t in draw.state.items()),
    )
