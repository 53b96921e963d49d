"""The published figure's six bars, redrawn: its speed-up over FlexAttention beside ours.

The published figures are averages over sizes that were not told, over the FlexAttention of early
2025, on an H100 (https://developer.nvidia.com/blog, 12 February 2025, "Automating GPU Kernel
Generation with DeepSeek-R1 and Inference Time Scaling"). Ours are geometric means over six sizes,
over `flex` and over the faster of `flex` and `flex_max_autotune` of today. A row that failed counts
as 1.0. A bar over fewer sizes is drawn pale and says how many it is of.

The picture is plain SVG without a background. Its colours are told apart on a light and on a dark
page, and its text follows the reader's colour scheme.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.attention_cases import FIGURE, HEAD_SIZES, LENGTHS, Case
from benchmarks.attention_ratios import (
    BASELINE,
    FLEX,
    by_key,
    is_result,
    same_size,
    size_mean,
)
from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean

PUBLISHED = {"full": 1.6, "causal": 1.1, "relative": 1.5, "alibi": 1.6, "document": 1.1,
             "softcap": 2.1}  # fmt: skip
TITLES = {"full": "full", "causal": "causal", "relative": "relative", "alibi": "ALiBi",
          "document": "document", "softcap": "soft-cap"}  # fmt: skip
SERIES = (
    ("published", "published: R1 loop, H100, FlexAttention of early 2025", "#8a939c"),
    ("over_flex", "hotloop over flex", "#2f8f6f"),
    ("over_fastest", "hotloop over the faster of flex and flex_max_autotune", "#3b78c4"),
)
WIDTH, HEIGHT = 760, 416
LEFT, TOP, BOTTOM = 44, 88, 80
SIZES = len(LENGTHS) * len(HEAD_SIZES)
STYLE = (
    "text{fill:#24292f}.axis{stroke:#6e7781}.one{stroke:#24292f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#8b949e}.one{stroke:#e6edf3}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One variant of the figure."""

    variant: str
    published: float
    over_flex: float | None
    """Geometric mean over the sizes that were run; None where none was."""
    over_fastest: float | None
    sizes: tuple[str, ...]
    """Sizes that were run; the packings of one count as one."""
    failed: tuple[str, ...]
    """Rows of those sizes that count as 1.0."""

    @property
    def is_whole(self) -> bool:
        """Whether all sizes were run."""
        return len(self.sizes) == SIZES

    @property
    def told(self) -> str:
        """`2 of 6 sizes`."""
        return f"{len(self.sizes)} of {SIZES} sizes"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"sizes": list(self.sizes), "failed": list(self.failed)}


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Return the six variants with what the rows say of each."""
    known = by_key(rows)
    return [_bar(variant, known) for variant in FIGURE]


def _bar(variant: str, known: dict[str, Row]) -> Bar:
    flex, fastest, sizes, failed = [], [], [], []
    for case in (Case(variant, D, S) for S in LENGTHS for D in HEAD_SIZES):
        over = size_mean(known, case, (BASELINE,))
        over_both = size_mean(known, case, FLEX)
        if over is not None and over_both is not None:
            flex.append(over)
            fastest.append(over_both)
            sizes.append(case.key)
            failed += [c.key for c in same_size(case) if not is_result(known[c.key])]
    means = [round(geometric_mean(found), 4) if found else None for found in (flex, fastest)]
    return Bar(variant, PUBLISHED[variant], means[0], means[1], tuple(sizes), tuple(failed))


def picture(results: dict[str, Any]) -> str:
    """Return the figure of a results file as SVG."""
    found = bars(results["rows"])
    gpu = html.escape(str(results["environment"].get("gpu", "")))
    drawn = [value for bar in found for value in _values(bar) if value is not None]
    scale = (HEIGHT - TOP - BOTTOM) / max([*drawn, 1.2])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" role="img">',
        f"<title>Speed-up over FlexAttention, published and measured on {gpu}</title>",
        f"<style>{STYLE}</style>",
        f'<text x="8" y="20" font-size="14">Speed-up over FlexAttention; measured: {gpu}</text>',
        *_legend(),
    ]
    room = (WIDTH - LEFT - 8) / len(found)
    for index, bar in enumerate(found):
        parts += _group(bar, LEFT + index * room, room, scale)
    return "\n".join([*parts, *_axis(scale), _note(), "</svg>"]) + "\n"


def _values(bar: Bar) -> tuple[float | None, ...]:
    return bar.published, bar.over_flex, bar.over_fastest


def _legend() -> list[str]:
    parts = []
    for index, (_, title, colour) in enumerate(SERIES):
        y = 32 + index * 16
        parts.append(f'<rect x="8" y="{y}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="24" y="{y + 9}">{title}</text>')
    return parts


def _group(bar: Bar, left: float, room: float, scale: float) -> list[str]:
    floor = HEIGHT - BOTTOM
    thick = (room - 20) / len(SERIES)
    parts = []
    for index, (value, (name, _, colour)) in enumerate(zip(_values(bar), SERIES, strict=True)):
        x = left + 10 + index * thick
        middle = x + thick / 2
        if value is None:
            parts.append(f'<text x="{middle:.1f}" y="{floor - 4}" text-anchor="middle">-</text>')
            continue
        top = floor - value * scale
        pale = "" if name == "published" or bar.is_whole else ' fill-opacity="0.45"'
        parts.append(
            f'<rect class="{name}" x="{x:.1f}" y="{top:.1f}" width="{thick - 3:.1f}" '
            f'height="{value * scale:.1f}" fill="{colour}"{pale}/>'
        )
        parts.append(
            f'<text x="{middle - 1.5:.1f}" y="{top - 4:.1f}" text-anchor="middle" font-size="11">'
            f"{value:.2f}</text>"
        )
    parts.append(
        f'<text x="{left + room / 2:.1f}" y="{floor + 18}" text-anchor="middle">'
        f"{TITLES[bar.variant]}</text>"
    )
    told = [bar.told, *([f"{len(bar.failed)} rows failed: 1.0x"] if bar.failed else [])]
    for line, text in enumerate(told):
        parts.append(
            f'<text x="{left + room / 2:.1f}" y="{floor + 32 + 13 * line}" text-anchor="middle" '
            f'font-size="10">{text}</text>'
        )
    return parts


def _note() -> str:
    sizes = f"D {' and '.join(map(str, HEAD_SIZES))} at S {', '.join(map(str, LENGTHS))}"
    return (
        f'<text x="8" y="{HEIGHT - 10}" font-size="10">The {SIZES} sizes of ours: {sizes}. Pale: '
        "not all of them were run; a row that failed counts as 1.0x.</text>"
    )


def _axis(scale: float) -> list[str]:
    floor, one = HEIGHT - BOTTOM, HEIGHT - BOTTOM - scale
    return [
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH - 8}" y2="{floor}"/>',
        f'<line class="one" x1="{LEFT}" y1="{one:.1f}" x2="{WIDTH - 8}" y2="{one:.1f}" '
        'stroke-dasharray="4 3"/>',
        f'<text x="{LEFT - 6}" y="{one + 4:.1f}" text-anchor="end">1x</text>',
    ]
