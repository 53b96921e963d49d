"""Baselines: what a candidate's speed is compared with, as callables on the judge's own tensors.

Models: `eager`, `compile`, `compile_max_autotune`. Attention: `eager` (uncompiled FlexAttention),
`flex` and `flex_max_autotune` (compiled, with a block mask where there is a mask), both again with
the approximate tanh where a score_mod has one (`flex_approx`, `flex_approx_max_autotune`),
`flex_flash` (FlexAttention's FLASH back end), `sdpa_flash` and `cudnn` for plain and causal
attention. Over a paged cache `flex` reads the pages in place (PyTorch's `PagedAttention`), and
`flex_gather` first copies them into their order, as `eager` does. Sigmoid attention, which
FlexAttention has not, has `eager` and `compile` of the formula.

`max-autotune` runs without CUDA graphs: times are kernel times, and a graph would copy its inputs.
Nothing here measures; the block mask is timed because it is made here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch._dynamo
import torch._inductor

from hotloop.core.units import s_to_ms
from hotloop.errors import InfraError, ProblemError
from hotloop.worker.module_runner import bind, quiet
from hotloop.worker.precision import Precision, applied

MODEL_BASELINES = ("eager", "compile", "compile_max_autotune")
APPROXIMATE_BASELINES = ("flex_approx", "flex_approx_max_autotune")
"""With the approximate tanh; where there is a tanh."""
FLASH_BASELINE = "flex_flash"
GATHER_BASELINE = "flex_gather"
"""Of a paged cache."""
ATTENTION_BASELINES = (
    "eager",
    "flex",
    "flex_max_autotune",
    GATHER_BASELINE,
    *APPROXIMATE_BASELINES,
    FLASH_BASELINE,
    "sdpa_flash",
    "cudnn",
)
SIGMOID_BASELINES = ("eager", "compile")

_TUNED = "max-autotune-no-cudagraphs"
# One judge compiles many problems through the same FlexAttention frame. At the default limit of 8
# torch silently runs the rest uncompiled, and a baseline would look slow.
torch._dynamo.config.recompile_limit = 1 << 12
torch._dynamo.config.accumulated_recompile_limit = 1 << 14


def require(name: str, known: tuple[str, ...]) -> None:
    """Check that a baseline exists here.

    Raises:
        ProblemError: it does not.
    """
    if name not in known:
        raise ProblemError(f"expected a baseline of {list(known)}, got {name!r}")


def one_line(exc: BaseException) -> str:
    """Return an exception as one line of at most 300 characters."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())}"[:300]


class CompiledModel:
    """A module compiled in the default mode, for many draws; compiles at its first call."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._fast = torch.compile(model, dynamic=False)

    def run(self, state: dict[str, torch.Tensor], arguments: tuple[Any, ...]) -> Any:
        """Run it with a draw's parameters."""
        bind(self._model, state)
        with torch.no_grad(), quiet():
            return self._fast(*arguments)


def compiled(
    function: Callable[..., Any], name: str, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return `function` compiled in the mode of baseline `name`.

    Args:
        function: what is compiled at its first call.
        name: `..._max_autotune` or another one.
        options: of inductor, beside those of the mode.
    """
    mode = _mode(name)
    if options is None:
        return torch.compile(function, dynamic=False, fullgraph=True, mode=mode)
    # torch takes a mode or options; a mode stands for options
    of_mode = torch._inductor.list_mode_options(mode) if mode else {}
    return torch.compile(function, dynamic=False, fullgraph=True, options={**of_mode, **options})


def _mode(name: str) -> str | None:
    return _TUNED if name.endswith("_max_autotune") else None


def model_baseline(
    name: str, model: Any, arguments: Callable[[], tuple[Any, ...]], policy: Precision
) -> Callable[[], Any]:
    """Return a callable that runs `model`, compiled unless `name` is `eager`.

    Args:
        name: one of `MODEL_BASELINES`.
        model: a module already bound to the draw's state.
        arguments: returns forward's arguments.
        policy: precision flags of every call.
    """
    if name == "eager":
        return ready(name, lambda: model(*arguments()), policy)
    fast = torch.compile(model, dynamic=False, mode=_mode(name))
    return ready(name, lambda: fast(*arguments()), policy)


def ready(name: str, call: Callable[[], Any], policy: Precision) -> Callable[[], Any]:
    """Run `call` once, so that compilation is over, and return it with its precision flags.

    Raises:
        InfraError: it failed.
    """

    def run() -> Any:
        with applied(policy), torch.no_grad():
            return call()

    try:
        with quiet():
            run()
    except Exception as exc:  # noqa: BLE001  compilers raise anything; the reason is reported
        raise InfraError(f"baseline {name!r} failed: {one_line(exc)}") from exc
    return run


def timed_ms(function: Callable[[], Any], device: str) -> tuple[Any, float]:
    """Return the result of the second of two calls, and its wall time in milliseconds."""
    function()
    _synchronize(device)
    start = time.perf_counter()
    result = function()
    _synchronize(device)
    return result, s_to_ms(time.perf_counter() - start)


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
