"""Load a candidate's module and bind the judge's tensors to it. Untrusted code runs here.

The module is written to the work folder (Triton reads kernel sources from files) and executed once.
Parameters and buffers are set by the reference's names, zero-copy: what the judge writes into the
arena is what the kernel reads.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hotloop.worker.dense_tensors import kind_of

STATISTICS = "running_"
"""How torch's layers name buffers that batches leave behind, which forward may do without."""


class ContractError(Exception):
    """The candidate does not keep its contract; the message says which part."""


@dataclass(slots=True)
class HostedModel:
    """A constructed ModelNew."""

    module: Any
    model: torch.nn.Module
    names: dict[str, str]
    """Reference name -> own name."""

    def bind(self, state: Mapping[str, torch.Tensor], *, buffers_alike: bool = False) -> None:
        """Set parameters and buffers by the reference's names; unknown ones are left out.

        Args:
            state: the reference's tensors.
            buffers_alike: whether registered buffers have to be like the reference's, as parameters
                always have. One that is registered as None takes what comes.

        Raises:
            ContractError: a parameter or such a buffer has another shape or dtype; or one of the
                reference's has no place here, and a parameter that is like it has another name.
        """
        given = {self.names.get(name, name): tensor for name, tensor in state.items()}
        left = [
            own
            for own, tensor in given.items()
            if not _set_by_name(self.model, own, tensor, buffers_alike=buffers_alike)
            and not own.rpartition(".")[2].startswith(STATISTICS)
        ]
        for name, parameter in self.model.named_parameters():
            lost = next((own for own in left if _is_like(parameter, given[own])), None)
            if name not in given and lost is not None:
                raise ContractError(
                    f"parameter {name!r}: nothing sets it, since parameters are set by the "
                    f"reference's names and {lost!r}, of the same shape, has no place here; name "
                    f"it {lost!r}, or add PARAMETERS = {{{name!r}: {lost!r}}} to the file (and "
                    "register what is no parameter of the reference as a buffer)"
                )

    def prepare(self) -> None:
        """Say that parameters and buffers have new values, and run the optional `prepare()`.

        They are written from another process: what counts their versions here has to be told.
        """
        for tensor in (*self.model.parameters(), *self.model.buffers()):
            if not tensor.is_inference():  # it has no version
                torch.autograd.graph.increment_version(tensor)
        prepare = getattr(self.model, "prepare", None)
        if callable(prepare):
            prepare()


def write_sources(folder: Path, sources: Sequence[Mapping[str, str]]) -> None:
    """Write a candidate's files below `folder`.

    Raises:
        ContractError: a path is absolute or leaves the folder.
    """
    for source in sources:
        path = Path(source["path"])
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ContractError(f"expected a relative path inside the candidate, got {str(path)!r}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source["text"], encoding="utf-8")


def import_file(path: Path, pins: Mapping[str, Any]) -> Any:
    """Execute a candidate's entry file as a module and pin its declared tunables."""
    name = "hotloop_candidate"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError(f"expected a Python file, got {path.name!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    for key, value in pins.items():
        setattr(module, key, value)
    return module


def host_model(module: Any, init_args: Sequence[Any], device: str) -> HostedModel:
    """Construct `ModelNew(*init_args)` on `device`.

    Raises:
        ContractError: there is no ModelNew, or it is no `nn.Module`.
    """
    cls = getattr(module, "ModelNew", None)
    if not isinstance(cls, type) or not issubclass(cls, torch.nn.Module):
        raise ContractError("expected a class `ModelNew(torch.nn.Module)` in the entry file")
    with torch.device(device):
        model = cls(*init_args)
    mapping = getattr(module, "PARAMETERS", {})
    if not isinstance(mapping, Mapping):
        raise ContractError("expected PARAMETERS to map own names to the reference's names")
    names = {str(reference): str(own) for own, reference in mapping.items()}
    return HostedModel(module, model.requires_grad_(False), names)


def _set_by_name(
    model: torch.nn.Module, dotted: str, tensor: torch.Tensor, *, buffers_alike: bool
) -> bool:
    """Set a parameter or a buffer; return whether there is one of that name."""
    *path, leaf = dotted.split(".")
    owner: Any = model
    for part in path:
        owner = getattr(owner, part, None)
        if not isinstance(owner, torch.nn.Module):
            return False
    if leaf in owner._parameters:
        _check_alike(f"parameter {dotted!r}", owner._parameters[leaf], tensor)
        owner._parameters[leaf] = torch.nn.Parameter(tensor, requires_grad=False)
    elif leaf in owner._buffers:
        if buffers_alike:
            _check_alike(f"buffer {dotted!r}", owner._buffers[leaf], tensor)
        owner._buffers[leaf] = tensor
    return leaf in owner._parameters or leaf in owner._buffers


def _is_like(own: torch.Tensor, tensor: torch.Tensor) -> bool:
    return own.shape == tensor.shape and own.dtype == tensor.dtype


def _check_alike(what: str, own: torch.Tensor | None, tensor: torch.Tensor) -> None:
    if own is not None and not _is_like(own, tensor):
        raise ContractError(
            f"{what}: expected {tuple(tensor.shape)} {tensor.dtype}, as the reference has it, "
            f"got {tuple(own.shape)} {own.dtype}; register it like that"
        )


def flatten_outputs(result: Any, device: str | torch.device) -> list[torch.Tensor]:
    """Return the tensors of a forward's result, nested structures flattened.

    None is left out, and Python's numbers become tensors on `device`, as with the reference.

    Raises:
        ContractError: something in it is no plain tensor.
    """
    outputs: list[torch.Tensor] = []
    for leaf in torch.utils._pytree.tree_leaves(result):
        if leaf is None:
            continue
        if type(leaf) in (bool, int, float):
            leaf = torch.tensor(leaf, device=device)
        if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
            raise ContractError(
                f"expected forward to return plain tensors, got {type(leaf).__name__}"
            )
        kind = kind_of(leaf)
        if kind is not None:
            raise ContractError(f"expected forward to return dense tensors, got a {kind} one")
        outputs.append(leaf)
    return outputs
