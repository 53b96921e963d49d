"""Conduct: how a candidate comes to its right results. Runs once a workload, after they were right.

More calls on one case, each watched as every untimed call is (`call_rules.py`):

    new      on values that no call had: what it does is held against the rules; where a case of
             these values was looked at in its first call, that was this
    plain    launches no kernel at all                 -> no kernel does the work
    changed  other addresses, one element of each input changed, fresh memory holds numbers: wrong
             values -> results do not follow the inputs; no output comes from a kernel, or torch
             alone computed one
    recopy   the plain call's outputs again: changed   -> calls share an output buffer
    ghost    no kernel runs: all outputs still right   -> kernels do not do the work; where it
             fails instead, forward needed what kernels write, and that is an answer, too

Values are judged by the gate, in the judge's own buffers. What is said of launches, operations and
threads is the candidate's process's claim: it catches what is plain, and a replay of the recorded
launches (final tier, `cuda`) settles it. Not covered: launches of C++ extensions (the plain call
and `ghost` say nothing); candidates in `.cu` files, which have no code around their kernels. What a
guard cannot tell here is left open and noted, and never counts against a candidate.
"""

from __future__ import annotations

import secrets

import torch

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.call_rules import PROFILES, CallRules, hack, uses_library
from hotloop.worker.cases import CaseBook
from hotloop.worker.changed_case import changed_case
from hotloop.worker.claims import Observed
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.known_case import Known, size_bytes
from hotloop.worker.memory import leave_room
from hotloop.worker.other_values import other_values
from hotloop.worker.reference import Draw
from hotloop.worker.untimed import Untimed, draw_fresh, draw_other_set, draw_set

LARGE_BYTES = 1 << 30
"""Inputs and outputs of this size together may leave a call that is looked into no memory."""
GHOST_S = 10.0
"""A call without kernels; one that waits for what they should have written does not end."""
CHANGED = (
    "after one element of each input was changed, the inputs were put elsewhere and fresh memory "
    "held numbers instead of NaN: results must follow from the inputs of their own call"
)
SHARED = "of a call once forward was called again: return memory of its own from each call"


def check_conduct(
    evaluation: Evaluation, book: CaseBook, timeout_s: float, checks: list[str]
) -> bool:
    """Look at how a candidate that was right on all cases of a book works.

    Args:
        evaluation: of the candidate.
        book: its cases.
        timeout_s: for one call.
        checks: gets the names of what was looked at and of what had to be left open, and
            `library_anchor` where a library product stands beside the kernels.

    Returns:
        Whether the process may still be used; a call without kernels may have broken it.

    Raises:
        Failed: it does not do the work, or not with its kernels.
    """
    if not evaluation.candidate.entry.endswith(".py") or not book.cases:
        return True
    conduct = _Conduct(evaluation, book, timeout_s, checks)
    conduct.check()
    return conduct.usable


class _Conduct:
    def __init__(
        self, evaluation: Evaluation, book: CaseBook, timeout_s: float, checks: list[str]
    ) -> None:
        self._evaluation = evaluation
        self._book = book
        self._timeout_s = timeout_s
        self._checks = checks
        self._rules = CallRules(evaluation, book.reference)
        n_sets = len(evaluation.board.sets)
        self._first = draw_set(n_sets)
        self._other = draw_other_set(n_sets, self._first)
        self.usable = True

    def check(self) -> None:
        by_name = {case.profile: case for case in reversed(self._book.cases)}
        name = next((p for p in PROFILES if p in by_name), self._book.cases[0].profile)
        known = Known(self._book.reference, by_name[name], *self._book.materialise(by_name[name]))
        self._evaluation.board.write_state(known.draw)
        self._evaluation.board.hide_inputs()
        self._synchronize()
        self._evaluation.prepare()
        try:
            self._look(known)
        except Failed as failed:
            if not self._lacks_room(failed, known):
                raise
        else:
            self._checks.append("conduct")
            return
        # Not inside `except`: the error's frames would keep the inputs that took the room.
        self._check_without_looking(known)

    def _lacks_room(self, failed: Failed, known: Known) -> bool:
        size = size_bytes((*known.draw.inputs, *known.goldens))
        return failed.evidence.kind == "oom_gpu" and size >= LARGE_BYTES

    def _check_without_looking(self, known: Known) -> None:
        """Call once more, with nothing kept and nothing compared: then there is room, or never."""
        self._step("drop")
        seen = self._call(self._first, known.draw, Untimed(fresh=draw_fresh()))
        if not self._is_right(known, self._first):
            raise _wrong("repeated", "when forward was called again on the same inputs")
        self._rules.check(known, seen)
        self._evaluation.check_alone("forward")
        self.usable = False
        self._checks.append("conduct_skipped:memory")

    def _look(self, known: Known) -> None:
        if not self._met_new_values(known):
            self._check_new_values(known)
        plain = self._call(self._first, known.draw, Untimed(fresh=draw_fresh(), looks=True))
        if plain.launches == 0 and self._rules.sees_launches:
            raise hack("no_kernel", "no kernel was launched by forward, the result is not its own")
        self._step("keep")
        changed = changed_case(self._book, known, self._checks)
        seen = self._call_changed(changed)
        if not self._keeps_rules(changed, seen):
            # Other values may want something that is packed first: others once more.
            del changed
            changed = changed_case(self._book, known, [], anew=True)
            seen = self._call_changed(changed)
            self._rules.check(changed, seen)
        self._evaluation.check_alone("forward")
        self._rules.check_origins(changed, seen)
        if uses_library(seen):
            self._checks.append("library_anchor")
        self._write(self._first, known.draw)
        self._step("recopy")
        if not self._is_right(known, self._first):
            raise _wrong("shared_output", SHARED)
        if self._rules.sees_launches:
            self._check_ghost(known)

    def _met_new_values(self, known: Known) -> bool:
        """Whether a call on such values that were new was looked at: a workload's first is not."""
        looked_at = [case.profile for case in self._book.cases[1:]]
        return known.case.profile in looked_at and self._rules.looks(known)

    def _keeps_rules(self, known: Known, seen: Observed) -> bool:
        try:
            self._rules.check(known, seen)
        except Failed:
            return False
        return True

    def _check_new_values(self, known: Known) -> None:
        try:
            self._check_on(other_values(known))
        except Failed as failed:  # the first call after `prepare()` may pack
            if failed.status is not Status.REWARD_HACK:
                raise
        else:
            return
        self._check_on(other_values(known))

    def _check_on(self, other: Known) -> None:
        how = Untimed(fresh=draw_fresh(), looks=True)
        self._rules.check(other, self._call(self._other, other.draw, how), looked=True)

    def _call_changed(self, changed: Known) -> Observed:
        seen = self._call(self._other, changed.draw, Untimed(fresh="numbers", looks=True))
        if not self._is_right(changed, self._other):
            raise _wrong("one_element", CHANGED)
        return seen

    def _write(self, index: int, draw: Draw) -> None:
        self._evaluation.board.write_inputs(index, draw)
        self._synchronize()
        leave_room()

    def _synchronize(self) -> None:
        if self._evaluation.device == "cuda":
            torch.cuda.synchronize()

    def _call(
        self, index: int, draw: Draw, how: Untimed, timeout_s: float | None = None
    ) -> Observed:
        self._write(index, draw)
        call = self._evaluation.watched_call(index, timeout_s or self._timeout_s, how)
        assert call.seen is not None  # `.cu` files are not looked at here
        return call.seen

    def _step(self, step: str) -> None:
        message = {"op": "observe", "step": step, "set": self._first}
        self._evaluation.ask(message, self._timeout_s, Stage.CORRECTNESS)

    def _is_right(self, known: Known, index: int) -> bool:
        return known.is_right(self._evaluation.board.outputs(index))

    def _check_ghost(self, known: Known) -> None:
        if not self._is_right_without_kernels(known):
            return
        if known.is_plain(self._evaluation.board.outputs(0)):
            self._checks.append("ghost_skipped:plain_result")
            return
        # A workspace that is kept between calls may hold these very values: let a call on others
        # write over it, and look again.
        draw = self._book.reference.draw(secrets.randbits(31), known.case.profile)
        self._call(self._other, draw, Untimed(fresh=draw_fresh()))
        del draw
        if self._is_right_without_kernels(known):
            raise hack(
                "no_kernel_work",
                "the outputs are right without the kernels: their launches were left out, and "
                "nothing changed; the kernels must do the work",
            )

    def _is_right_without_kernels(self, known: Known) -> bool:
        how = Untimed(fresh="zeros", left_out=True)
        try:
            self._call(self._first, known.draw, how, min(GHOST_S, self._timeout_s))
        except Failed as failed:
            if failed.evidence.kind == "patched":
                raise
            self.usable = False
            return False
        return self._is_right(known, self._first)


def _wrong(kind: str, text: str) -> Failed:
    evidence = Evidence(kind=kind, message=f"wrong values {text}")
    return Failed(Status.INCORRECT_NUMERICAL, Stage.CORRECTNESS, evidence)
