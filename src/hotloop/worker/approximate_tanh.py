"""FlexAttention with the hardware's approximate tanh: what a kernel that uses it is compared with.

Inductor compiles `torch.tanh` to the exact function of libdevice. Inside `approximate_tanh` it
emits PTX's `tanh.approx.f32` instead, one instruction, as attention-gym's soft-cap with
`approx=True` does (attn_gym/mods/softcapping.py); the problem's own score_mod stays as it is.

A graph that was compiled with the exact function must not be taken for this one. `OPTIONS` make
the compiler another one to Dynamo, and keep its results out of the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.attention_math import Grid, Mods, over_grid

PTX = "tanh.approx.f32 $0, $1;"
OPTIONS = {"fx_graph_cache": False}
_TANH = torch.ops.aten.tanh.default
_IN_FLOAT32 = (torch.float32, torch.bfloat16, torch.float16)
"""Types whose values Inductor holds as float32 in registers. A score_mod sees a score that is
called a value of the queries' type there, and is the float32 accumulator."""

Lowering = Callable[..., Any]


class Swapped:
    """How often the approximate tanh was compiled into something."""

    used = 0


@contextmanager
def approximate_tanh(approximate: Lowering | None = None) -> Iterator[Swapped]:
    """Let what is compiled meanwhile use the approximate tanh, but for float64.

    Args:
        approximate: a lowering to use instead of the instruction, which needs an NVIDIA GPU.

    Yields:
        A counter; where it stays 0, nothing was compiled, or nothing had a tanh in it.
    """
    # Inductor is imported where something is compiled: it takes a second.
    from torch._inductor import lowering

    exact = lowering.lowerings[_TANH]
    fast = approximate or lowering.make_pointwise(_instruction)
    swapped = Swapped()

    def lower(x: Any) -> Any:
        if x.get_dtype() not in _IN_FLOAT32:
            return exact(x)
        swapped.used += 1
        return fast(x)

    lowering.lowerings[_TANH] = lower
    try:
        yield swapped
    finally:
        lowering.lowerings[_TANH] = exact


def uses_tanh(mods: Mods, device: str) -> bool:
    """Whether the score_mod calls tanh, in whichever way it is written."""
    if mods.score_mod is None:
        return False
    grid = Grid.ranges(torch.device(device), (0, 1), (0, 1), (0, 1), (0, 1))
    with _Seen() as seen:
        over_grid(mods.score_mod, grid, torch.zeros(1, 1, 1, 1, device=device))
    return seen.tanh


def _instruction(x: Any) -> Any:
    from torch._inductor.virtualized import ops

    return ops.inline_asm_elementwise(
        x, asm=PTX, constraints="=f,f", dtype=torch.float32, is_pure=True, pack=1
    )


class _Seen(TorchDispatchMode):
    """Whether a tanh went by."""

    tanh = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Tensor:
        if func is _TANH:
            self.tanh = True
        result: Tensor = func(*args, **(kwargs or {}))
        return result
