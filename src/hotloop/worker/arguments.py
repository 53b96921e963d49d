"""Constructor and forward arguments as JSON: plain values only, structure kept."""

from __future__ import annotations

from typing import Any

import torch

from hotloop.worker.module_host import ContractError


def encode_args(values: Any) -> Any:
    """Encode constructor arguments (numbers, text, None, nested lists, tuples, dicts) as JSON.

    Raises:
        ContractError: an argument has no such form.
    """
    if isinstance(values, tuple):
        return {"tuple": [encode_args(v) for v in values]}
    if isinstance(values, list):
        return {"list": [encode_args(v) for v in values]}
    if isinstance(values, dict):
        return {"dict": [[k, encode_args(v)] for k, v in values.items()]}
    if isinstance(values, torch.dtype):
        return {"dtype": str(values).removeprefix("torch.")}
    if values is None or isinstance(values, (bool, int, float, str)):
        return {"value": values}
    raise ContractError(
        f"expected constructor arguments of plain values, got {type(values).__name__}"
    )


def decode_args(values: list[Any]) -> list[Any]:
    """Undo `encode_args` for each entry of a list."""
    return [_decode(v) for v in values]


def _decode(data: dict[str, Any]) -> Any:
    ((kind, value),) = data.items()
    if kind == "tuple":
        return tuple(_decode(v) for v in value)
    if kind == "list":
        return [_decode(v) for v in value]
    if kind == "dict":
        return {k: _decode(v) for k, v in value}
    if kind == "dtype":
        return getattr(torch, value)
    return value
