"""The attempts of a run as a graph: time to the right, one lane for each line of descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hotloop.core.attempt import Attempt
from hotloop.dashboard.state import RunState
from hotloop.report import svg
from hotloop.report.endings import open_status
from hotloop.report.lineage import action_of, way_to_best
from hotloop.report.plot import Key, Plot

MOST = 240
"""Attempts that are drawn; the best one's ancestors are always among them, then the newest."""
_COLUMN, _LANE, _LEFT, _TOP, _RADIUS = 22.0, 26.0, 22.0, 20.0, 6.0
_ARC = 24.0
"""How far the middle of an arc is drawn aside; its top lies at half of that."""
_NUMBER_EVERY = 5


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an attempt stands."""

    column: int
    lane: int


def lineage_plot(state: RunState, href: str) -> Plot:
    """Return the graph; `href` is where the attempts are, without the number; empty: nowhere."""
    title = "Lineage of the attempts"
    if not state.attempts:
        return Plot(title=title, picture=None, note="no attempts yet", is_wide=True)
    path = way_to_best({attempt.id: attempt for attempt in state.attempts}, state.best)
    shown = _chosen(state.attempts, path)
    spots = layout(shown)
    lanes = 1 + max(spot.lane for spot in spots.values())
    width = max(_LEFT * 2 + _COLUMN * (len(shown) - 1), 320.0)
    height = _TOP * 2 + _LANE * (lanes - 1) + 14
    parts = [_edge(spots, attempt, path) for attempt in shown]
    parts += [_node(spots[a.id], a, state, href) for a in shown]
    parts += _numbers(shown, spots, height)
    words = f"{title}: {len(shown)} of {len(state.attempts)}, the newest at the right"
    left_out = len(state.attempts) - len(shown)
    note = f"{left_out} older attempts are not drawn; the table has all. " if left_out else ""
    return Plot(
        title=title,
        picture=_drawing(words, (width, height), parts),
        note=f"{note}The heavy line leads to the best kernel so far.",
        keys=(*_KEYS, Key("even", open_status(ended=state.has_ended), is_mark=True)),
        is_wide=True,
    )


_KEYS = (
    Key("win", "passed", is_mark=True),
    Key("failed", "failed", is_mark=True),
)


def _drawing(words: str, size: svg.Point, parts: Sequence[Markup]) -> Markup:
    """Return the picture in its own size: a wide one is scrolled, never shrunk."""
    width, height = size
    return svg.element(
        "svg", Markup("").join(parts), class_="natural", role="img", aria_label=words,
        viewBox=f"0 0 {width:g} {height:g}", width=width, height=height,
    )  # fmt: skip


def _chosen(attempts: Sequence[Attempt], path: set[int]) -> list[Attempt]:
    if len(attempts) <= MOST:
        return list(attempts)
    newest = [a.id for a in reversed(attempts) if a.id not in path]
    kept = set(sorted(path)[-MOST:])
    kept |= set(newest[: MOST - len(kept)])
    return [attempt for attempt in attempts if attempt.id in kept]


def layout(attempts: Sequence[Attempt]) -> dict[int, Spot]:
    """Return a place for each attempt: columns by id, lanes as in a graph of commits.

    The first child goes on in its parent's lane, others open a lane; a lane is free again when
    nothing more comes of the attempts in it.
    """
    children: dict[int, list[int]] = {}
    known = {attempt.id for attempt in attempts}
    parent_of = {a.id: next((p for p in a.parents if p in known and p < a.id), None) for a in
                 attempts}  # fmt: skip
    for number, parent in parent_of.items():
        if parent is not None:
            children.setdefault(parent, []).append(number)
    last_use: dict[int, int] = {}
    spots: dict[int, Spot] = {}
    for column, attempt in enumerate(attempts):
        parent = parent_of[attempt.id]
        is_first = parent is not None and children[parent][0] == attempt.id
        if parent is not None and is_first:
            lane = spots[parent].lane
        else:
            lane = next(n for n in range(len(attempts)) if last_use.get(n, -1) < attempt.id)
        spots[attempt.id] = Spot(column, lane)
        until = children.get(attempt.id, [attempt.id])[0]
        last_use[lane] = max(last_use.get(lane, -1), until, attempt.id)
    return spots


def _place(spot: Spot) -> svg.Point:
    return _LEFT + spot.column * _COLUMN, _TOP + spot.lane * _LANE


def _edge(spots: Mapping[int, Spot], attempt: Attempt, path: set[int]) -> Markup:
    x, y = _place(spots[attempt.id])
    parts = []
    for parent in attempt.parents:
        if parent not in spots or parent == attempt.id:
            continue
        px, py = _place(spots[parent])
        css = "edge path" if attempt.id in path and parent in path else "edge"
        parts.append(svg.element("path", class_=css, d=_curve((px, py), (x, y))))
    return Markup("").join(parts)


def _curve(start: svg.Point, end: svg.Point) -> str:
    """Return a line that passes no attempt between: it would seem to come of that one."""
    (px, py), (x, y) = start, end
    if py == y and abs(x - px) <= _COLUMN:
        return f"M{px:.5g} {py:.5g}H{x:.5g}"
    middle = (px + x) / 2
    if py == y:
        return f"M{px:.5g} {py:.5g}Q{middle:.5g} {y - _ARC:.5g} {x:.5g} {y:.5g}"
    return f"M{px:.5g} {py:.5g}C{middle:.5g} {py:.5g} {middle:.5g} {y:.5g} {x:.5g} {y:.5g}"


def _node(spot: Spot, attempt: Attempt, state: RunState, href: str) -> Markup:
    x, y = _place(spot)
    final = state.finals.get(attempt.candidate_id or "")
    verdict = final or attempt.verdict
    is_best = state.best is not None and attempt.id == state.best.id
    status = open_status(ended=state.has_ended) if verdict is None else verdict.status.value
    words = svg.element("title", _words(attempt, status, is_best))
    if verdict is not None and not verdict.passed:
        shape = svg.element("path", d=f"M{x - 4:.5g} {y - 4:.5g}l8 8m0 -8l-8 8")
        back = svg.element("circle", class_="back", cx=x, cy=y, r=_RADIUS)
        inside = [words, back, shape]
    else:
        inside = [words, svg.element("circle", cx=x, cy=y, r=_RADIUS)]
    if is_best:
        inside.insert(1, svg.element("circle", class_="ring", cx=x, cy=y, r=_RADIUS + 4))
    css = "even" if verdict is None else "win" if verdict.passed else "failed"
    mark = svg.element("g", *inside, class_=f"mark {css}")
    if not href:
        return mark
    # For the mouse alone: with the keyboard, the table is the way there.
    return svg.element("a", mark, href=f"{href}{attempt.id}", tabindex="-1")


def _words(attempt: Attempt, status: str, is_best: bool) -> str:
    best = ", the best so far" if is_best else ""
    return f"attempt {attempt.id}, {action_of(attempt)}: {status}{best}"


def _numbers(attempts: Sequence[Attempt], spots: Mapping[int, Spot], height: float) -> list[Markup]:
    return [
        svg.text(str(a.id), (_LEFT + spots[a.id].column * _COLUMN, height - 5), "middle")
        for n, a in enumerate(attempts)
        if n % _NUMBER_EVERY == 0
    ]
