"""Dispatched: operators as the dispatcher holds them, whatever their Python objects say.

A dispatch mode is given a Python object for each operator, and anybody may write its attributes:
another name, another schema, another function to call. So only the schema's name is taken from it,
and what runs is what the dispatcher has under that name: an object that says `view` moves values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from hotloop.worker.census import NO_ARITHMETIC

NAMESPACES = frozenset({"aten", "prim", "prims", "mkldnn", "mkl", "sparse", "quantized"})
"""Of torch's own operators, whose names are known without them."""
_STATISTICS = frozenset({"running_mean", "running_var"})
"""Arguments that training writes, though the schemas of most normalisations do not say so."""
# Bound before a candidate can put others in their place.
_find = torch._C._get_operation_overload
_schema_of = torch._C._get_schema
_handle_of = torch._C._dispatch_find_schema_or_throw
_Schema = torch._C.FunctionSchema
_name: Callable[[Any], str] = vars(_Schema)["name"].fget
_overload: Callable[[Any], str] = vars(_Schema)["overload_name"].fget


@dataclass(frozen=True, slots=True)
class Dispatched:
    """One operator."""

    packet: str
    """With its namespace, without its overload: `aten::roll`."""
    overload: str
    run: Callable[..., Any]
    names: tuple[str, ...]
    """Of its arguments, in order."""
    written: frozenset[str]
    """Arguments that it writes."""
    is_mutable: bool

    @property
    def name(self) -> str:
        """The name, without its namespace where that is one of `NAMESPACES`."""
        namespace, _, name = self.packet.partition("::")
        return name if namespace in NAMESPACES else self.packet

    @property
    def is_work(self) -> bool:
        """Whether it does more than move values or make them."""
        return self.name.rstrip("_") not in NO_ARITHMETIC

    def redispatch(self, key: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the body that the dispatcher has for a key."""
        handle = _handle_of(self.packet, self.overload)
        return handle.redispatch_boxed(torch._C.DispatchKeySet(key), *args, **kwargs)


_known: dict[tuple[str, str], Dispatched] = {}


def dispatched(func: Any) -> Dispatched | None:
    """Return what the dispatcher has for an operator's Python object; None for anything else."""
    if not isinstance(func, OpOverload):
        return None
    schema = object.__getattribute__(func, "__dict__").get("_schema")
    if type(schema) is not _Schema:
        return None
    at = (_name(schema), _overload(schema))
    if at not in _known:
        found = _find(*at)
        if found is None:
            return None
        _known[at] = _described(at, found[0])
    return _known[at]


def _described(at: tuple[str, str], run: Callable[..., Any]) -> Dispatched:
    schema = _schema_of(*at)
    told = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    names = tuple(a.name for a in schema.arguments)
    return Dispatched(
        packet=at[0],
        overload=at[1],
        run=run,
        names=names,
        written=frozenset(told | (_STATISTICS & set(names))),
        is_mutable=bool(schema.is_mutable),
    )
