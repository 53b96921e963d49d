"""What is left of a run's budget: a bar for each limit, and how it went down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from hotloop.core.attempt import FREE_ACTIONS
from hotloop.dashboard.state import RunState
from hotloop.report import display, svg
from hotloop.report.plot import Key, Plot
from hotloop.report.plots import SHORT_S

_BAR_WIDTH, _BAR_HEIGHT = 120.0, 10.0
SCARCE_FRAC = 0.15
"""Less than this is shown as scarce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit of a budget and what is spent of it."""

    name: str
    spent: float | None
    """None where it is not known."""
    limit: float
    words: Callable[[float | None], str]

    @property
    def left_frac(self) -> float | None:
        """Share that is left, 0 to 1; None where it is not known."""
        if self.spent is None:
            return None
        return max(0.0, 1.0 - self.spent / self.limit) if self.limit > 0 else 0.0

    @property
    def told(self) -> str:
        """`3.1 min of 15.0 min`."""
        return f"{self.words(self.spent)} of {self.words(self.limit)}"

    @property
    def picture(self) -> Markup:
        """The share that is left as a bar; empty where it is not known."""
        left = self.left_frac
        if left is None:
            return Markup("")
        css = "left scarce" if left < SCARCE_FRAC else "left"
        words = f"{self.name}: {100 * left:.0f} % left"
        return svg.element(
            "svg",
            svg.element("rect", class_="whole", width="100%", height="100%", rx=3),
            svg.element("rect", class_=css, width=f"{100 * left:.4g}%", height="100%", rx=3),
            class_="meter", role="img", aria_label=words, width=_BAR_WIDTH, height=_BAR_HEIGHT,
        )  # fmt: skip


def limits_of(state: RunState) -> list[Limit]:
    """Return the limits that a run has, the one with the least left first."""
    budget, spent = state.spec.budget, state.spending
    # Of calls the budget counts the attempts that a model was asked for, not each sending.
    asked = sum(attempt.action not in FREE_ACTIONS for attempt in state.attempts)
    given = (
        ("time", spent.time_s, budget.wall_s, display.seconds),
        ("candidates", float(spent.candidates), budget.max_candidates, display.count),
        ("calls", float(asked), budget.max_calls, display.count),
        ("tokens", spent.tokens, budget.max_tokens, display.count),
        ("dollars", spent.usd, budget.max_usd, display.dollars),
    )
    limits = [
        Limit(name=name, spent=used, limit=float(most), words=words)
        for name, used, most, words in given
        if most is not None
    ]
    return sorted(limits, key=lambda one: 2.0 if one.left_frac is None else one.left_frac)


def burn_down_plot(state: RunState) -> Plot:
    """Return what was left of each limit over the budget's clock."""
    title = "Budget left"
    limits = limits_of(state)
    moments = [a.started_s if a.finished_s is None else a.finished_s for a in state.attempts]
    right = max([state.spending.time_s, *moments])
    if not limits or right <= 0:
        note = "the run has no limits" if not limits else "nothing is spent yet"
        return Plot(title=title, picture=None, note=note)
    factor, unit = (1 / 60, "minutes") if right > SHORT_S else (1.0, "seconds")
    frame = svg.panel((0.0, right * factor * 1.03), (0.0, 1.0))
    parts = [svg.axes(frame, svg.Axis(f"{unit} of the budget"), svg.Axis("left", " %", 100))]
    keys = []
    for n, limit in enumerate(limits[:4]):
        points = [(at * factor, left) for at, left in _points(state, limit)]
        if not points:
            continue
        css = f"s{n + 1}"
        if limit.name == "time":
            x, y = zip(*(frame.place(p) for p in points), strict=True)
            shape = f"M{x[0]:.5g} {y[0]:.5g}L{x[-1]:.5g} {y[-1]:.5g}"
            parts.append(svg.element("path", class_=f"line {css}", d=shape))
        else:
            parts.append(svg.steps(frame, points, css))
        keys.append(Key(css, f"{limit.name}: {limit.told} spent"))
    return Plot(title=title, picture=svg.drawing(frame, title, parts), keys=tuple(keys))


def _points(state: RunState, limit: Limit) -> list[tuple[float, float]]:
    """Return [seconds of the budget, share left]; empty where what was spent is not known."""
    if limit.left_frac is None:
        return []
    if limit.name == "time":
        return [(0.0, 1.0), (state.spending.time_s, limit.left_frac)]
    spent = 0.0
    points = [(0.0, 1.0)]
    for at, cost in sorted(_costs(state, limit.name)):
        spent += cost
        points.append((at, max(0.0, 1.0 - spent / limit.limit)))
    return points


def _costs(state: RunState, name: str) -> Sequence[tuple[float, float]]:
    """Return what each attempt cost and when: a call as it is made, the rest with its verdict."""
    if name == "calls":
        return [(a.started_s, 1.0) for a in state.attempts if a.action not in FREE_ACTIONS]
    found = []
    for attempt in state.attempts:
        if attempt.finished_s is None:
            continue
        cost: Any = 1.0
        if name != "candidates":
            note = state.spending.by_attempt.get(attempt.id, {})
            cost = note.get({"dollars": "usd"}.get(name, name))
        found.append((attempt.finished_s, float(cost or 0.0)))
    return found
