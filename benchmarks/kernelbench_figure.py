"""The picture of docs/kernelbench.md: what a model's calls bring, drawn from the results file.

Left: the share of problems with a right kernel, of the fast and of the final tier. Right: the
geometric mean of the speed-up over the faster of eager and `torch.compile` at the fast tier. Both
are step functions over the decidable problems of a level. Plain SVG without a background; its text
follows the reader's colours.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COLOURS = ("#2f8f6f", "#3b78c4", "#b3602b", "#8a5fb0")
"""By level."""
DASHED = ' stroke-dasharray="5 4"'
WIDTH, HEIGHT = 760, 436
TOP, BOTTOM = 132, 78
PANEL = 300
"""Width of a panel's axes."""
LEFTS = (56, 436)
STYLE = (
    "text{fill:#24292f}.axis{stroke:#6e7781}.grid{stroke:#6e7781;stroke-opacity:0.3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis,.grid{stroke:#8b949e}}"
)
Points = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Line:
    """One step function."""

    title: str
    points: Points
    colour: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One half of the picture."""

    title: str
    left: float
    bottom: float
    """Value at the axis."""
    top: float
    ticks: Sequence[tuple[float, str]]
    lines: Sequence[Line]
    calls: int
    """The last value of the horizontal axis."""

    def x(self, calls: float) -> float:
        """Return where a number of calls stands."""
        # Half a call more than there were, so that a step at the last one can be seen.
        return self.left + PANEL * calls / (self.calls + 0.5)

    def y(self, value: float) -> float:
        """Return where a value stands."""
        room = HEIGHT - TOP - BOTTOM
        return HEIGHT - BOTTOM - room * (value - self.bottom) / (self.top - self.bottom)


def drawn_column(results: Mapping[str, Any]) -> str | None:
    """Return the column that the picture is of: the first of a model with curves over calls."""
    for name, column in results["summary"]["columns"].items():
        drawn = [level_curves(column, level) for level in column["levels"]]
        if name.startswith("model/") and all(drawn) and drawn:
            return str(name)
    return None


def level_curves(column: Mapping[str, Any], level: str) -> Mapping[str, Points] | None:
    """Return a level's three curves over calls; None where one of them is not known.

    Raises:
        ValueError: the curves are not over the level's decidable problems.
    """
    found = column["curves"].get(level, {}).get("calls", {})
    decidable = column["levels"][level]["decidable"]["problems"]
    if found and found["problems"] != decidable:
        raise ValueError(
            f"expected curves over the {decidable} decidable problems of level {level}, got "
            f"{found['problems']} problems; write the results file anew: make bench-kernelbench"
        )
    names = ("fast_tier_solve_rate", "solve_rate", "fast_tier_speedup")
    return {name: found[name] for name in names} if all(found.get(n) for n in names) else None


def value_at(points: Points, calls: float) -> float:
    """Return the value of a step function."""
    return [value for at, value in points if at <= calls][-1]


def last_call(column: Mapping[str, Any]) -> int:
    """Return the number of calls at which the last curve changes; at least 1."""
    known = [level_curves(column, level) or {} for level in column["levels"]]
    ends = [points[-1][0] for curves in known for points in curves.values()]
    return max([1, *(math.ceil(end) for end in ends)])


def picture(results: Mapping[str, Any]) -> str | None:
    """Return the picture of a results file as SVG; None where no column has curves over calls."""
    name = drawn_column(results)
    if name is None:
        return None
    column = results["summary"]["columns"][name]
    gpu = results["environment"].get("gpu", "")
    where = html.escape(gpu if isinstance(gpu, str) else " and ".join(gpu))
    counts = ", ".join(
        f"{column['curves'][level]['calls']['problems']} of level {level}"
        for level in column["levels"]
    )
    panels = _panels(column)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12" role="img">',
            f"<title>KernelBench: right kernels and speed-up by model calls, {where}</title>",
            f"<style>{STYLE}</style>",
            f'<text x="8" y="20" font-size="14">KernelBench by model calls spent on each problem; '
            f"measured: {where}</text>",
            *(part for panel in panels for part in _panel(panel)),
            f'<text x="8" y="{HEIGHT - 24}" font-size="10">Over the decidable problems '
            f"({counts}); without a kernel yet a problem counts as 1.0x.</text>",
            f'<text x="8" y="{HEIGHT - 10}" font-size="10">The final tier is for the best kernels '
            "of a run only: a step stands where a kernel that it confirmed was written.</text>",
            "</svg>",
        ]
    ) + "\n"  # fmt: skip


def _panels(column: Mapping[str, Any]) -> tuple[Panel, Panel]:
    rates: list[Line] = []
    ratios: list[Line] = []
    last = last_call(column)
    for level, colour in zip(column["levels"], COLOURS, strict=False):
        curves = level_curves(column, level)
        assert curves is not None, "a column is drawn when all its levels have curves"
        for key, tier in (("fast_tier_solve_rate", "fast tier"), ("solve_rate", "final tier")):
            points = curves[key]
            first, end = (f"{100 * value_at(points, n):.1f} %" for n in (1, last))
            title = f"level {level}, {tier}: {first} after 1 call, {end} after {last}"
            rates.append(Line(title, points, colour, key == "solve_rate"))
        points = curves["fast_tier_speedup"]
        first, end = (f"{value_at(points, n):.2f}x" for n in (1, last))
        title = f"level {level}, fast tier: {first} after 1 call, {end} after {last}"
        ratios.append(Line(title, points, colour))
    most = max([2, *(math.ceil(value) for line in ratios for _, value in line.points)])
    step = max(1, math.ceil((most - 1) / 6))
    shares = [(share / 100, f"{share} %") for share in (0, 25, 50, 75, 100)]
    times = [(float(value), f"{value}x") for value in range(1, most + 1, step)]
    return (
        Panel("Problems with a right kernel", LEFTS[0], 0.0, 1.0, shares, rates, last),
        Panel("Speed-up over the better of eager and compile", LEFTS[1], 1.0, float(most), times,
              ratios, last),
    )  # fmt: skip


def _panel(panel: Panel) -> list[str]:
    return [*_legend(panel), *_axes(panel), *(_steps(panel, line) for line in panel.lines)]


def _legend(panel: Panel) -> list[str]:
    left = panel.left
    parts = [f'<text x="{left - 40}" y="42" font-weight="bold">{panel.title}</text>']
    for index, line in enumerate(panel.lines):
        y = 56 + 16 * index
        dash = DASHED if line.dashed else ""
        parts += [
            f'<line x1="{left - 40}" y1="{y}" x2="{left - 16}" y2="{y}" stroke="{line.colour}" '
            f'stroke-width="2"{dash}/>',
            f'<text x="{left - 10}" y="{y + 4}" font-size="11">{line.title}</text>',
        ]
    return parts


def _axes(panel: Panel) -> list[str]:
    floor, left, right = HEIGHT - BOTTOM, panel.left, panel.left + PANEL
    parts = []
    for value, text in panel.ticks:
        y = panel.y(value)
        parts += [
            f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>',
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{text}</text>',
        ]
    parts.append(f'<line class="axis" x1="{left}" y1="{floor}" x2="{right}" y2="{floor}"/>')
    for calls in range(panel.calls + 1):
        parts.append(
            f'<text x="{panel.x(calls):.1f}" y="{floor + 16}" text-anchor="middle" '
            f'font-size="11">{calls}</text>'
        )
    parts.append(
        f'<text x="{left + PANEL / 2}" y="{floor + 32}" text-anchor="middle">model calls</text>'
    )
    return parts


def _steps(panel: Panel, line: Line) -> str:
    (at, value), *rest = line.points
    path = f"M{panel.x(at):.1f} {panel.y(value):.1f}"
    for x, y in rest:
        path += f"H{panel.x(x):.1f}V{panel.y(y):.1f}"
    dash = DASHED if line.dashed else ""
    return (
        f'<path d="{path}H{panel.left + PANEL}" fill="none" stroke="{line.colour}" '
        f'stroke-width="2"{dash}/>'
    )
