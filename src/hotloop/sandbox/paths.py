"""Which paths a Python with torch needs, on a CPU and on one GPU.

Everything else is closed: homes, other users' temporary files, the other GPUs. /proc is readable
(libraries look there) and never writable; Landlock and the dropped capabilities keep the memory and
the environment of other processes shut. At T1 their names and command lines stay visible, and so
does whether a hidden path exists: put no secret into an argument or a file name.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from typing import NamedTuple

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/opt", "/proc", "/sys")
_READ_DEVICES = ("/dev/zero", "/dev/urandom", "/dev/random")
_CUDA_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


class CagePaths(NamedTuple):
    """Paths for `CageSpec.read_paths` and `CageSpec.write_paths`."""

    read: tuple[str, ...]
    write: tuple[str, ...]


def default_paths(gpu: int | None, extra_read: Iterable[str] = ()) -> CagePaths:
    """Return what this interpreter with its packages needs, and the nodes of one GPU.

    Args:
        gpu: index of the GPU; None gives no device but null, zero and random.
        extra_read: further absolute paths to read, such as headers.
    """
    read = [*_SYSTEM, *_python_paths(), *_READ_DEVICES, *extra_read]
    write = ["/dev/null"]
    if gpu is not None:
        read += [os.environ[name] for name in _CUDA_VARIABLES if os.environ.get(name)]
        write += [
            "/dev/nvidiactl", f"/dev/nvidia{gpu}", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
            "/dev/nvidia-caps", "/proc/self/task",
        ]  # fmt: skip
    return CagePaths(_distinct(read), _distinct(write))


def _python_paths() -> list[str]:
    """Return the interpreter, the virtual environment, the packages and hotloop itself."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    schemes = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = [sysconfig.get_path(name) for name in schemes]
    return [sys.prefix, sys.base_prefix, *installed, *site.getsitepackages(), package]


def _distinct(paths: list[str]) -> tuple[str, ...]:
    """Drop paths that lie below another one of the list: a right holds for everything below."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(p) for p in paths}):
        if not any(path.startswith(f"{k}/") for k in kept):
            kept.append(path)
    return tuple(kept)
