"""Look a candidate's kernels up in Triton's cache as a real launch on an sm_90 GPU would.

A program for `test_build_triton.py`, with the work folder of `build_cases.py` as its argument and
the input descriptions by candidate name on standard input. It knows nothing of the compile lane:
the forward runs on real tensors (in host memory, which is aligned to 64 bytes), through Triton's
own `CudaDriver`; only what needs libcuda is replaced, by the numbers an H200 gives. Prints, per
candidate, the cache hash of each kernel looked up and whether it was found. With a second argument,
`cuda`, nothing is replaced: real tensors in device memory, a real driver, real launches.
"""

# ruff: noqa: E402  the environment decides how triton is imported

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
FOLDER = Path(sys.argv[1])
ON_GPU = sys.argv[2:] == ["cuda"]
os.environ["TRITON_CACHE_DIR"] = str(FOLDER / "cache")

import torch
import triton
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime.autotuner import Autotuner

LOOKED_UP: list[dict[str, Any]] = []


def listen(*, src: Any, metadata: Any, cache_hit: bool, **_: Any) -> None:
    LOOKED_UP.append({"name": metadata["name"], "cache_key": metadata["hash"], "hit": cache_hit})


def sm90_driver() -> CudaDriver:
    driver = object.__new__(CudaDriver)
    driver.get_current_device = lambda: 0
    driver.get_current_stream = lambda device: 0
    driver.get_device_capability = lambda device: (9, 0)
    driver.launcher_cls = lambda src, metadata: lambda *launch: None
    driver.utils = SimpleNamespace(
        get_device_properties=lambda device: {"max_shared_mem": 232448},
        load_binary=lambda name, cubin, shared, device: (None, 0, 32, 0, 1024),
    )
    return driver


def tensor(slot: dict[str, Any]) -> torch.Tensor:
    device = "cuda" if ON_GPU else "cpu"
    return torch.zeros(slot["shape"], dtype=getattr(torch, slot["dtype"]), device=device)


def run_once(kernel_call: Any, **_: Any) -> list[float]:
    kernel_call()
    return [0.0, 0.0, 0.0]


def main() -> None:
    if not ON_GPU:
        triton.runtime.driver.set_active(sm90_driver())
    triton.knobs.compilation.listener = listen
    Autotuner.do_bench = property(lambda self: run_once)
    requests = json.loads(sys.stdin.read())
    found: dict[str, list[dict[str, Any]]] = {}
    for name, slots in requests.items():
        LOOKED_UP.clear()
        spec = importlib.util.spec_from_file_location("anything", FOLDER / name / "kernel.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with torch.no_grad():
            module.ModelNew()(*(tensor(entry["slot"]) for entry in slots))
        found[name] = list(LOOKED_UP)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
