"""Exceptions of untrusted code as data: a kind from the exception's type, and its text."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

from hotloop.worker.cudriver import OUT_OF_MEMORY, CudaDriverError
from hotloop.worker.faults import OutOfBoundsError, UnsupportedInInterpreterError, cause_of
from hotloop.worker.launch_description import LaunchDescriptionError
from hotloop.worker.module_host import ContractError

_KINDS: tuple[tuple[str, tuple[type[BaseException], ...]], ...] = (
    ("oom_gpu", (torch.OutOfMemoryError,)),
    ("cuda_error", (torch.AcceleratorError, CudaDriverError)),
    ("oom_host", (MemoryError,)),
    ("contract", (ContractError, LaunchDescriptionError)),
    ("out_of_bounds", (OutOfBoundsError,)),
    ("needs_gpu", (UnsupportedInInterpreterError,)),
    ("compile_error", (CompilationError, OutOfResources, PTXASError)),
)
"""The first entry that the exception is an instance of names its kind."""
TRITON_DRIVER = "Triton Error [CUDA]: "
"""How a `RuntimeError` of Triton's launcher begins, which has no type of its own: a launch after
another one's fault fails with that fault. The driver's words for it follow."""


def describe_error(exc: BaseException, folder: str) -> dict[str, Any]:
    """Return an exception of untrusted code as data: `kind`, `type`, `message`, `traceback`.

    Args:
        exc: what escaped.
        folder: the candidate's folder; the traceback shows the frames in there only.
    """
    cause = cause_of(exc)
    reached = own_frames(exc, folder) if cause is not exc else ""  # an interpreted kernel
    summary = "".join(traceback.format_exception_only(cause))
    described: dict[str, Any] = {
        "kind": "compile_error" if _is_no_python(cause, folder) else _kind(cause),
        "type": type(cause).__name__,
        "message": str(cause).replace(folder.rstrip(os.sep) + os.sep, "")[:4000],
        "traceback": (reached + own_frames(cause, folder) + summary)[-6000:],
    }
    if isinstance(cause, (CompilationError, PTXASError)):
        described |= _refusal(cause, folder)
    if isinstance(cause, SyntaxError) and _is_no_python(cause, folder):
        described["line"] = cause.lineno
    return described


def _is_no_python(exc: BaseException, folder: str) -> bool:
    """Whether a file of the candidate cannot be parsed; text that it made up itself is no file."""
    prefix = folder.rstrip(os.sep) + os.sep
    return isinstance(exc, SyntaxError) and str(exc.filename or "").startswith(prefix)


def _refusal(cause: BaseException, folder: str) -> dict[str, Any]:
    """Return what a compiler that refused a kernel at run time says, with the candidate's line."""
    from hotloop.worker.compile_error import describe_refusal  # compiler stand-ins: rarely needed

    prefix = folder.rstrip(os.sep) + os.sep
    files = [str(getattr(m, "__file__", None) or "") for m in list(sys.modules.values())]
    own = [Path(file) for file in dict.fromkeys(files) if file.startswith(prefix)]
    found = [describe_refusal(cause, path) for path in own or [Path(folder) / "kernel.py"]]
    return next((refusal for refusal in found if "line" in refusal), found[0])


def own_frames(exc: BaseException, folder: str) -> str:
    """Return the frames of the traceback that lie in `folder`, innermost last, as Python does.

    What the candidate called in turn, and where this machine keeps its packages, is not shown.
    """
    prefix = folder.rstrip(os.sep) + os.sep
    frames = traceback.extract_tb(exc.__traceback__)
    return "".join(
        f'  File "{frame.filename.removeprefix(prefix)}", line {frame.lineno}, in {frame.name}\n'
        f"    {frame.line}\n"
        for frame in frames
        if frame.filename.startswith(prefix)
    )


def _kind(exc: BaseException) -> str:
    if isinstance(exc, CudaDriverError) and exc.code == OUT_OF_MEMORY:
        return "oom_gpu"
    if isinstance(exc, RuntimeError) and str(exc).startswith(TRITON_DRIVER):
        return "oom_gpu" if "out of memory" in str(exc) else "cuda_error"
    return next((kind for kind, types in _KINDS if isinstance(exc, types)), "exception")
