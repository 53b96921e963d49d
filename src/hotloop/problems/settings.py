"""`--set K=V,...`: values that replace module-level constants of a problem file.

Parsing and checking of names happens here; the judge puts the values in force, before the code that
depends on them runs.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping

from hotloop.errors import ConfigError
from hotloop.problems.constants import Constant, assignments

ATTENTION_SIZES = ("B", "H", "Hkv", "S", "Skv", "D")
ATTENTION_SETTINGS = (
    *ATTENTION_SIZES,
    "dtype",
    "scale",
    "normalize",
    "page_size",
    "buffer_seed",
    "timed_profile",
)
"""Names with a meaning in every attention file, whether the file assigns them or not."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_BETWEEN = re.compile(r",(?![^(\[]*[)\]])")
"""Commas that are not inside of parentheses or brackets."""


def parse_settings(text: str) -> dict[str, Constant]:
    """Return the settings of `K=V,K=V`; values become int, float or text, whichever fits first.

    A tuple or a list of numbers, `K=(3,7)` or `K=[3,7]`, stays the text that it is.

    Raises:
        ConfigError: a part is no `K=V`, or a name occurs twice.
    """
    settings: dict[str, Constant] = {}
    for part in filter(None, (p.strip() for p in _BETWEEN.split(text))):
        name, separator, value = (p.strip() for p in part.partition("="))
        if not separator or not _NAME.fullmatch(name) or not value:
            raise ConfigError(f"--set: expected NAME=VALUE[,NAME=VALUE...], got {part!r}")
        if name in settings:
            raise ConfigError(f"--set: {name} is given twice; keep one")
        settings[name] = _parse_value(value)
    return settings


def _parse_value(text: str) -> Constant:
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_settings(
    settings: Mapping[str, Constant], tree: ast.Module, *, always: Iterable[str] = ()
) -> None:
    """Refuse settings that the problem file has no constant for.

    `always` lists names that may be set although the file does not assign them.

    Raises:
        ConfigError: a name is unknown, or its value is of another kind than the file's own.
    """
    known = {name: value for name, value, _ in assignments(tree) if not name.startswith("__")}
    names = sorted({*known, *always})
    for name, value in settings.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            listed = ", ".join(names) or "none"
            raise ConfigError(f"--set: the problem has no constant {name}{hint} (known: {listed})")
        own = known.get(name)
        if isinstance(own, ast.Constant) and _is_text(own.value) != _is_text(value):
            kind = "text" if _is_text(own.value) else "a number"
            raise ConfigError(f"--set: {name} is {kind} in the file ({own.value!r}), got {value!r}")
        if isinstance(own, (ast.Tuple, ast.List)) and _is_text(value):
            _check_tuple(name, own, str(value))
        elif str(value).startswith(("(", "[")) and not isinstance(own, ast.Constant):
            _check_numbers(name, str(value))


def _check_tuple(name: str, own: ast.Tuple | ast.List, value: str) -> None:
    got = _numbers(value)
    if got is None or len(got) != len(own.elts):
        is_list = isinstance(own, ast.List)
        kind, marks = ("list", "brackets") if is_list else ("tuple", "parentheses")
        raise ConfigError(
            f"--set: {name} is a {kind} of {len(own.elts)} in the file ({ast.unparse(own)}), "
            f"got {value!r}; write it with its {marks}, in quotes for the shell"
        )


def _check_numbers(name: str, value: str) -> None:
    """Refuse what looks like a tuple or a list and is none; the file's own value says nothing."""
    if _numbers(value) is None:
        raise ConfigError(
            f"--set: {name} should be a number, text, or a tuple or list of numbers, got {value!r}"
        )


def _numbers(value: str) -> tuple[float, ...] | None:
    """Return the numbers of a tuple or list as it is written; None for anything else."""
    try:
        got = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    are_numbers = isinstance(got, (tuple, list)) and all(type(n) in (int, float) for n in got)
    return tuple(got) if are_numbers else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
