"""`hotloop selftest`: attack this machine's cage with harmless programs, and say what held."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from hotloop.cli.output import Output
from hotloop.selftest import Outcome, Result, run_selftest

_SOMETHING_OPEN, _NOTHING_RUN = 1, 3


def selftest(
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Attack the cage that kernels run in, with harmless programs.

    Exit code 1 if an attack works, 3 if this machine has no cage to attack.
    """
    output = Output(as_json=json)
    output.say("attacking the cage from inside; nothing outside of a scratch folder is aimed at")
    results = run_selftest()
    counts = Counter(str(r.outcome) for r in results)
    weaker = sorted({line for r in results for line in r.weaker})
    is_sound = counts[Outcome.OPEN] == 0 and counts[Outcome.REFUSED] > 0
    record = {"ok": is_sound, "counts": dict(counts), "weaker": weaker, "cases": results}
    output.result(record, _table(results, counts, weaker))
    if not is_sound:
        raise typer.Exit(_SOMETHING_OPEN if counts[Outcome.OPEN] else _NOTHING_RUN)


def _table(results: list[Result], counts: Counter[str], weaker: list[str]) -> str:
    lines = [_line(result) for result in results]
    lines += [f"weaker than on the best machine: {line}" for line in weaker]
    lines.append(", ".join(f"{counts[o]} {o}" for o in Outcome))
    if not counts[Outcome.OPEN] + counts[Outcome.REFUSED]:
        lines.append("nothing could be tested: run `hotloop doctor` for the remedies")
    if counts[Outcome.OPEN]:
        lines.append("an attack worked: run no candidates here, and report this (SECURITY.md)")
    return "\n".join(lines)


def _line(result: Result) -> str:
    text = f"{result.outcome:12}  {result.tier}  {result.number:2}  {result.name}"
    details = "; ".join(result.found) or result.reason
    return f"{text}: {details}" if details else text
