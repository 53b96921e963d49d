"""Units: the one place where one unit becomes another.

Kernel times are milliseconds (`_ms`), wall clock is seconds (`_s`), memory is bytes (`_bytes`),
rates are TFLOP/s (`_tflops`) and GB/s (`_gbps`), shares are 0 to 1 (`_frac`).
"""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def parse_duration_s(text: str) -> float:
    """Return seconds for `45s`, `15m`, `1h30m`, `90` (seconds).

    Raises:
        ValueError: the text is no duration, or it is not positive.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if not text.strip() or match is None:
        raise ValueError(f"expected a duration like 45s, 15m or 1h30m, got {text!r}")
    hours, minutes, seconds = (float(g or 0) for g in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if total <= 0:
        raise ValueError(f"expected a duration over 0, got {text!r}")
    return total


def ns_to_ms(ns: float) -> float:
    """Nanoseconds to milliseconds."""
    return ns / 1e6


def s_to_ms(s: float) -> float:
    """Seconds to milliseconds."""
    return s * 1e3


def tflops(flops: float, ms: float) -> float:
    """Rate in TFLOP/s of `flops` operations in `ms` milliseconds."""
    return flops / (ms * 1e9)


def gbps(n_bytes: float, ms: float) -> float:
    """Rate in GB/s (1e9) of `n_bytes` moved in `ms` milliseconds."""
    return n_bytes / (ms * 1e6)


def format_ms(ms: float) -> str:
    """A kernel time with three to four significant digits and its unit."""
    if ms < 0.01:
        return f"{ms * 1e3:.2f} us"
    return f"{ms:.3g} ms" if ms < 1 else f"{ms:.2f} ms"
