"""The correctness stage: every output, every element, on secret inputs.

For each case: write parameters, let the candidate prepare, write inputs, poison outputs, call, then
look. Outputs are read from the judge's own buffers; the candidate's description of its result only
names the failure when shapes are wrong. What a call was seen to do is held against `call_rules.py`;
calls lie at addresses drawn for each.

Covered: shapes, dtypes, values against the gate, NaN and Inf, inputs and parameters unmodified, red
zones, repeats (each must pass; bit-equality is reported; more of them at the final tier). Buffers
are state: a forward leaves them as they are, also where the reference's own updates them (batch
statistics in training mode), for each call starts from the draw's. Not covered: races that need
many calls (timed calls are checked too), out-of-bounds reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch

from hotloop.core.verdict import CaseResult, Evidence, Stage, Status
from hotloop.worker.call_rules import CallRules, check_started
from hotloop.worker.cases import Case, CaseBook
from hotloop.worker.compare import (
    Bound,
    GateResult,
    Rigour,
    count_beyond,
    tail_limit,
    unravel,
    within_declared,
)
from hotloop.worker.described import check_description
from hotloop.worker.diagnosis import Wrong, workload_of
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.known_case import Known
from hotloop.worker.memory import leave_room
from hotloop.worker.mismatch import describe_mismatch
from hotloop.worker.other_values import other_values, with_goldens
from hotloop.worker.repeats import Repeats
from hotloop.worker.untimed import (
    MAX_DRAWN,
    Untimed,
    WatchedCall,
    draw_bare,
    draw_fresh,
    draw_set,
)

REPEATS = 2
"""Further calls on the first case's inputs, to see whether results repeat."""
FINAL_REPEATS = 8
"""The same at the final tier: a race that shows in one call of five is missed once in eight."""


class CorrectnessStage:
    """Checks one evaluation against the cases of a book."""

    def __init__(self, evaluation: Evaluation, *, final: bool = False) -> None:
        self._evaluation = evaluation
        self._repeats = FINAL_REPEATS if final else REPEATS
        self._set = 0  # of the call under way, or the last one
        self._rules: dict[str, CallRules] = {}  # of workloads that were called
        self.results: list[CaseResult] = []
        self.deterministic: bool | None = None
        self.wrong: Wrong | None = None
        """The output that did not pass its gate; it lies in the board until the next call."""

    def run(self, books: Iterable[CaseBook], timeout_s: float) -> None:
        """Check all cases of all books.

        Raises:
            Failed: the first case that does not pass, or there is none.
        """
        first = True
        for book in books:
            for case in book:
                self._check_case(book, case, timeout_s, repeats=self._repeats if first else 0)
                first = False
        if first:
            text = "no drawn inputs could tell a right result from a wrong one; verify it again"
            raise Failed(
                Status.INCONCLUSIVE, Stage.CORRECTNESS, Evidence(kind="no_cases", message=text)
            )

    def _check_case(self, book: CaseBook, case: Case, timeout_s: float, *, repeats: int) -> None:
        checked = Known(book.reference, case, *book.materialise(case))
        is_first = case.workload not in self._rules
        rules = self._rules.setdefault(case.workload, CallRules(self._evaluation, book.reference))
        board = self._evaluation.board
        board.write_state(checked.draw)
        board.hide_inputs()
        _sync(checked.draw)
        leave_room()
        try:
            self._evaluation.prepare()
            self._set = draw_set(len(board.sets), self._set)
            # A kernel may time itself in the first call: nothing may look at its launches there.
            looks = rules.looks(checked) and not is_first
            call = self._call(checked, Untimed(looks=looks), timeout_s)
            first_set = self._set
            self._check_untouched(checked.draw)
            self._check_values(checked)
            self._check_declared(checked)
            self._check_repeats(checked, call, timeout_s, repeats)
            self._check_first(checked, call, timeout_s, looks=looks, at=first_set)
            self._evaluation.check_alone("forward")
        except Failed as failed:
            where = workload_of(book.reference.loaded.problem, case.workload)
            raise failed.on({"workload": where, "profile": case.profile}) from None

    def _call(self, checked: Known, how: Untimed, timeout_s: float) -> WatchedCall:
        """Run a forward on a case's inputs."""
        board = self._evaluation.board
        board.write_inputs(self._set, checked.draw)
        _sync(checked.draw)
        call = self._evaluation.watched_call(self._set, timeout_s, how)
        check_description(call.outputs, board.outputs(self._set))
        return call

    def _check_first(
        self, checked: Known, call: WatchedCall, timeout_s: float, *, looks: bool, at: int
    ) -> None:
        """Hold a first call after `prepare()` against the rules, if need be with others.

        They are at its address `at`, which forward may have kept, and at one that is drawn.
        """
        if call.seen is None:
            return
        rules = self._rules[checked.case.workload]
        try:
            rules.check(checked, call.seen, looked=looks)
        except Failed:  # it may have packed or tuned something: once more, on values it has not met
            self._set = at
            for moves in (False, True):
                other = other_values(checked)
                self._repeat(other, Untimed(fresh=draw_fresh()), timeout_s, moves=moves)
                known = with_goldens(other)
                if known is not None:
                    self._check_values(known)
                del other, known  # before the next are made: the candidate is alive beside them
                leave_room()

    def _check_declared(self, checked: Known) -> None:
        stated = checked.reference.loaded.problem.tolerances
        if not stated:
            return
        atol, rtol = stated.get("atol", 0.0), stated.get("rtol", 0.0)
        for i, output in enumerate(self._evaluation.board.outputs(self._set)):
            if checked.case.bounds[i].rigour is not Rigour.FULL:
                continue  # where eager itself gets bad, it may be outside the tolerance too
            if not within_declared(output, checked.goldens[i], atol=atol, rtol=rtol):
                text = (
                    f"output{i} on {checked.case.profile!r} inputs is outside the problem's own "
                    f"tolerance (atol {atol:g}, rtol {rtol:g})"
                )
                raise Failed(
                    Status.INCORRECT_NUMERICAL,
                    Stage.CORRECTNESS,
                    Evidence(kind="outside_tolerance", message=text),
                )

    def _check_repeats(
        self, checked: Known, first: WatchedCall, timeout_s: float, repeats: int
    ) -> None:
        """Call again on the same inputs; each result has to pass, equal to the first or not."""
        if not repeats:
            return
        board = self._evaluation.board
        before = [t.clone() for t in board.outputs(self._set)]
        self.deterministic = True
        calls = Repeats(checked)
        for bare in draw_bare(repeats) + [False, True]:
            if len(calls) == repeats and calls.difference is not None:
                self._visit_all(checked, timeout_s)
            if len(calls) >= repeats and calls.difference is None:
                break
            call = self._repeat(checked, Untimed(fresh=draw_fresh(), bare=bare), timeout_s)
            calls.add(call, bare=bare)
            pairs = zip(before, board.outputs(self._set), strict=True)
            if not all(torch.equal(_bits(a), _bits(b)) for a, b in pairs):
                self.deterministic = False
                self._check_values(checked)
        calls.check_alike()
        if self._rules[checked.case.workload].looks(checked):
            how = Untimed(fresh=draw_fresh())
            calls.check_kept(first, lambda known: self._repeat(known, how, timeout_s, moves=False))

    def _visit_all(self, checked: Known, timeout_s: float) -> None:
        """Make a call at each address that may be drawn: a new one may want a buffer of its own."""
        for index in range(min(MAX_DRAWN, len(self._evaluation.board.sets))):
            self._set = index
            self._repeat(checked, Untimed(fresh=draw_fresh()), timeout_s, moves=False)

    def _repeat(
        self, checked: Known, how: Untimed, timeout_s: float, *, moves: bool = True
    ) -> WatchedCall:
        """Call once more, as a rule at an address that is drawn, and hold it against the rules."""
        rules = self._rules[checked.case.workload]
        if moves:
            self._set = draw_set(len(self._evaluation.board.sets), self._set)
        looks = rules.looks(checked) and not how.bare
        call = self._call(checked, dataclasses.replace(how, looks=looks), timeout_s)
        check_started(call.started)
        if call.seen is not None:
            rules.check(checked, call.seen, looked=looks)
        return call

    def _check_untouched(self, draw: Any) -> None:
        board = self._evaluation.board
        if not board.inputs_unchanged(self._set, draw):
            raise _modified("an input was modified; write into tensors of your own")
        if not board.state_unchanged(draw):
            raise _modified("a parameter or buffer was modified; write into tensors of your own")
        if not board.arena.gaps_intact(board.layout):
            raise _modified("memory between the tensors was written: an out-of-bounds store")

    def _check_values(self, checked: Known) -> None:
        case = checked.case
        for i, (output, golden) in enumerate(
            zip(self._evaluation.board.outputs(self._set), checked.goldens, strict=True)
        ):
            bound = case.bounds[i]
            result = checked.judge(i, output)
            record = case_result(case, i, bound, result)
            if result.passed:
                self.results.append(record)
                continue
            beyond = count_beyond(output, golden, 0.0 if bound.exact else tail_limit(bound))
            failed = case_result(case, i, bound, result, mismatches=beyond)
            self.results.append(failed)
            self.wrong = Wrong(
                failed, output, golden, bound, checked.reference, checked.draw, result.beyond
            )
            evidence = describe_mismatch(self.wrong)
            raise Failed(Status.INCORRECT_NUMERICAL, Stage.CORRECTNESS, evidence)


def case_result(
    case: Case, index: int, bound: Bound, result: GateResult, *, mismatches: int = 0
) -> CaseResult:
    """Return the record of one gated output."""
    finite = result.stats.nonfinite == 0
    rigour = Rigour.CUT if result.is_cut else bound.rigour
    return CaseResult(
        workload=case.workload,
        profile=case.profile,
        output=f"output{index}",
        passed=result.passed,
        rule=result.rule,
        rmse=result.stats.rmse if finite else None,
        max_abs=result.stats.max_abs if finite else None,
        eager_rmse=bound.envelope_rmse,
        eager_max_abs=bound.envelope_max,
        golden_rms=bound.golden_rms,
        mismatches=mismatches,
        worst_index=unravel(result.stats.worst, bound.shape),
        rigour=Rigour.FULL if bound.exact else rigour,
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as bytes: NaN is not equal to itself."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _modified(text: str) -> Failed:
    return Failed(
        Status.INPUT_MODIFIED, Stage.CORRECTNESS, Evidence(kind="input_modified", message=text)
    )


def _sync(draw: Any) -> None:
    if any(t.is_cuda for t in (*draw.inputs, *draw.state.values()) if isinstance(t, torch.Tensor)):
        torch.cuda.synchronize()
