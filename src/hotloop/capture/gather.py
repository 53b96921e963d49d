"""The source of a function or class with all that it names, as one Python file.

The judge is another process and gets text. So whatever the source names is looked up and written
down as well: what is installed is imported, the caller's own functions and classes are copied,
plain constants become literals. What has no text, such as a tensor, is refused by name.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import math
import sys
import sysconfig
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from hotloop.errors import ConfigError

Code = FunctionType | type
_INSTALLED = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")
)
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...))


class Gatherer:
    """Collects the parts of a file, each once and after what it needs."""

    def __init__(self) -> None:
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
            if not _is_same(self._homes[name], value):
                raise ConfigError(f"{name} stands for two things in what is captured; rename one")
            return
        self._homes[name] = value
        if isinstance(value, ModuleType):
            self._import_module(name, value)
        elif isinstance(value, (FunctionType, type)) or callable(value):
            self._add_code(name, value)
        else:
            self._add_constant(name, value)

    def text(self) -> str:
        """Return the file so far: imports, then constants, functions and classes."""
        return "\n\n\n".join(["\n".join(self._imports), *self._parts.values()])

    def _import_module(self, name: str, module: ModuleType) -> None:
        if not _is_installed(module):
            raise ConfigError(
                f"{name} is the module {module.__name__} of your own, which the judge cannot "
                f"import: name what you need of it (from {module.__name__} import ...)"
            )
        renamed = "" if module.__name__ == name else f" as {name}"
        self._imports[f"import {module.__name__}{renamed}"] = None

    def _add_code(self, name: str, value: Any) -> None:
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        own_name = getattr(value, "__name__", "")
        if home is not None and _is_installed(home) and getattr(home, own_name, None) is value:
            renamed = "" if own_name == name else f" as {name}"
            self._imports[f"from {home.__name__} import {own_name}{renamed}"] = None
            return
        source = source_of(name, value)
        for needed, meaning in _meanings(source, value).items():
            if needed != own_name:
                self.add(needed, meaning)
        self._homes.setdefault(own_name, value)
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
        ConfigError: it has none that stands alone.
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
        return textwrap.dedent(inspect.getsource(value)).rstrip()
    except (OSError, TypeError) as exc:
        raise ConfigError(
            f"{name} has no source that can be read: define it in a file or in a notebook's cell"
        ) from exc


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


def _meanings(source: str, value: Code) -> Mapping[str, object]:
    """Return what the names in a source stand for, where it is neither local nor built in."""
    names = {
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    scope: dict[str, object] = {}
    functions = [value] if isinstance(value, FunctionType) else _methods(value)
    for function in functions:
        scope |= function.__globals__ | _closure(function)
    if isinstance(value, type):
        home = sys.modules.get(value.__module__)
        scope = dict(vars(home)) | scope if home is not None else scope
    return {name: scope[name] for name in sorted(names) if name in scope and not _is_built_in(name)}


def _methods(cls: type) -> list[FunctionType]:
    return [m for m in vars(cls).values() if isinstance(m, FunctionType)]


def _closure(function: FunctionType) -> dict[str, object]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    found.pop("__class__", None)
    return found


def _is_built_in(name: str) -> bool:
    return hasattr(builtins, name)


def _is_installed(module: ModuleType) -> bool:
    if module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if file is None:  # built in, or a namespace
        return module.__name__ in sys.builtin_module_names
    return any(Path(file).resolve().is_relative_to(root) for root in _INSTALLED)
