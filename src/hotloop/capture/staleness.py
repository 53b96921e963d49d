"""Whether the text that is read today is still what a live function or class was compiled from.

Python keeps no text: it is read from the file, which may have been edited since the import. The
whole file is compiled again, because what a name is in the rest of it changes the code that calls
it. Only plain files are looked at: a notebook keeps the text of its cells, and an import hook, as
pytest's, rewrites code before it compiles it.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

from hotloop.core.python_source import parse_python
from hotloop.errors import ConfigError

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def require_fresh(name: str, source: str, value: object) -> None:
    """Refuse the text of a function or class that is no longer the one that runs.

    Args:
        name: what to call it in the error.
        source: its text as read now, not indented.
        value: the live function or class; of a decorated function, what it wraps is looked at.

    Raises:
        ConfigError: the text is another definition's, or its file compiles to other code now.
    """
    live = inspect.unwrap(value) if callable(value) else value
    if _is_another(source, live) or not all(_is_in(path, f, live) for path, f in _plain(live)):
        raise ConfigError(
            f"{name}: its file was edited after it was imported, so its text is not what runs: "
            "start Python (or the notebook's kernel) anew"
        )


def _is_another(source: str, live: object) -> bool:
    if not isinstance(live, FunctionType):
        return False
    try:
        body = parse_python(source).body
    except SyntaxError:
        return False  # told where its names are looked up
    return not body or not isinstance(body[0], _Definition) or body[0].name != live.__code__.co_name


def _plain(live: object) -> Iterator[tuple[Path, FunctionType]]:
    """Yield the functions of a function or class whose code their file alone determines."""
    module = sys.modules.get(getattr(live, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader or file is None:
        return
    functions = vars(live).items() if isinstance(live, type) else [("", live)]
    for name, function in functions:
        if not isinstance(function, FunctionType):
            continue
        code = function.__code__
        is_own = not isinstance(live, type) or code.co_qualname == f"{live.__qualname__}.{name}"
        if is_own and os.path.abspath(code.co_filename) == os.path.abspath(file):
            yield Path(file), function


def _is_in(path: Path, function: FunctionType, live: object) -> bool:
    """Whether the file has that code now; a function is also read by its line."""
    try:
        compiled = _compiled(path.read_bytes())
    except OSError:
        return True  # the text came from elsewhere
    except (SyntaxError, ValueError):
        return False
    code = function.__code__
    by_line = function is live
    return any(
        (other.co_firstlineno == code.co_firstlineno or not by_line)
        and other.co_qualname == code.co_qualname
        and _content(other) == _content(code)
        for other in _codes(compiled)
    )


@lru_cache(maxsize=16)
def _compiled(text: bytes) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, "<captured>", "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _content(code: CodeType) -> tuple[object, ...]:
    """Return what a code object does, without where it stands in its file."""
    constants = tuple(
        _content(c) if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts
    )
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    return (code.co_code, code.co_names, code.co_varnames, counts, constants)
