"""A key that does not show itself, and texts without it.

Providers quote headers and keys in their error messages; what comes from outside passes `redact`
before it reaches a message, a journal or a log.
"""

from __future__ import annotations

from typing import Any

_MIN_CHARACTERS = 6
"""Shorter 'keys' are placeholders like `none`; blotting them out would only damage texts."""

REDACTED = "[key]"


class Secret:
    """Holds a key; `str` and `repr` do not show it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return REDACTED

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def redact(self, text: str) -> str:
        """Return a text without the key."""
        if len(self._value) < _MIN_CHARACTERS:
            return text
        return text.replace(self._value, REDACTED)

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value without the key in any of its strings."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {self.redact(k): self.redact_json(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.redact_json(v) for v in value]
        return value

    def __reduce__(self) -> Any:
        raise TypeError("a key is not pickled")
