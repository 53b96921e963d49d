"""The kernels that `started` runs begin with, and their final verdicts.

What the loop adds to the template is known only where the template's own kernel has a final
verdict beside that of the run's best. It is asked for once the run asks for its own, so that both
come in one bundle: one load, one judge, as a rule one GPU. It is the short final: its time and its
interval count here, and it becomes nobody's result. Where the run asks for it itself, because it is
among its best, it gets the full one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks.attention_cases import FIGURE, Case
from benchmarks.attention_ratios import by_key
from hotloop.core.attempt import Action, Attempt
from hotloop.core.problem import Problem
from hotloop.core.protocols import Store
from hotloop.core.verdict import Tier
from hotloop.engine.elsewhere import MAX_REFUSALS, is_refused
from hotloop.errors import Pending
from hotloop.verify.bundle import Item
from hotloop.verify.outside import OutsideVerifier
from hotloop.verify.outside_notes import VERDICT, WANTED, wishes

OWN_WISH = "start_final"
"""Notes which final verdict is asked for here, and not by the run."""


class Notes(Protocol):
    """What is read of a journal: a store, or a reader of one."""

    def attempts(self) -> Sequence[Attempt]: ...  # noqa: D102
    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]: ...  # noqa: D102


def start_kernels(results: Path) -> dict[str, dict[str, str]]:
    """Return the sources of the templates' fastest kernels by variant and language.

    Raises:
        ValueError: the results file is not there.
    """
    if not results.is_file():
        raise ValueError(f"--builtin: {results} is not there; run make bench-attention first")
    rows = by_key(json.loads(results.read_text(encoding="utf-8"))["rows"])
    return {v: rows.get(Case(v, 128).key, {}).get("start_kernels", {}) for v in FIGURE}


def write_starts(folder: Path, kernels: Mapping[str, Mapping[str, str]]) -> None:
    """Write the kernels to start from; one that is there stays, as a run has begun with it."""
    (folder / "starts").mkdir(parents=True, exist_ok=True)
    for variant, by_language in kernels.items():
        for language, text in by_language.items():
            path = start_path(folder, variant, language)
            if not path.exists():
                path.write_text(text, encoding="utf-8")


def start_path(folder: Path, variant: str, language: str) -> Path:
    """Return where the kernel is that runs of a variant in a language begin with."""
    return folder / "starts" / f"{variant}_{language}.py"


def start_id(journal: Notes) -> str | None:
    """Return the candidate that the run began with; None where it is not there or is wrong."""
    starts = (a for a in journal.attempts() if a.action == Action.START)
    first = next(starts, None)
    is_right = first is not None and first.verdict is not None and first.verdict.passed
    return first.candidate_id if first is not None and is_right else None


def ask_for_start(store: Store, problem: Problem) -> bool:
    """Ask for the start's final verdict where the run asks for its own; return whether it awaits.

    It is not awaited once the other machine could not judge it so often as a run takes.
    """
    candidate_id = start_id(store)
    wanted, mine = wishes(store.notes(WANTED)), (candidate_id, Tier.FINAL.value)
    if candidate_id is None or all(tier != Tier.FINAL.value for _, tier in wanted):
        return False
    if mine not in wanted:
        try:
            OutsideVerifier(store, problem).verify(store.candidate(candidate_id), Tier.FINAL)
        except Pending:
            store.note(OWN_WISH, {"candidate_id": candidate_id})
            return True
        return False
    is_answered = mine in wishes(store.notes(VERDICT))
    return not is_answered and not is_refused(store, candidate_id, Tier.FINAL, times=MAX_REFUSALS)


def as_asked(items: Sequence[Item], journal: Notes) -> list[Item]:
    """Return what a run wants judged, with the short final for what is asked for here alone.

    What no machine could judge is left out, once it was asked for as often as a run does.
    """
    own = {note["candidate_id"] for note in journal.notes(OWN_WISH)}
    own -= {note["candidate_id"] for note in journal.notes(WANTED) if note.get("full")}
    found = []
    for item in items:
        is_own = item.tier is Tier.FINAL and item.key[1] in own
        if is_own and item.asked > MAX_REFUSALS:
            continue
        found.append(replace(item, short=True) if is_own else item)
    return found


def start_verdict(journal: Notes) -> Mapping[str, Any] | None:
    """Return the start's final verdict as JSON; None where it has none."""
    starts = [a.candidate_id for a in journal.attempts() if a.action == Action.START][:1]
    of_run = [n["verdict"] for n in journal.notes("final") if n["candidate_id"] in starts]
    own = [
        note["verdict"]
        for note in journal.notes(VERDICT)
        if note["candidate_id"] in starts and note["tier"] == Tier.FINAL.value
    ]
    found: list[Mapping[str, Any]] = of_run or own
    return found[-1] if found else None
