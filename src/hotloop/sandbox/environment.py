"""The environment of an untrusted process: written from nothing, not cleaned from ours.

A variable that nobody thought of cannot leak, because only named ones pass. Give this dictionary to
the process at its start: /proc/PID/environ shows what it was started with, whatever it deletes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

INHERITED = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT",
    "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "NCCL_NVLS_ENABLE", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES", "TORCH_CUDA_ARCH_LIST", "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH", "CC", "CXX", "TZ", "SOURCE_DATE_EPOCH",
)  # fmt: skip
"""Names that may pass from our environment: where tools are and which device is ours."""

_DEFAULT_PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
_ONE_THREAD = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


def scrubbed_environment(work_dir: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the whole environment of a process that lives in `work_dir`.

    Tools are looked for where we look for them, and in the usual places after that; what the cage
    does not let it read is passed over. Homes and caches lie below `work_dir`, so that one
    candidate cannot poison the next one's caches; thread pools have one thread, because a process
    with threads cannot be forked safely nor enter a cage.

    Args:
        work_dir: absolute path; `enter` makes the temporary folder that is named here.
        extra: variables to add; they win.
    """
    cache = f"{work_dir}/cache"
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    environment |= {
        "PATH": f"{sys.prefix}/bin:{os.environ.get('PATH', os.defpath)}:{_DEFAULT_PATH}",
        "LANG": "C.UTF-8",
        "HOME": work_dir,
        "TMPDIR": temporary_folder(work_dir),
        "XDG_CACHE_HOME": cache,
        "TRITON_CACHE_DIR": f"{cache}/triton",
        "TRITON_HOME": work_dir,
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "TORCH_EXTENSIONS_DIR": f"{cache}/torch_extensions",
        "CUDA_CACHE_PATH": f"{cache}/cuda",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    environment |= dict.fromkeys(_ONE_THREAD, "1")
    return environment | dict(extra or {})


def temporary_folder(work_dir: str) -> str:
    """Return the temporary folder below a work folder."""
    return f"{work_dir}/tmp"
