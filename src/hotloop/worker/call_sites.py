"""Call sites: whose code is at work, told by the file that a frame's code came from.

That a kernel runs is a flag, and a candidate's code may run meanwhile: a hook, a method of an
argument, a property, or the flag was forged. So what torch does inside a launch is only taken for
the kernel's where the code that asked for it is the interpreter's.

A file's name is forged by replacing a function's code, which `frame_reads.py` refuses.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch
import triton

_TORCH = f"{Path(torch.__file__).parent}/"
_TRITON = f"{Path(triton.__file__).parent}/"
_WORKER = f"{Path(__file__).parent}/"
_HOTLOOP = f"{Path(__file__).parent.parent}/"
_PATHS = sysconfig.get_paths()
_INSTALLED = ("*.dist-info", "*.egg-info")
_candidates: list[str] = []


def _package_folders() -> Iterator[str]:
    yield from (_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    # Installed for one user, for the whole system, or into a folder of PYTHONPATH.
    for entry in filter(os.path.isabs, sys.path):
        if any(True for pattern in _INSTALLED for _ in Path(entry).glob(pattern)):
            yield entry.rstrip("/")


LIBRARIES = tuple({f"{folder}/" for folder in _package_folders()})
"""Folders of installed packages and of Python's own modules."""
_BETWEEN = frozenset(
    f"{_WORKER}{name}.py" for name in ("dispatched", "fake_device", "host_reads", "library_calls")
)
"""Stand between a call of torch's and whoever made it."""
_LAUNCHING = f"{_WORKER}interpreter.py"
"""Asks arguments for their memory: a property of theirs may be anything."""


def is_librarys(code: CodeType) -> bool:
    """Whether code is Python's own, an installed package's or the judge's."""
    return is_librarys_file(code.co_filename)  # codes of two files may be equal


@cache
def is_librarys_file(name: str) -> bool:
    """Whether code of a file of that name is."""
    if name.startswith(tuple(_candidates)):
        return False
    return name.startswith((*LIBRARIES, _TORCH, _TRITON, _HOTLOOP, "<frozen "))


def take_folder(folder: Path) -> None:
    """Say where the candidate's files are, which may be below a folder of libraries."""
    _candidates.append(f"{folder}/")
    is_librarys_file.cache_clear()


def is_kernels(frame: FrameType | None, *, is_work: bool) -> bool:
    """Whether what torch is asked for inside a launch is the interpreter's, or the watch's.

    Args:
        frame: that asks.
        is_work: whether it is more than moving the arguments, which Triton itself does.
    """
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _LAUNCHING or name.startswith(_TRITON):
            return not is_work
        if not name.startswith(_TORCH) and name not in _BETWEEN:
            return name.startswith(_WORKER)
        frame = frame.f_back
    return False
