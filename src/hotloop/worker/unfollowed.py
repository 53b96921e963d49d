"""Why a forward could not be followed to its end on tensors without data: whose gap it was.

An error in the candidate's own lines is the candidate's. One that torch, Triton or a stand-in of
ours raises may be a part of CUDA that is not there without a GPU, and one about missing CUDA is:
neither can be held against the candidate before it has run on a GPU.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import torch
import triton

from hotloop.worker.fake_tensors import NEEDS_DATA

DATA_DEPENDENT = "data_dependent"
"""Forward branches on values."""
IN_LIBRARY = "in_library"
"""Raised by torch, Triton or a stand-in, or for want of CUDA."""
OWN = "not_followed"
"""Raised by the candidate's own lines."""

_LIBRARIES = tuple(
    f"{Path(str(file)).resolve().parent}/" for file in (torch.__file__, triton.__file__, __file__)
)
_NO_CUDA = re.compile(
    r"requires CUDA|not compiled with CUDA|CUDA (?:is )?not (?:available|enabled|supported)"
    r"|No CUDA GPUs|no NVIDIA driver|CUDA driver|dummy base class|NVTX functions",
    re.IGNORECASE,
)
_WRONG_CALL = re.compile(
    r"\(\) (?:missing|takes|got an unexpected keyword|got multiple values)"
    r"|Keyword argument \w+ was specified but unrecogni[sz]ed"
)
"""A call or a launch that does not fit its function: with a GPU it would not either."""
_STANDINS = __name__.rpartition(".")[0]


def why_unfollowed(error: BaseException) -> str:
    """Return `data_dependent`, `in_library` or `not_followed` for what ended a forward."""
    if isinstance(error, NEEDS_DATA):
        return DATA_DEPENDENT
    if isinstance(error, (TypeError, KeyError)) and _WRONG_CALL.search(str(error)):
        return OWN
    if isinstance(error, AttributeError) and isinstance(error.obj, torch.nn.Module):
        return OWN  # of its own model, which torch's `Module.__getattr__` raises for it
    frames = traceback.extract_tb(error.__traceback__)
    innermost = str(Path(frames[-1].filename).resolve()) if frames else ""
    if innermost.startswith(_LIBRARIES) or _NO_CUDA.search(str(error)) or _lacks(error):
        return IN_LIBRARY
    return OWN


def _lacks(error: BaseException) -> bool:
    """Whether a stand-in of ours has not an attribute that the real object may have."""
    of = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    return type(of).__module__.startswith(f"{_STANDINS}.")
