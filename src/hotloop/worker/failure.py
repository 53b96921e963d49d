"""Exceptions of untrusted code as data: a kind from the exception's type, and its text."""

from __future__ import annotations

from typing import Any

import torch

from hotloop.worker.module_host import ContractError, user_traceback


def describe_error(exc: BaseException, folder: str) -> dict[str, Any]:
    """Return an exception of untrusted code as data."""
    if isinstance(exc, torch.OutOfMemoryError):
        kind = "oom_gpu"
    elif isinstance(exc, torch.AcceleratorError):
        kind = "cuda_error"
    elif isinstance(exc, MemoryError):
        kind = "oom_host"
    elif isinstance(exc, ContractError):
        kind = "contract"
    elif type(exc).__module__.startswith("triton.") and "Compil" in type(exc).__name__:
        kind = "compile_error"
    elif type(exc).__name__ in ("OutOfResources", "PTXASError"):
        kind = "compile_error"
    else:
        kind = "exception"
    return {
        "kind": kind,
        "type": type(exc).__name__,
        "message": str(exc)[:4000],
        "traceback": user_traceback(exc, folder),
    }
