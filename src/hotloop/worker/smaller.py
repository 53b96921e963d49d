"""The smallest length at which a wrong attention kernel is still wrong.

The failing candidate, in the process it runs in, gets a few calls with shorter sequences of the
same problem. It says something only when the candidate follows the sizes of its tensors: where the
problem does not demand that, a length at which it is right must have been found too, for a kernel
with its sizes written in would be wrong at all of them.

Attention without captured tensors only: then a shorter problem is loaded in milliseconds, and
nothing that the candidate was built with changes but q, k and v.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch

from hotloop.core.problem import ProblemKind, Role
from hotloop.core.verdict import Stage
from hotloop.errors import HotloopError
from hotloop.worker.arena import Layout
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.board import Board, place_set
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.load import load_problem
from hotloop.worker.reference import Reference
from hotloop.worker.timed import secret_seed

FIRST_LENGTH = 128
SHORTEST = 16
TRIALS = 3
TRIAL_S = 5.0
"""One call, with the compilation for new sizes that it may need."""
TOTAL_S = 3.0
"""No trial begins after this."""


def smallest_failing(evaluation: Evaluation, reference: Reference) -> dict[str, Any] | None:
    """Return `fails` {S} and, where one was found, `passes` {S}; None when it says nothing."""
    if not _applies(evaluation, reference):
        return None
    assert isinstance(reference, AttentionReference)
    outcome: dict[int, bool] = {}
    start = time.monotonic()
    try:
        while len(outcome) < TRIALS and time.monotonic() - start < TOTAL_S:
            length = _next_length(outcome, reference)
            if length is None:
                break
            passed = _passes(evaluation, reference, length)
            if passed is None:
                break
            outcome[length] = passed
    except (Failed, HotloopError, RuntimeError) as exc:
        # The candidate, or the problem, has no such sizes: what was found before stands.
        print(f"hotloop judge: no smaller sizes: {exc}", file=sys.stderr, flush=True)
    finally:
        evaluation.board.arena.fill_gaps(evaluation.board.layout)
    return _told(outcome, must_follow=reference.loaded.problem.policy.shape_scope == "generic")


def _applies(evaluation: Evaluation, reference: Reference) -> bool:
    if reference.loaded.problem.kind is not ProblemKind.ATTENTION or evaluation.board.state:
        return False
    if evaluation.candidate.entry.endswith(".cu"):  # its launches are bound to the sizes
        return False
    assert isinstance(reference, AttentionReference)
    return reference.sizes.Skv == reference.sizes.S and reference.sizes.S > SHORTEST


def _next_length(outcome: dict[int, bool], reference: AttentionReference) -> int | None:
    """Halve while it fails, double while it passes; stop between the two."""
    whole = reference.sizes.S
    hidden = {
        w.settings.get("S") for w in reference.loaded.problem.workloads if w.role is Role.HELD_OUT
    }
    if not outcome:
        length = FIRST_LENGTH
        while length >= whole:
            length //= 2
    else:
        last, passed = list(outcome.items())[-1]
        length = 2 * last if passed else last // 2
    usable = SHORTEST <= length < whole and length not in outcome and length not in hidden
    return length if usable else None


def _passes(evaluation: Evaluation, reference: AttentionReference, length: int) -> bool | None:
    """Whether the candidate is right at a length; None if the problem has no such form.

    Raises:
        Failed: the candidate failed otherwise.
    """
    loaded = load_problem(reference.loaded.problem, device=reference.device, settings={"S": length})
    sizes = loaded.sizes
    if sizes is None or sizes.Skv != length or loaded.fixed_buffers or loaded.get_buffers:
        return None
    book = CaseBook(reference.resized(loaded), f"S={length}")
    book.add("normal", secret_seed(), cache_bytes=1 << 30)
    case = book.cases[0]
    draw, goldens = book.materialise(case)
    layout = Layout()
    outputs = [torch.empty(b.shape, dtype=b.dtype, device="meta") for b in case.bounds]
    placed = place_set(layout, draw, outputs)
    arena = evaluation.board.arena
    if layout.size_bytes > arena.bytes.numel():
        return None
    board = Board(arena, layout, {}, [placed], 0)
    arena.fill_gaps(layout)
    board.write_inputs(0, draw)
    if reference.device == "cuda":
        torch.cuda.synchronize()
    place = {"op": "place", "sets": [evaluation.describe_set(*placed)]}
    evaluation.ask(place, TRIAL_S, Stage.CORRECTNESS)
    evaluation.call(0, TRIAL_S)
    pairs = zip(board.outputs(0), goldens, case.bounds, strict=True)
    return all(gate(output, golden, bound).passed for output, golden, bound in pairs)


def _told(outcome: dict[int, bool], *, must_follow: bool) -> dict[str, Any] | None:
    fails = [length for length, passed in outcome.items() if not passed]
    passes = [length for length, passed in outcome.items() if passed]
    if not fails and not passes:
        return None
    if not passes:
        return {"fails": {"S": min(fails)}} if must_follow else None
    told: dict[str, Any] = {"passes": {"S": max(passes)}}
    return told | ({"fails": {"S": min(fails)}} if fails else {})
