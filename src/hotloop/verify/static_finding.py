"""What a static rule found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule."""

    rule: str
    """`no_code`, `language`, `banned_import`, `banned_name`, `patching`, `subclass`, `try_except`,
    `inheritance`, `no_kernel`, `library_call`, `unreadable`."""
    message: str
    line: int | None = None
