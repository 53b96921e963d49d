"""Command lines that are printed: whoever copies one gets what was meant.

A number is written out (`1e+06s` is no duration), a flag stands alone, what was not given is left
out, and a path that begins with a hyphen is no option.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from decimal import Decimal
from os import PathLike, fspath


def number(value: float) -> str:
    """Return a number in full and without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def argument(value: str | PathLike[str]) -> str:
    """Return a path or name as it stands where no option is meant."""
    text = fspath(value)
    return f"./{text}" if text.startswith("-") else text


def option_words(options: Mapping[str, object]) -> list[str]:
    """Return options and their values; None and False are left out, True is the flag alone."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append(name)
        if isinstance(value, float):
            words.append(number(value))
        elif value is not True:
            words.append(str(value))
    return words


def quoted(words: Sequence[str | PathLike[str]]) -> str:
    """Return words as a shell takes them."""
    return shlex.join([fspath(word) for word in words])
