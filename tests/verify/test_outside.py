"""A judge reached by files: what is unknown is wanted once, what comes back is taken in once."""

from dataclasses import replace

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.audit import Audit
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict
from hotloop.errors import DeviceLost, Pending, ProblemError, UnsupportedOp
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import make_spec
from hotloop.verify.bundle import JudgeError, Verdicts, read_verdicts
from hotloop.verify.bundle_board import Board
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in
from hotloop.verify.outside_notes import last_audit

PROBLEM = Problem(name="double", kind=ProblemKind.KERNELBENCH, source="# a reference\n")
INFO = ProblemInfo(
    problem_id=PROBLEM.id,
    device="cuda",
    inputs=(),
    outputs=(),
    parameters=(),
    graph=None,
    attention=None,
    flops=None,
    io_bytes=4,
    rankable=True,
    environment={"gpu": "a GPU", "isolation": "T1"},
)


def verdict(kernel=None, tier=Tier.FAST, problem=PROBLEM):
    return Verdict(
        status=Status.PASSED,
        stage=Stage.PERFORMANCE,
        message="passed",
        candidate_id=(kernel or candidate(DOUBLE)).id,
        problem_id=problem.id,
        tier=tier,
        device="cuda",
        performance=Performance(
            latency_ms=0.5, spread_ms=0.01, samples=7, timer="cupti", l2="cold"
        ),
    )


def error(name="WorkerDied", candidate_id=None, problem=PROBLEM):
    return JudgeError(
        problem_id=problem.id, candidate_id=candidate_id, error=name, message="it went wrong"
    )


class Run(MemoryStore):
    """A journal that is also read as a run."""

    def problem(self):
        return PROBLEM


@pytest.fixture
def store():
    store = Run()
    store.begin(make_spec(PROBLEM), PROBLEM)
    return store


@pytest.fixture
def loaded(store):
    """A journal that has the problem's info, and its verifier."""
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    return store, OutsideVerifier(store, PROBLEM)


def keep(store, kernel):
    """Let the store know a candidate, as an attempt that awaits its verdict does."""
    store._candidates[kernel.id] = kernel


def test_the_load_is_wanted_once_and_says_what_to_do(store):
    verifier = OutsideVerifier(store, PROBLEM)
    for _ in range(2):
        with pytest.raises(Pending, match=r"hotloop bundle RUN .* --verdicts VERDICTS"):
            verifier.load(PROBLEM)
    assert [item.key for item in pending_items(store)] == [(PROBLEM.id, None, None)]
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    assert verifier.load(PROBLEM) == INFO
    assert pending_items(store) == []


def test_a_verdict_is_wanted_once_for_each_tier(loaded):
    store, verifier = loaded
    keep(store, candidate(DOUBLE))
    for tier in (Tier.FAST, Tier.FAST, Tier.FINAL):
        with pytest.raises(Pending, match=f"{candidate(DOUBLE).id} has to be judged"):
            verifier.verify(candidate(DOUBLE), tier)
    assert [item.tier for item in pending_items(store)] == [Tier.FAST, Tier.FINAL]
    assert all(item.candidate == candidate(DOUBLE) for item in pending_items(store))
    assert [item.short for item in pending_items(store)] == [False, False]
    assert [item.short for item in pending_items(store, short=True)] == [False, True]
    take_in(store, PROBLEM, Verdicts(verdicts=(verdict(),)))
    assert verifier.verify(candidate(DOUBLE), Tier.FAST) == verdict()
    assert [item.tier for item in pending_items(store)] == [Tier.FINAL]


def test_what_the_static_rules_refuse_never_travels(loaded):
    store, verifier = loaded
    refused = verifier.verify(candidate("import subprocess\n" + DOUBLE), Tier.FAST)
    assert refused.status is Status.REJECTED_STATIC
    assert (refused.device, refused.isolation) == ("cuda", "T1")
    assert pending_items(store) == []
    verifier.build(candidate(DOUBLE))  # builds are the other machine's business
    assert pending_items(store) == []
    verifier.close()


def test_taking_in_twice_changes_nothing(loaded):
    store, verifier = loaded
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    other = replace(PROBLEM, source="# another\n")
    content = Verdicts(
        infos={PROBLEM.id: INFO, other.id: replace(INFO, problem_id=other.id)},
        verdicts=(verdict(), verdict(tier=Tier.FINAL), verdict(problem=other)),
        errors=(error(problem=other), error()),
    )
    first = take_in(store, PROBLEM, content)
    assert (first.infos, first.verdicts, first.ignored) == (0, 1, 4)  # nobody asked for the final
    assert len(first.warnings) == 1
    events = len(store._notes)
    second = take_in(store, PROBLEM, content)
    assert (second.infos, second.verdicts, second.ignored, second.warnings) == (0, 0, 4, ())
    assert len(store._notes) == events


def test_the_audit_of_the_last_load_is_kept_for_the_next(loaded):
    store, _ = loaded
    assert last_audit(store) is None  # the first load made none
    for key in ("a" * 16, "b" * 16, "b" * 16):
        info = replace(INFO, audit=Audit(key=key), rankable=False)
        assert take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: info})).infos == 0
    assert last_audit(store) == Audit(key="b" * 16)
    assert len(store.notes("outside_audit")) == 2  # the same one is not noted twice
    assert OutsideVerifier(store, PROBLEM).load(PROBLEM) == INFO  # what prompts were made of stays


def test_the_audit_of_the_first_load_is_one_too(store):
    audit = Audit(key="a" * 16, reasons=("ones pass",))
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: replace(INFO, audit=audit)}))
    assert last_audit(store) == audit


def test_a_verdict_that_came_once_is_not_replaced(loaded):
    store, verifier = loaded
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    take_in(store, PROBLEM, Verdicts(verdicts=(verdict(),)))
    later = replace(
        verdict(),
        status=Status.TIMEOUT,
        performance=None,
        evidence=Evidence(kind="timeout_gpu", message="slow"),
    )
    assert take_in(store, PROBLEM, Verdicts(verdicts=(later,))).verdicts == 0
    assert verifier.verify(candidate(DOUBLE), Tier.FAST).passed


def test_a_broken_problem_is_raised_and_a_later_load_heals_it(store):
    verifier = OutsideVerifier(store, PROBLEM)
    with pytest.raises(Pending):
        verifier.load(PROBLEM)
    taken = take_in(store, PROBLEM, Verdicts(errors=(error("UnsupportedOp"),)))
    assert (taken.errors, taken.warnings) == (1, ())
    with pytest.raises(UnsupportedOp, match="it went wrong"):
        verifier.load(PROBLEM)
    with pytest.raises(ProblemError):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    assert pending_items(store) == []
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    assert verifier.load(PROBLEM) == INFO


@pytest.mark.parametrize("candidate_id", [None, candidate(DOUBLE).id])
def test_a_machine_at_fault_leaves_the_item_pending(store, candidate_id):
    verifier = OutsideVerifier(store, PROBLEM)
    if candidate_id is not None:
        take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
        keep(store, candidate(DOUBLE))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)  # loads first
    taken = take_in(store, PROBLEM, Verdicts(errors=(error(candidate_id=candidate_id),)))
    assert "WorkerDied: it went wrong; it stays pending" in taken.warnings[0]
    assert len(pending_items(store)) == 1
    assert [note["message"] for note in store.notes("warning")] == list(taken.warnings)
    refused = [note["candidate_id"] for note in store.notes("outside_error")]
    assert refused == ([] if candidate_id is None else [candidate_id])
    assert (
        take_in(store, PROBLEM, Verdicts(errors=(error(candidate_id=candidate_id),))).warnings == ()
    )
    assert len(store.notes("outside_error")) == len(refused)
    if candidate_id is not None:
        assert verifier.load(PROBLEM) == INFO, "a candidate's error is none of the problem"


def not_judged(store):
    """Return a verdict file in which the machine could judge nothing that the run waits for."""
    errors = [
        JudgeError(
            problem_id=PROBLEM.id,
            candidate_id=item.candidate.id,
            error="DeviceLost",
            message="no GPU",
            tier=item.tier,
            asked=item.asked,
        )
        for item in pending_items(store)
    ]
    return Verdicts(errors=tuple(errors))


NEW_FIELDS = ("tier", "asked")


def refusals(store):
    return [(note["tier"], note["asked"]) for note in store.notes("outside_error")]


def test_each_asking_that_fails_counts_once(loaded):
    store, verifier = loaded
    keep(store, candidate(DOUBLE))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    first = not_judged(store)
    assert len(take_in(store, PROBLEM, first).warnings) == 1
    assert take_in(store, PROBLEM, first).warnings == ()
    assert refusals(store) == [("fast", 1)]
    second = not_judged(store)
    assert "it was asked for 2 times" in take_in(store, PROBLEM, second).warnings[0]
    for old in (first, second):
        take_in(store, PROBLEM, old)
    assert refusals(store) == [("fast", 1), ("fast", 2)]
    take_in(store, PROBLEM, Verdicts(verdicts=(verdict(),)))
    assert verifier.verify(candidate(DOUBLE), Tier.FAST).passed


def test_a_note_of_an_older_version_counts_for_every_tier_and_once(loaded):
    store, verifier = loaded
    keep(store, candidate(DOUBLE))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    old = error(candidate_id=candidate(DOUBLE).id)
    store.note("outside_error", {k: v for k, v in to_json(old).items() if k not in NEW_FIELDS})
    take_in(store, PROBLEM, Verdicts(errors=(old,)))
    assert len(store.notes("outside_error")) == 1
    assert [item.asked for item in pending_items(store)] == [2]


def test_what_failed_at_the_fast_tier_is_no_failure_of_the_final_one(loaded):
    store, verifier = loaded
    keep(store, candidate(DOUBLE))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    failed = not_judged(store)
    take_in(store, PROBLEM, failed)
    take_in(store, PROBLEM, Verdicts(verdicts=(verdict(),)))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FINAL)
    take_in(store, PROBLEM, failed)
    assert refusals(store) == [("fast", 1)]
    assert [(item.tier, item.asked) for item in pending_items(store)] == [(Tier.FINAL, 1)]
    take_in(store, PROBLEM, not_judged(store))
    assert refusals(store) == [("fast", 1), ("final", 1)]


def test_the_judge_says_which_asking_it_could_not_answer(loaded, tmp_path):
    store, verifier = loaded
    keep(store, candidate(DOUBLE))
    with pytest.raises(Pending):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    take_in(store, PROBLEM, not_judged(store))
    (item,) = pending_items(store)
    board = Board(tmp_path / "verdicts")
    board.failed(PROBLEM, item, DeviceLost("no GPU"))
    board.write()
    (told,) = read_verdicts(tmp_path / "verdicts").errors
    assert (told.tier, told.asked) == (Tier.FAST, 2)
