"""Dense tensors: what the judge can lay into its memory, fill and compare.

Sparse, quantised and nested tensors have no memory of one element each. Of floating-point types of
8 bits torch neither draws random numbers nor compares values, so that they may be parameters and
buffers, which keep their values, but neither arguments nor outputs. A file that has such tensors is
refused in one line, which says how to write it: forward may make and use them as it likes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.errors import ProblemError


def require_dense(what: str, tensor: Tensor, *, is_output: bool = False) -> None:
    """Refuse a tensor of a file that the judge cannot lay into its memory.

    Args:
        what: names it, such as `argument 0 of forward`.
        tensor: an argument, a parameter, a buffer or an output.
        is_output: whether forward returns it.

    Raises:
        ProblemError: says what it is and what to write in its place.
    """
    kind = kind_of(tensor)
    if kind is not None:
        advice = "return it dense" if is_output else "take its parts and build it in forward"
        raise ProblemError(f"{what} should be a dense tensor, got a {kind} one; {advice}")


def require_drawable(what: str, tensor: Tensor, *, is_output: bool = False) -> None:
    """Refuse an argument or output that the judge can neither draw nor compare.

    Args:
        what: names it.
        tensor: an argument or an output.
        is_output: whether forward returns it.

    Raises:
        ProblemError: says what it is and what to write in its place.
    """
    require_dense(what, tensor, is_output=is_output)
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        name = str(tensor.dtype).removeprefix("torch.")
        advice = "return bfloat16" if is_output else "take bfloat16 and convert it in forward"
        raise ProblemError(
            f"{what} should be of a type that torch draws and compares, got {name}; {advice}"
        )


def kind_of(tensor: Tensor) -> str | None:
    """Return what a tensor is that is not dense; None for one that is."""
    if tensor.is_quantized:
        return "quantised"
    if tensor.is_nested:
        return "nested"
    return None if tensor.layout is torch.strided else str(tensor.layout).removeprefix("torch.")
