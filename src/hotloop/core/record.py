"""Frozen records and their JSON form.

Every noun is a frozen dataclass; `to_json` and `from_json` turn it into plain JSON values and back,
checked against its annotations. This is what crosses a process, the journal, or a socket. Standard
library only, because the worker has nothing else.

Covered: dataclasses, `StrEnum`, `str int float bool None`, `tuple[T, ...]`, `Mapping[str, T]`,
unions with `None`, and `JsonValue` for free-form evidence. Floats that JSON cannot hold (NaN, Inf)
are refused: absent is `None`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

JsonValue = Any
"""A JSON value: str, int, float, bool, None, or lists and dicts of them."""

T = TypeVar("T")


def to_json(value: Any) -> JsonValue:
    """Return `value` as plain JSON values.

    Half a surrogate pair, which JSON can carry but no file or database can, becomes `?`.

    Raises:
        ValueError: a float is NaN or infinite, or a type has no JSON form.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"expected a finite number, got {value!r}; use None for 'absent'")
        return value
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    raise ValueError(f"expected a JSON-able value, got {type(value).__name__}")


def from_json(cls: type[T], data: JsonValue) -> T:
    """Rebuild a record of type `cls` from `to_json`'s output.

    Raises:
        ValueError: a field is missing, unknown, or of another type.
    """
    try:
        return typing.cast(T, _converter(typing.cast("Any", cls))(data))
    except (ValueError, TypeError, KeyError):
        # The slow way says which field it is.
        return typing.cast(T, _convert(cls, data, cls.__name__))


def dumps(value: Any) -> str:
    """Return the canonical JSON text (sorted keys, no spaces) of a record or JSON value."""
    return json.dumps(to_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical JSON text."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:16]


_Converter = Callable[[Any], Any]


@cache
def _converter(kind: Any) -> _Converter:
    """Return what converts a value as `_convert` does, made once for each type.

    It raises ValueError, TypeError or KeyError where `_convert` raises ValueError, without saying
    where. A journal has thousands of records of a few types.
    """
    origin = typing.get_origin(kind)
    if kind is Any:
        return lambda data: data
    if origin in (types.UnionType, typing.Union):
        return _union_converter(typing.get_args(kind))
    if origin is tuple:
        item = _converter(typing.get_args(kind)[0])
        return lambda data: tuple(map(item, _expect(data, (list, tuple))))
    if origin is not None and issubclass(origin, Mapping):
        value = _converter(typing.get_args(kind)[1])
        return lambda data: {str(k): value(v) for k, v in _expect(data, Mapping).items()}
    if dataclasses.is_dataclass(kind):
        return _record_converter(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    return lambda data: data if type(data) is kind else _convert_scalar(kind, data, "")


def _record_converter(kind: Any) -> _Converter:
    fields: dict[str, _Converter] = {}

    def convert(data: Any) -> Any:
        if not fields:  # not before: a record may have a field of its own type
            fields.update({name: _converter(hint) for name, hint in _hints(kind).items()})
        return kind(**{k: fields[k](v) for k, v in _expect(data, Mapping).items()})

    return convert


def _union_converter(args: tuple[Any, ...]) -> _Converter:
    others = [_converter(arg) for arg in args if arg is not type(None)]
    may_be_none = len(others) < len(args)

    def convert(data: Any) -> Any:
        if data is None and may_be_none:
            return None
        for other in others[:-1]:
            try:
                return other(data)
            except (ValueError, TypeError, KeyError):
                continue
        return others[-1](data)

    return convert


def _expect(data: Any, kind: Any) -> Any:
    if not isinstance(data, kind):
        raise ValueError("expected another kind of value")
    return data


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _convert(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any:
        return data
    if origin in (types.UnionType, typing.Union):
        return _convert_union(kind, data, where)
    if origin is tuple:
        if not isinstance(data, (list, tuple)):
            raise ValueError(f"{where}: expected a list, got {type(data).__name__}")
        item = typing.get_args(kind)[0]
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise ValueError(f"{where}: expected an object, got {type(data).__name__}")
        item = typing.get_args(kind)[1]
        return {str(k): _convert(item, v, f"{where}.{k}") for k, v in data.items()}
    if dataclasses.is_dataclass(kind):
        return _convert_record(kind, data, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(data)
    return _convert_scalar(kind, data, where)


def _convert_union(kind: Any, data: Any, where: str) -> Any:
    args = typing.get_args(kind)
    if data is None and type(None) in args:
        return None
    problems = []
    for arg in args:
        if arg is type(None):
            continue
        try:
            return _convert(arg, data, where)
        except ValueError as exc:
            problems.append(str(exc))
    raise ValueError("; ".join(problems) or f"{where}: got null")


def _convert_record(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected an object, got {type(data).__name__}")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise ValueError(f"{where}: unknown fields {unknown}; known: {sorted(fields)}")
    hints = _hints(kind)
    values = {k: _convert(hints[k], v, f"{where}.{k}") for k, v in data.items()}
    try:
        return kind(**values)
    except TypeError as exc:
        raise ValueError(f"{where}: {exc}") from exc


def _convert_scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{where}: expected {kind.__name__}, got {type(data).__name__}")
    return data
