"""What more is found out of wrong values by calling the candidate again, at the fast tier.

`diagnosis.py` reads the failed output; this asks the process that made it: at which smaller sizes
it is right (`smaller.py`), and, where the output told no cause, which elements of the inputs it
reads (`index_probe.py`). Both are bounded in calls and in time, use values that no later check
uses, and leave the process to be closed. Whatever goes wrong in them changes no verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hotloop.core.verdict import Stage
from hotloop.errors import HotloopError
from hotloop.worker.board import describe_set
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.index_probe import probe_indices
from hotloop.worker.smaller import smallest_failing
from hotloop.worker.wrong_region import pick

PLACE_S = 1.0
STRONG = ("origin", "mistake", "masked_rows", "nonfinite")
"""Findings that explain wrong values by themselves."""
LAW_FRAC = 0.99
EVEN = 0.4
"""Evenness of errors that are spread as rounding errors are."""
ROUNDING_FRAC = 0.02
"""An even error under this share of the output's own size is one of precision."""


def follow_up(
    evaluation: Evaluation, wrong: Wrong, details: Mapping[str, Any], *, nominal: bool
) -> dict[str, Any]:
    """Return more details of a wrong output: `smaller` and `probe`, each only where it was found.

    Args:
        evaluation: the candidate, right after the call that failed.
        wrong: the output of that call.
        details: what the output told by itself.
        nominal: whether it failed at the problem's own sizes.
    """
    found: dict[str, Any] = {}
    try:
        _look_further(evaluation, wrong, details, found, nominal=nominal)
    except Exception as exc:  # noqa: BLE001  advice must not cost the verdict that is there
        text = f"{type(exc).__name__}: {str(exc)[:300]}"
        print(f"hotloop judge: no further details: {text}", file=sys.stderr, flush=True)
    return {name: value for name, value in found.items() if value}


def _look_further(
    evaluation: Evaluation,
    wrong: Wrong,
    details: Mapping[str, Any],
    found: dict[str, Any],
    *,
    nominal: bool,
) -> None:
    """Add to `found` one by one: what is there stays where a later step fails."""
    if wrong.reference is None:
        return
    # Before other calls: the output lies in the buffers that they write.
    positions = None if is_explained(wrong, details) else _wrong_positions(wrong)
    if nominal:
        found["smaller"] = smallest_failing(evaluation, wrong.reference, wrong.case.profile)
    if positions is not None:
        found["probe"] = _probe(evaluation, wrong, positions)


def is_explained(wrong: Wrong, details: Mapping[str, Any]) -> bool:
    """Whether the output told its cause: a law, a known mistake, values not finite, or rounding."""
    if any(details.get(name) for name in STRONG):
        return True
    for name in ("ratio", "difference"):
        law = details.get(name) or {}
        if law.get("share", 0.0) >= LAW_FRAC and law.get("median"):
            return True
    case = wrong.case
    is_small = case.rmse is not None and case.rmse <= ROUNDING_FRAC * case.golden_rms
    return is_small and details.get("evenness", 0.0) >= EVEN


def _wrong_positions(wrong: Wrong) -> Tensor | None:
    try:
        return pick(wrong.closely()[1])
    except RuntimeError as exc:  # out of memory
        print(f"hotloop judge: no index probe: {exc}", file=sys.stderr, flush=True)
        return None


def _probe(evaluation: Evaluation, wrong: Wrong, positions: Tensor) -> dict[str, Any] | None:
    board = evaluation.board
    board.arena.fill_gaps(board.layout)
    sets = [describe_set(*placed) for placed in board.sets]
    try:
        evaluation.ask({"op": "place", "sets": sets}, PLACE_S, Stage.CORRECTNESS)
        return probe_indices(evaluation, wrong, positions)
    except (Failed, HotloopError, RuntimeError) as exc:
        print(f"hotloop judge: no index probe: {exc}", file=sys.stderr, flush=True)
        return None
    finally:
        board.arena.fill_gaps(board.layout)
