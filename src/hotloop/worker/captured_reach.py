"""Refuse captured tensors that are smaller than the positions at which a modification reads them.

This runs on the CPU, before anything runs on a GPU: there, an index out of range is no exception
but the end of the process's context, and nothing says which tensor it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from hotloop.errors import ProblemError
from hotloop.worker.attribution import failing_line
from hotloop.worker.captured import Capture, captured_tensors
from hotloop.worker.load import LoadedProblem
from hotloop.worker.trace_check import draw_positions
from hotloop.worker.tracing import IndexByTensor


class _PastTheEnd(IndexError):
    """A tensor was read out of its range; the message names it where it is a captured one."""


class _WatchedIndexing(IndexByTensor):
    """Adds to an index error which captured tensor was read."""

    def __init__(self, names: Mapping[int, str]) -> None:
        super().__init__()
        self._names = names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`."""
        try:
            return super().__torch_function__(func, types, args, kwargs)
        except IndexError as exc:
            table = args[0]
            name = self._names.get(id(table))
            what = f"captured tensor {name!r}" if name else "a part of a captured tensor"
            raise _PastTheEnd(
                f"{what} of shape {tuple(table.shape)} is read past its end ({exc})"
            ) from exc


def check_reach(loaded: LoadedProblem) -> None:
    """Call score_mod and mask_mod at positions all over their range, with what they capture.

    Other errors than of indices are left to the reference, which runs the functions as they are.

    Raises:
        ProblemError: names the tensor, the line, the index and the sizes.
    """
    sizes = loaded.sizes
    if sizes is None:
        raise ProblemError(f"{loaded.problem.name}: expected an attention problem")
    for role, function in (("score_mod", loaded.score_mod), ("mask_mod", loaded.mask_mod)):
        if function is None:
            continue
        leaves = draw_positions(sizes, "cpu")
        if role == "mask_mod":
            leaves.pop("score")
        with _on_cpu(captured_tensors(iter((function,)))) as names, torch.no_grad():
            try:
                with _WatchedIndexing(names):
                    torch.vmap(lambda *a, f=function: torch.as_tensor(f(*a)))(*leaves.values())
            except _PastTheEnd as exc:
                line = failing_line(loaded.problem, exc)
                where = role if line is None else f"{role} line {line}"
                raise ProblemError(
                    f"{loaded.problem.name}: {where}: {exc}; make it as large as the positions: "
                    f"B {sizes.B}, H {sizes.H}, S {sizes.S}, Skv {sizes.Skv}"
                ) from exc
            except Exception:  # noqa: BLE001  the reference names what else is wrong
                continue


@contextmanager
def _on_cpu(captures: list[Capture]) -> Iterator[dict[int, str]]:
    """Put stand-ins on the CPU in the places of captured tensors; yield their names by id."""
    names: dict[int, str] = {}
    try:
        for capture in captures:
            tensor = _stand_in(capture.tensor)
            names[id(tensor)] = capture.name
            capture.replace(tensor)
        yield names
    finally:
        for capture in captures:
            capture.replace(capture.tensor)


def _stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """Return integers as they are, since they may be indices; of floats only the shape matters."""
    if tensor.is_floating_point():
        return torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
    return tensor.cpu()
