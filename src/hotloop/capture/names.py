"""What the names in a function's or class's source stand for, by Python's own rules of scope."""

from __future__ import annotations

import builtins
import inspect
import symtable
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType

from hotloop.errors import ConfigError

_ABSENT = object()


def meanings(name: str, source: str, value: object) -> Mapping[str, object]:
    """Return what each name that is not local stands for: globals, closures, builtins.

    Args:
        name: what to call the function or class in errors.
        source: its text, not indented.
        value: the function or class; of a decorated function, what it wraps is looked at.

    Raises:
        ConfigError: the text is no Python program of its own.
    """
    try:
        table = symtable.symtable(source, "<captured>", "exec")
    except SyntaxError as exc:
        raise ConfigError(
            f"{name}: its text does not stand alone ({exc.msg}): define it at the top level, and "
            "start Python anew if its file was edited"
        ) from exc
    scope = _scope(value)
    found = {}
    for needed in sorted(_global_names(table)):
        meaning = scope.get(needed, getattr(builtins, needed, _ABSENT))
        if meaning is not _ABSENT:
            found[needed] = meaning
    return found


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names that some scope of the text looks up outside of all of it.

    Text that stood inside a function is read as if at the top level, so the names of its closure
    are among them.
    """
    is_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        is_global = is_top or symbol.is_global()
        if is_global and (symbol.is_referenced() or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)


def _scope(value: object) -> dict[str, object]:
    scope: dict[str, object] = {}
    unwrapped = inspect.unwrap(value) if callable(value) else value
    if isinstance(unwrapped, type):
        home = sys.modules.get(unwrapped.__module__)
        for method in vars(unwrapped).values():
            if isinstance(method, FunctionType):
                scope |= method.__globals__
        return scope | (dict(vars(home)) if home is not None else {})
    if isinstance(unwrapped, FunctionType):
        scope |= unwrapped.__globals__
        for name in unwrapped.__code__.co_freevars:
            scope.pop(name, None)
        scope |= _closure(unwrapped)
    return scope


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
