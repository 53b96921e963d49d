"""How numbers and foreign text read on a page: one place for every unit and for what is absent.

What was not measured is called so and is never 0. Text that a candidate or a model may have written
keeps its lines and loses its control and format characters: a right-to-left override must not make
a kernel read as something else.
"""

from __future__ import annotations

import unicodedata

from hotloop.core.units import GIB, format_ms
from hotloop.core.verdict import Performance
from hotloop.report.metrics import is_win, speedup_over

NOT_MEASURED = "not measured"
UNKNOWN = "unknown"
NOT_COMPARED = "not compared"
WHOLE_FROM = 3.0
"""Rough ratios from here on have no decimals."""
_STRANGE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def visible(text: str) -> str:
    """Return `text` with lines and tabs; other control and format characters become U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _STRANGE else _REPLACEMENT for c in lines
    )


def one_line(text: object, *, limit: int = 200) -> str:
    """Return `text` as one visible line of at most `limit` characters."""
    line = " ".join(visible(str(text)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def number(value: float | None, how: str = ".3f") -> str:
    """Return a number in the given format; None was not measured."""
    return NOT_MEASURED if value is None else format(value, how)


def percent(share: float | None) -> str:
    """Return a share (0 to 1) in per cent."""
    return NOT_MEASURED if share is None else f"{100 * share:.1f} %"


def ratio(value: float | None) -> str:
    """Return a speed-up."""
    return NOT_MEASURED if value is None else f"{value:.3g}x" if value >= 100 else f"{value:.2f}x"


def interval(low: float, high: float) -> str:
    """Return the ends of an interval of a speed-up."""
    return f"{low:.2f} to {high:.2f}"


def ms(value: float | None) -> str:
    """Return a kernel time with its unit."""
    return NOT_MEASURED if value is None else format_ms(value)


def seconds(value: float | None) -> str:
    """Return wall clock with its unit."""
    if value is None:
        return UNKNOWN
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def memory(size_bytes: float | None) -> str:
    """Return a size with its unit."""
    if size_bytes is None:
        return NOT_MEASURED
    return f"{size_bytes / GIB:.2f} GiB" if size_bytes >= GIB / 100 else f"{size_bytes:,.0f} B"


def count(value: float | None) -> str:
    """Return a number of calls or tokens; None: nobody counted them."""
    return UNKNOWN if value is None else f"{value:,.10g}"


def dollars(value: float | None) -> str:
    """Return dollars; None: the price is not known."""
    if value is None:
        return UNKNOWN
    return f"${value:.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def speedup(performance: Performance | None, baseline: str) -> str:
    """Return one verdict's ratio over a baseline; rough where launching the kernel is what counts.

    The final tier's ratios have an interval beside them (`speedup_interval`); the fast tier's none.
    """
    value = None if performance is None else performance.speedup.get(baseline)
    if performance is None or value is None:
        return NOT_COMPARED
    if performance.timing_checks.get("launch_bound"):
        return f"about {value:.{0 if value >= WHOLE_FROM else 1}f}x"
    return ratio(value)


def speedup_interval(performance: Performance, baseline: str) -> tuple[str, str]:
    """Return the 95 % interval over a baseline, and whether it is a win, in words."""
    found = speedup_over(performance, baseline)
    if found is None:
        return NOT_MEASURED, "not claimed"
    return interval(found.low, found.high), "win" if is_win(found) else "no win"


def least_speedup(performance: Performance | None) -> str:
    """Return the ratio over the fastest baseline with its name; NOT_COMPARED where none is."""
    if performance is None or not performance.speedup:
        return NOT_COMPARED
    name = min(performance.speedup, key=lambda n: performance.speedup[n])
    return f"{speedup(performance, name)} over {name}"
