"""What looked at a time, for people: launch-bound calls, clocks that disagree, ratios without one.

A ratio is given with two decimals only where it means that much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.core.units import format_ms
from hotloop.core.verdict import Performance

NOT_COMPARED = ", not compared"
WHOLE_FROM = 3.0
"""Rough ratios from here on have no decimals."""


def ratio(performance: Performance, name: str) -> str:
    """Return the ratio over one baseline: `1.52x`, or `about 8x (launch-bound)` under 3 us."""
    value = performance.speedup[name]
    if performance.timing_checks.get("launch_bound"):
        return f"about {value:.{0 if value >= WHOLE_FROM else 1}f}x (launch-bound)"
    return f"{value:.2f}x"


def ratio_after(performance: Performance, name: str) -> str:
    """Return the ratio as it follows a baseline's time."""
    if name not in performance.speedup:
        return NOT_COMPARED
    return f": {ratio(performance, name)}"


def notes(performance: Performance) -> list[str]:
    """Return lines on the checks of the time; none where all is as usual."""
    checks = performance.timing_checks
    lines = [f"not sure    {doubt}" for doubt in checks.get("doubts", ())]
    if checks.get("launch_bound"):
        lines.append(f"bound       by launching it{_empty(checks)}; a ratio says little here")
    control = checks.get("control")
    if control:
        lines.append(
            f"control     {control['baseline']} against itself: {control['ratio']:.4f} "
            f"(1 within {control['limit_frac']:.2g})"
        )
    return lines


def _empty(checks: Mapping[str, Any]) -> str:
    ms = (checks.get("clocks") or {}).get("empty_kernel_ms")
    return f": an empty kernel takes {format_ms(ms)}" if ms else ""
