"""Sizes and dtype that a prompt states in words or as `S=4096`.

Two different values for one size are an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Container

from hotloop.errors import ConfigError
from hotloop.problems.constants import Constant

_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d+)([kK]?)\b(?!\.\d)"
_LINK = r"(?:\s*\(\w+\))?\s*(?:\bof\b|\bis\b|=|:)?\s*"
_KV = r"(?:kv|key[ /-]?value)"
_LENGTH = r"(?:seq(?:uence)?[ _-]?len(?:gth)?|context[ _-]?length|sequences?)"

_SIZE_PATTERNS: dict[str, tuple[str, ...]] = {
    "B": (rf"\bB\s*=\s*{_NUMBER}", rf"(?i:\bbatch(?:[ _-]?size)?){_LINK}{_NUMBER}"),
    "H": (
        rf"\bH\s*=\s*{_NUMBER}",
        rf"(?i:\b(?:number of |num[ _]|n[ _])(?:attention |query )?heads){_LINK}{_NUMBER}",
        rf"\b{_NUMBER}\s+(?i:(?:attention |query |q )?heads\b)",
    ),
    "Hkv": (
        rf"\bHkv\s*=\s*{_NUMBER}",
        rf"(?i:\b(?:number of |num[ _])?{_KV}[ _-]heads){_LINK}{_NUMBER}",
        rf"\b{_NUMBER}\s+(?i:{_KV}[ _-]heads\b)",
    ),
    "S": (rf"\bS\s*=\s*{_NUMBER}", rf"(?i:(?<!kv )(?<!key )\b{_LENGTH}){_LINK}{_NUMBER}"),
    "Skv": (rf"\bSkv\s*=\s*{_NUMBER}", rf"(?i:\b(?:kv|key) {_LENGTH}){_LINK}{_NUMBER}"),
    "D": (rf"\bD\s*=\s*{_NUMBER}", rf"(?i:\bhead[ _-]?(?:dim(?:ension)?|size)){_LINK}{_NUMBER}"),
}
_DTYPES = {
    "bfloat16": r"(?i:\b(?:bfloat16|bf16)\b)",
    "float16": r"(?i:\b(?:float16|fp16)\b)",
}


def stated_sizes(text: str, name: str, *, skip: Container[str] = ()) -> dict[str, Constant]:
    """Return the sizes that the text states; names in `skip` are not looked at.

    Raises:
        ConfigError: the text states two values for one size.
    """
    sizes: dict[str, Constant] = {}
    for size, patterns in _SIZE_PATTERNS.items():
        if size in skip:
            continue
        values = {_value(*found) for p in patterns for found in re.findall(p, text)}
        if len(values) > 1:
            listed = " and ".join(str(v) for v in sorted(values))
            hint = f"choose one by --set {size}=..."
            raise ConfigError(f"{name}: the prompt states {size} as {listed}; {hint}")
        if values:
            sizes[size] = values.pop()
    return sizes


def _value(digits: str, kilo: str) -> int:
    """Return 4096 for `4096`, `4,096` and `4k`: sizes are counted in powers of two."""
    return int(digits.replace(",", "")) * (1024 if kilo else 1)


def stated_dtype(text: str, name: str, *, skip: Container[str] = ()) -> dict[str, Constant]:
    """Return `{"dtype": ...}` when the text states bfloat16 or float16; empty otherwise.

    Raises:
        ConfigError: the text states both.
    """
    if "dtype" in skip:
        return {}
    found = [dtype for dtype, pattern in _DTYPES.items() if re.search(pattern, text)]
    if len(found) > 1:
        hint = "choose one by --set dtype=..."
        raise ConfigError(f"{name}: the prompt states bfloat16 and float16; {hint}")
    return {"dtype": found[0]} if found else {}
