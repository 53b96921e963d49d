"""The smallest sizes at which a wrong kernel is still wrong.

The failing candidate, in the process it runs in, gets a few calls at smaller sizes of the same
problem, judged as always. It says something only when the candidate follows the sizes of its
tensors: where the problem does not demand that, sizes at which it is right must have been found
too, for a kernel with its sizes written in would be wrong at all of them.

    attention   the length S, without captured tensors
    a Model     the module-level constants that are dimensions of its inputs, all halved together

Nothing that the candidate was built with may change: sizes that alter the constructor's arguments
or a parameter's shape are left out (the features of a linear layer, the channels of a convolution),
and so is a file whose sizes stand in `get_inputs` itself.
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
from hotloop.worker.arguments import encode_args
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.board import Board, describe_set, place_set
from hotloop.worker.cases import Case, CaseBook
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.known_case import Known
from hotloop.worker.load import load_problem
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.overrides import settable_sizes
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.timed import secret_seed

FIRST_SIZE = 128
"""The first trial's largest size is at most this."""
SHORTEST = 16
"""Of attention; a Model's largest size goes down to `SMALLEST`."""
SMALLEST = 4
TRIALS = 4
TRIAL_S = 5.0
"""One call, with the compilation for new sizes that it may need."""
TOTAL_S = 3.0
"""No trial begins after this. A trial under way may last longer: of what it needs, only the calls
of the candidate (`TRIAL_S`) and the reference's forwards, by their time at full sizes, are bound.
"""
FORWARDS = 30
"""Forwards, in the problem's dtype or float64, that building a reference and one case take."""
Sizes = dict[str, int]


def smallest_failing(
    evaluation: Evaluation, reference: Reference, profile: str
) -> dict[str, Any] | None:
    """Return `fails` and, where they were found, `passes` {name: size}; None when it says nothing.

    Args:
        evaluation: the candidate that failed.
        reference: at the nominal sizes, at which it failed.
        profile: the values on which it failed, where smaller sizes have them too.
    """
    full = _sizes(evaluation, reference)
    outcome: dict[int, bool] = {}
    if full and not _may_fit(reference):
        return None
    start = time.monotonic()
    try:
        while full and len(outcome) < TRIALS and time.monotonic() - start < TOTAL_S:
            halvings = _next_halvings(outcome, full, reference)
            if halvings is None:
                break
            passed = _passes(evaluation, reference, _halved(full, halvings), profile)
            if passed is None:
                break
            outcome[halvings] = passed
    except (Failed, HotloopError, RuntimeError) as exc:
        # The candidate, or the problem, has no such sizes: what was found before stands.
        print(f"hotloop judge: no smaller sizes: {exc}", file=sys.stderr, flush=True)
    finally:
        if full:
            evaluation.board.arena.fill_gaps(evaluation.board.layout)
    told = {halvings: (_halved(full, halvings), passed) for halvings, passed in outcome.items()}
    return _told(told, must_follow=reference.loaded.problem.policy.shape_scope == "generic")


def _sizes(evaluation: Evaluation, reference: Reference) -> Sizes:
    """Return the sizes that may shrink, by the names of their settings; empty when none may."""
    if evaluation.candidate.entry.endswith(".cu"):  # its launches are bound to the sizes
        return {}
    if isinstance(reference, AttentionReference):
        s = reference.sizes
        follows = not evaluation.board.state and s.Skv == s.S and s.S > SHORTEST
        return {"S": s.S} if follows else {}
    loaded = reference.loaded
    inputs, _, parameters = reference.specs()
    dims = {size for spec in inputs for size in spec.shape}
    fixed = {size for spec in parameters for size in spec.shape}
    return {
        name: size
        for name, size in settable_sizes(loaded.problem.source, loaded.namespace).items()
        if size in dims - fixed and size > 1
    }


def _may_fit(reference: Reference) -> bool:
    """Whether a trial's forwards end in time if a smaller one takes as long as one at full sizes.

    It may take much less. But what makes a forward slow on the trusted side (loops in Python, a
    wait) often does not shrink, and nothing could end it.
    """
    if not isinstance(reference, ModelReference) or FORWARDS * reference.eager_s <= TOTAL_S:
        return True
    text = f"one forward of the reference takes {reference.eager_s:.2f} s"
    print(f"hotloop judge: no smaller sizes: {text}", file=sys.stderr, flush=True)
    return False


def _halved(full: Sizes, halvings: int) -> Sizes:
    return {name: max(1, size >> halvings) for name, size in full.items()}


def _next_halvings(outcome: dict[int, bool], full: Sizes, reference: Reference) -> int | None:
    """Halve while it fails, double while it passes; stop between the two, and at hidden sizes."""
    largest = max(full.values())
    if not outcome:
        halvings = 1
        while largest >> halvings > FIRST_SIZE or (largest >> halvings == largest):
            halvings += 1
    else:
        last, passed = list(outcome.items())[-1]
        halvings = last - 1 if passed else last + 1
    least = SHORTEST if reference.loaded.problem.kind is ProblemKind.ATTENTION else SMALLEST
    sizes = _halved(full, halvings)
    usable = halvings > 0 and largest >> halvings >= least and halvings not in outcome
    return halvings if usable and not _is_hidden(sizes, reference) else None


def _is_hidden(sizes: Sizes, reference: Reference) -> bool:
    problem = reference.loaded.problem
    hidden = [w.settings for w in problem.workloads if w.role is Role.HELD_OUT]
    return any(settings.get(name) == size for settings in hidden for name, size in sizes.items())


def _resized(reference: Reference, sizes: Sizes) -> Reference | None:
    """Return the reference at other sizes; None if more than q, k, v or the inputs would change.

    Raises:
        ProblemError: the problem has no such sizes.
    """
    problem = reference.loaded.problem
    nominal = next(w for w in problem.workloads if w.role is Role.NOMINAL)
    settings = {**nominal.settings, **sizes}
    loaded = load_problem(problem, device=reference.device, settings=settings)
    if isinstance(reference, AttentionReference):
        length, found = sizes["S"], loaded.sizes
        if found is None or found.Skv != length or loaded.fixed_buffers or loaded.get_buffers:
            return None
        return reference.resized(loaded)
    if encode_args(loaded.init_args) != encode_args(reference.loaded.init_args):
        return None
    smaller = ModelReference(loaded)
    smaller.skip_compiled()
    return smaller


def _passes(
    evaluation: Evaluation, reference: Reference, sizes: Sizes, profile: str
) -> bool | None:
    """Whether the candidate is right at these sizes; None if the problem has no such form.

    Raises:
        Failed: the candidate failed otherwise.
    """
    smaller = _resized(reference, sizes)
    if smaller is None:
        return None
    book = CaseBook(smaller, "smaller")
    known = profile in smaller.profiles
    book.add(profile if known else smaller.profiles[0], secret_seed(), cache_bytes=1 << 30)
    case = book.cases[0]
    draw, goldens = book.materialise(case)
    board = _board(evaluation, draw, case)
    if board is None:
        return None
    if reference.device == "cuda":
        torch.cuda.synchronize()
    place = {"op": "place", "sets": [describe_set(*board.sets[0])]}
    evaluation.ask(place, TRIAL_S, Stage.CORRECTNESS)
    if board.state:
        evaluation.ask({"op": "prepare"}, TRIAL_S, Stage.CORRECTNESS)
    evaluation.call(0, TRIAL_S)
    return Known(smaller, case, draw, goldens).is_right(board.outputs(0))


def _board(evaluation: Evaluation, draw: Draw, case: Case) -> Board | None:
    """Write a draw into the candidate's arena; None if its parameters do not lie as before."""
    layout = Layout()
    state = {name: layout.place_like(t) for name, t in draw.state.items()}
    outputs = [torch.empty(b.shape, dtype=b.dtype, device="meta") for b in case.bounds]
    placed = place_set(layout, draw, outputs)
    arena = evaluation.board.arena
    if state != evaluation.board.state or layout.size_bytes > arena.bytes.numel():
        return None
    board = Board(arena, layout, state, [placed], 0)
    arena.fill_gaps(layout)
    board.write_state(draw)
    board.write_inputs(0, draw)
    return board


def _told(outcome: dict[int, tuple[Sizes, bool]], *, must_follow: bool) -> dict[str, Any] | None:
    """Tell the largest sizes that pass and the smallest that fail."""
    fails = [halvings for halvings, (_, passed) in outcome.items() if not passed]
    passes = [halvings for halvings, (_, passed) in outcome.items() if passed]
    told: dict[str, Any] = {"passes": outcome[min(passes)][0]} if passes else {}
    if fails and (passes or must_follow):
        told["fails"] = outcome[max(fails)][0]
    return told or None
