"""The source of a function or class with all that it names, as one Python file.

The judge is another process and gets text. So whatever the source names is looked up and written
down as well: what is installed is imported, the caller's own functions and classes are copied,
plain constants become literals. What has no text, such as a tensor, is refused by name.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import math
import sys
import textwrap
from collections.abc import Collection, Iterable
from types import FunctionType, ModuleType
from typing import Any

from hotloop.capture.installed import is_importable, is_installed
from hotloop.capture.names import meanings
from hotloop.capture.staleness import require_fresh
from hotloop.errors import ConfigError

_ABSENT = object()
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...))


class Gatherer:
    """Collects the parts of a file, each once and after what it needs.

    Args:
        reserved: names that the file has for itself and that nothing captured may have.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._imports: dict[str, None] = {}
        self._parts: dict[str, str] = {}
        """Text by name, in the order that they have to stand in."""
        self._homes: dict[str, object] = {}
        """What each name stands for."""

    def add(self, name: str, value: object) -> None:
        """Add what `name` stands for, and all that it needs.

        Raises:
            ConfigError: it has no text, or two things have that name.
        """
        if name in self._homes:
            self._claim(name, value)
            return
        self._claim(name, value)
        if value is getattr(builtins, name, _ABSENT):
            return  # only noted, lest another's function of that name takes its place
        if isinstance(value, ModuleType):
            self._import_module(name, value)
        elif isinstance(value, (FunctionType, type)) or callable(value):
            self._add_code(name, value)
        else:
            self._add_constant(name, value)

    def text(self) -> str:
        """Return the file so far: imports, then constants, functions and classes."""
        return "\n\n\n".join(["\n".join(self._imports), *self._parts.values()])

    def _claim(self, name: str, value: object) -> None:
        """Let `name` stand for `value` alone."""
        if name in self._reserved:
            raise ConfigError(f"{name} is a name that a problem file has for itself; rename yours")
        if not _is_same(self._homes.setdefault(name, value), value):
            raise ConfigError(f"{name} stands for two things in what is captured; rename one")

    def _import_module(self, name: str, module: ModuleType) -> None:
        if not is_importable(module):
            raise ConfigError(
                f"{name} is the module {module.__name__} of your own, which the judge cannot "
                f"import: name what you need of it (from {module.__name__} import ...)"
            )
        renamed = "" if module.__name__ == name else f" as {name}"
        self._imports[f"import {module.__name__}{renamed}"] = None

    def _add_code(self, name: str, value: Any) -> None:
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        own_name = getattr(value, "__name__", "")
        if home is not None and _is_imported(home, own_name, value):
            renamed = "" if own_name == name else f" as {name}"
            self._imports[f"from {home.__name__} import {own_name}{renamed}"] = None
            return
        source = source_of(name, value)
        self._claim(own_name, value)
        for needed, meaning in meanings(name, source, value).items():
            if needed != own_name:
                self.add(needed, meaning)
        if own_name in self._parts:
            self._parts[name] = f"{name} = {own_name}"
            return
        self._parts[own_name] = source
        if name != own_name:
            self._parts[name] = f"{name} = {own_name}"

    def _add_constant(self, name: str, value: object) -> None:
        text = literal(value)
        if text is None:
            kind = type(value).__name__
            raise ConfigError(
                f"{name} is a {kind}, which cannot be written down as text: pass it as an argument"
            )
        if text.startswith("torch."):
            self.add("torch", sys.modules["torch"])
        self._parts[name] = f"{name} = {text}"


def source_of(name: str, value: Any) -> str:
    """Return the text of a function or class, not indented.

    Raises:
        ConfigError: it has none that stands alone, or its file was edited after the import.
    """
    own_name = getattr(value, "__name__", "")
    if own_name == "<lambda>":
        raise ConfigError(f"{name} is a lambda: its text does not stand alone; write it with def")
    if not isinstance(value, (FunctionType, type)):
        raise ConfigError(
            f"{name} is a {type(value).__name__} without Python source: wrap it in a function, "
            "def f(x): return ..."
        )
    if "<locals>" in value.__qualname__ and isinstance(value, type):
        raise ConfigError(f"{name} is a class inside a function: define it at the top level")
    try:
        source = textwrap.dedent(inspect.getsource(value)).rstrip()
    except (OSError, TypeError) as exc:
        raise ConfigError(
            f"{name} has no source that can be read: define it in a file or in a notebook's cell"
        ) from exc
    require_fresh(name, source, value)
    return source


def literal(value: object) -> str | None:
    """Return a value as Python text; None where it has none that is exact."""
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return f"torch.{value!r}" if type(value).__name__ == "device" else repr(value)
    if isinstance(value, enum.Enum):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if type(value) in _ATOMS:
        return repr(value)
    if type(value) in (tuple, list, set, frozenset):
        return _sequence(value)  # type: ignore[arg-type]
    if type(value) is dict:
        pairs = [(literal(k), literal(v)) for k, v in value.items()]
        if any(k is None or v is None for k, v in pairs):
            return None
        return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    return None


def _is_same(one: object, other: object) -> bool:
    return one is other or (literal(one) is not None and literal(one) == literal(other))


def _sequence(values: Iterable[object]) -> str | None:
    items = [literal(v) for v in values]
    if any(item is None for item in items):
        return None
    inner = ", ".join(str(item) for item in items)
    if isinstance(values, tuple):
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    if isinstance(values, list):
        return f"[{inner}]"
    return f"{type(values).__name__}([{inner}])"


def _is_imported(home: ModuleType, name: str, value: object) -> bool:
    """Whether the judge imports the value; what has Python source of the user's is copied."""
    if getattr(home, name, None) is not value:
        return False
    has_source = isinstance(value, (FunctionType, type))
    return is_installed(home) if has_source else is_importable(home)
