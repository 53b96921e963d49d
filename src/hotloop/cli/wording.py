"""How verdicts and attempts read in a terminal: one place for every column and its words.

On `cpu` there is no time and no speed-up, so none of these functions can print one: time comes from
`Performance` alone, and that cannot exist there. Text that a candidate may have written is stripped
of control codes before it reaches a terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from hotloop.cli import timing_text
from hotloop.core.attempt import Action, Attempt
from hotloop.core.units import format_ms
from hotloop.core.verdict import Performance, Stage, Verdict

NOTHING = "-"


def plain(text: str, *, limit: int = 200) -> str:
    """Return `text` as one line without control or format characters, cut at `limit`."""
    one_line = " ".join(text.split())
    clean = "".join(c for c in one_line if unicodedata.category(c) not in ("Cc", "Cf"))
    return clean if len(clean) <= limit else f"{clean[: limit - 3]}..."


def printable(text: str) -> str:
    """Return `text` with its lines and tabs, without other control or format characters."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf"))


def columns(*, timed: bool, actions: bool = False) -> tuple[str, ...]:
    """Return the headings of the attempt table.

    Args:
        timed: whether times mean something on the run's device.
        actions: whether attempts come of one another, so that each says what it was to do.
    """
    figures = ("time", "speed-up") if timed else ("static cost (less is better)",)
    told = ("action", "from") if actions else ()
    return ("id", *told, "status", "stage", *figures, *(("asked",) if actions else ()))


def row(
    attempt: Attempt, phase: str | None, *, timed: bool, actions: bool = False
) -> tuple[str, ...]:
    """Return one attempt's cells under the columns of the same arguments."""
    verdict = attempt.verdict
    if verdict is None:
        status, stage = phase or "waiting", NOTHING
    else:
        status, stage = verdict.status.value, verdict.stage.value
    parents = ",".join(map(str, attempt.parents)) or NOTHING
    told = (plain(attempt.action, limit=12), parents) if actions else ()
    figures = measured(attempt, timed=timed)
    return (str(attempt.id), *told, status, stage, *figures, *((asked(attempt),) * actions))


def has_actions(attempts: Iterable[Attempt]) -> bool:
    """Whether any attempt is more than a point of a schedule space."""
    return any(a.action != Action.SCHEDULE for a in attempts)


def asked(attempt: Attempt, *, limit: int = 48) -> str:
    """Return what an attempt was to change: its move, its idea, or its point."""
    told = attempt.asked
    if told is not None:
        return plain(told.idea or (told.move or NOTHING).replace("_", " "), limit=limit)
    values = ", ".join(f"{name}={value}" for name, value in attempt.point.items())
    return plain(values, limit=limit) or NOTHING


def known_tokens(count: int | None) -> str:
    """Return a number of tokens; `unknown` where nobody counted them."""
    return "unknown" if count is None else f"{count:,}"


def known_usd(usd: float | None) -> str:
    """Return dollars; `unknown` where the price is."""
    if usd is None:
        return "unknown"
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.2g}"


def costs(*, tokens: int | None, usd: float | None) -> str:
    """Return what model calls have cost, in words."""
    return f"tokens {known_tokens(tokens)}, dollars {known_usd(usd)}"


def measured(attempt: Attempt, *, timed: bool) -> tuple[str, ...]:
    """Return time and speed-up where time is measured, else the static cost."""
    if not timed:
        return (NOTHING if attempt.objective is None else f"{attempt.objective:.4g}",)
    performance = attempt.verdict.performance if attempt.verdict else None
    if performance is None:
        return NOTHING, NOTHING
    return format_ms(performance.latency_ms), speedup(performance)


def speedup(performance: Performance) -> str:
    """Return the ratio over the fastest baseline, with its interval where there is one."""
    if not performance.speedup:
        return NOTHING
    name = min(performance.speedup, key=lambda n: performance.speedup[n])
    text = f"{timing_text.ratio(performance, name)} over {name}"
    if name in performance.speedup_ci:
        low, high = performance.speedup_ci[name]
        text += f" [{low:.2f}, {high:.2f}]"
    return text


def outcome(verdict: Verdict) -> str:
    """Return one line on a verdict: status, where it stopped or how fast it is, and why."""
    where = f"{verdict.stage.value}, tier {verdict.tier.value}, {verdict.device}"
    if verdict.stage is not Stage.EXTRACT:  # else nothing ran, in no cage
        where += f", isolation {verdict.isolation}"
    line = f"{verdict.status.value} ({where})"
    if verdict.performance is not None:
        performance = verdict.performance
        ratio = speedup(performance)
        line += f": {format_ms(performance.latency_ms)}"
        return line if ratio == NOTHING else f"{line}, {ratio}"
    if verdict.evidence is not None:
        return f"{line}: {verdict.evidence.kind}: {plain(verdict.evidence.message)}"
    return line
