"""What a command line changes in a run that it goes on with, and what it cannot do with none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hotloop import api
from hotloop.core.command_line import quoted
from hotloop.engine import StopReason
from hotloop.errors import ConfigError, HotloopError
from hotloop.plan import COMMAND, SearchPlan
from hotloop.store.sqlite import JOURNAL_FILE

LARGER = {
    StopReason.WALL.value: "--budget",
    StopReason.CANDIDATES.value: "--max-candidates",
    StopReason.CALLS.value: "--max-calls",
    StopReason.TOKENS.value: "--max-tokens",
    StopReason.USD.value: "--max-usd",
}
"""What lets a search go on that a limit has ended."""
LOCAL = "local"
JUDGE = "--judge"


def changes(plan: SearchPlan) -> list[str]:
    """Return a line on each thing that goes on otherwise than before and is easily overlooked.

    Raises:
        ConfigError: a search that has not begun is to be closed: it would be loaded for nothing.
    """
    if plan.closes and not (plan.folder / JOURNAL_FILE).is_file():
        raise ConfigError(
            f"--close: {plan.folder} holds no run that could be closed; name one by --out, or drop "
            "--close"
        )
    lines: list[str] = []
    # What is wrong with the folder is said by what opens it to go on.
    with suppress(HotloopError), api.load_run(plan.folder) as reader:
        attempts = reader.attempts()
        judged = sum(attempt.verdict is not None for attempt in attempts)
        before, now = _judge_of(reader.spec().options.get(COMMAND)), str(plan.judge)
        if judged and before != now:
            lines.append(
                f"judge: {now} from now on, {before} until now; the {judged} verdicts so far stay"
            )
        limit = plan.spec.budget.max_candidates
        if limit is not None and len(attempts) > limit:
            lines.append(
                f"--max-candidates {limit}: the run has {len(attempts)} candidates already; what "
                "is written is still judged, nothing new is tried"
            )
    return lines


def go_on_command(plan: SearchPlan, reason: str) -> str:
    """Return how to go on with a search that ended for this reason."""
    option, words = LARGER.get(reason), plan.search_words()
    if option is None:
        return plan.search_command()
    if option in words:
        at = words.index(option)
        words = [*words[:at], *words[at + 2 :]]
    return f"{quoted([*words, '--out', plan.folder])} and a larger {option}"


def _judge_of(words: object) -> str:
    if not isinstance(words, Sequence) or JUDGE not in words:
        return LOCAL
    at = list(words).index(JUDGE)
    return str(words[at + 1]) if at + 1 < len(words) else LOCAL
