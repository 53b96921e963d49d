"""The oracle's side of a kernel: load it and run it on one case, on a CPU or a GPU."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from benchmarks.mutation.oracle_reference import OracleCase, OracleProblem, outputs_of


class InputModified(Exception):
    """A forward wrote into its arguments."""


class Kernel(Protocol):
    """A kernel that was loaded."""

    def run(
        self, init_args: Sequence[Any], inputs: list[Any], state: dict[str, Tensor]
    ) -> list[Tensor]:
        """Return the outputs; inputs and state lie on the kernel's device."""


def load_kernel(source: str, language: str, device: str) -> Kernel:
    """Load a kernel file; any failure is the kernel's.

    Args:
        source: its text.
        language: `triton` or `cuda`.
        device: where it runs; CUDA sources run on `cuda` alone.
    """
    if language == "cuda":
        from benchmarks.mutation.oracle_cuda import CudaKernel

        return CudaKernel(source)
    return TritonKernel(source, device)


def run(kernel: Kernel, problem: OracleProblem, case: OracleCase, device: str) -> list[Tensor]:
    """Run a kernel on copies of a case's inputs and parameters; returns outputs on the CPU.

    Raises:
        InputModified: it wrote into an input.
    """
    inputs = [_copy(v, device) for v in case.inputs]
    state = {name: _copy(value, device) for name, value in case.state.items()}
    with torch.no_grad():
        outputs = [o.cpu() for o in kernel.run(problem.init_args, inputs, state)]
    for kept, given in zip(case.inputs, inputs, strict=True):
        if isinstance(kept, Tensor) and not torch.equal(kept, given.cpu()):
            raise InputModified("an input was modified")
    return outputs


def _copy(value: Any, device: str) -> Any:
    return value.to(device, copy=True) if isinstance(value, Tensor) else value


class TritonKernel:
    """A kernel file's `ModelNew`."""

    def __init__(self, source: str, device: str) -> None:
        self._device = device
        self._module = _imported(source)

    def run(
        self, init_args: Sequence[Any], inputs: list[Any], state: dict[str, Tensor]
    ) -> list[Tensor]:
        """Run a forward of a new model that has these parameters and buffers."""
        with torch.device(self._device):
            model = self._module.ModelNew(*init_args).to(self._device)
        mapping = {ref: own for own, ref in getattr(self._module, "PARAMETERS", {}).items()}
        for name, value in state.items():
            _set(model, mapping.get(name, name), value)
        if hasattr(model, "prepare"):
            model.prepare()
        return outputs_of(model(*inputs))


def _imported(source: str) -> Any:
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    path = folder / "mutant_kernel.py"
    path.write_text(source, encoding="utf-8")
    try:
        spec = importlib.util.spec_from_file_location("mutant_kernel", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["mutant_kernel"] = module
        spec.loader.exec_module(module)
    finally:
        path.unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()
    return module


def _set(model: torch.nn.Module, dotted: str, value: Tensor) -> None:
    *path, leaf = dotted.split(".")
    owner: Any = model
    for part in path:
        owner = getattr(owner, part, None)
    if owner is None:
        return
    if leaf in owner._parameters:
        owner._parameters[leaf] = torch.nn.Parameter(value, requires_grad=False)
    elif leaf in owner._buffers:
        owner._buffers[leaf] = value
