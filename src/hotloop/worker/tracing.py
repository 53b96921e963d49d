"""Run a function under make_fx and keep, for each operation, the line of the problem's file.

Tracing happens before dispatch, so that composite operations (softmax, layer_norm, linear) arrive
whole, not as the primitives they are made of.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from hotloop.core.problem import Problem
from hotloop.worker.attribution import current_line

_LINE = "hotloop_line"


class IndexByTensor(TorchFunctionMode):
    """Reads `table[q_idx]` as a gather.

    Plain indexing by a tensor without dimensions asks for its value, which neither a tracer nor
    vmap has; FlexAttention rewrites it in the same way.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`; indexing by integer tensors and numbers goes to `aten.index`."""
        if func is torch.Tensor.__getitem__ and _is_gather(args[1]):
            table, indices = args
            indices = indices if isinstance(indices, tuple) else (indices,)
            as_tensors = [
                i if isinstance(i, torch.Tensor) else torch.tensor(i, device=table.device)
                for i in indices
            ]
            return torch.ops.aten.index.Tensor(table, as_tensors)
        return func(*args, **(kwargs or {}))


class _NoteLines(TorchFunctionMode):
    """Marks whatever an operation records with the line that called it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self._problem = problem

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` with the current line of the problem's file as its annotation."""
        with fx_traceback.annotate({_LINE: current_line(self._problem)}):
            return func(*args, **(kwargs or {}))


def trace(
    problem: Problem, function: Callable[..., Any], args: tuple[Any, ...], *, fake: bool
) -> torch.fx.GraphModule:
    """Return the operations that `function(*args)` runs, as ATen calls before decomposition.

    Args:
        problem: Whose lines are noted (`line_of`).
        function: Its tensors, other than `args`, become constants of the result.
        args: Tensors, or nests of them.
        fake: Whether only shapes and dtypes are computed; nothing is allocated then.
    """

    def noted(*inner: Any) -> Any:
        with _NoteLines(problem), IndexByTensor():
            return function(*inner)

    tracer = make_fx(
        noted,
        tracing_mode="fake" if fake else "real",
        _allow_non_fake_inputs=True,
        pre_dispatch=True,
    )
    with warnings.catch_warnings(), torch.no_grad(), fx_traceback.preserve_node_meta():
        warnings.simplefilter("ignore")  # the file's own warnings: the reference run shows them
        return tracer(*args)


def line_of(node: torch.fx.Node) -> int | None:
    """Return the line of the problem's file that made a traced operation; None when unknown."""
    custom = node.meta.get("custom") or {}
    return custom.get(_LINE)


def _is_gather(index: Any) -> bool:
    indices = index if isinstance(index, tuple) else (index,)
    tensors = [i for i in indices if isinstance(i, torch.Tensor)]
    plain = all(isinstance(i, (torch.Tensor, int)) and not isinstance(i, bool) for i in indices)
    return bool(tensors) and plain and all(_is_index(t) for t in tensors)


def _is_index(tensor: torch.Tensor) -> bool:
    return not tensor.dtype.is_floating_point and tensor.dtype is not torch.bool
