"""A bundle judged on this machine: the real judge, on `cpu`."""

import threading
import time

import pytest
from small_kernels import ROWS, ROWS_PROBLEM, candidate

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError, Pending
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import make_spec
from hotloop.verify.bundle import Bundle, Item, read_bundle, read_verdicts, write_bundle
from hotloop.verify.bundle_board import Board
from hotloop.verify.bundle_judge import JudgeOptions, Seat, judge_bundle
from hotloop.verify.bundle_plan import Plan
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in

PROBLEM = Problem(name="rows", kind=ProblemKind.KERNELBENCH, source=ROWS_PROBLEM)
BROKEN = Problem(
    name="broken", kind=ProblemKind.KERNELBENCH, source=ROWS_PROBLEM.replace("keepdim", "keep")
)
CPU = JudgeOptions(device="cpu")


def many(count):
    return [candidate(f"{ROWS}# {i}\n") for i in range(count)]


WRONG = candidate(ROWS.replace("1.0 + tl.sum", "2.0 + tl.sum"))
UNBUILT = candidate(ROWS.replace("tl.abs(values)", "tl.abs(nothing)"))


def bundle_of(*candidates, problem=PROBLEM, tier=Tier.FAST):
    items = tuple(Item(problem_id=problem.id, candidate=c, tier=tier) for c in candidates)
    return Bundle(problems={problem.id: problem}, items=items or (Item(problem_id=problem.id),))


class Run(MemoryStore):
    """A journal that is also read as a run."""

    def problem(self):
        return PROBLEM


@pytest.mark.slow
def test_a_whole_round_by_files(tmp_path):
    store = Run()
    store.begin(make_spec(PROBLEM, device="cpu"), PROBLEM)
    verifier = OutsideVerifier(store, PROBLEM)
    with pytest.raises(Pending):
        verifier.load(PROBLEM)
    told = carry(store, tmp_path)
    assert verifier.load(PROBLEM).device == "cpu"
    assert any("rows: loaded" in line for line in told)

    for kernel in (candidate(ROWS), WRONG, UNBUILT):
        store._candidates[kernel.id] = kernel
        with pytest.raises(Pending):
            verifier.verify(kernel, Tier.FAST)
    carry(store, tmp_path)
    assert verifier.verify(candidate(ROWS), Tier.FAST).status is Status.PASSED
    assert verifier.verify(WRONG, Tier.FAST).status is Status.INCORRECT_NUMERICAL
    assert verifier.verify(UNBUILT, Tier.FAST).status is Status.COMPILE_ERROR
    assert pending_items(store) == []


def carry(store, folder):
    """Bundle what is pending, judge it, take it in; return what the judge told."""
    wanted = bundle_of()
    wanted = Bundle(problems=wanted.problems, items=tuple(pending_items(store)))
    write_bundle(folder / "b", wanted)
    told = []
    judged = judge_bundle(read_bundle(folder / "b"), folder / "v", CPU, told.append)
    assert judged.pending == 0
    assert read_verdicts(folder / "v") == judged.verdicts
    take_in(store, PROBLEM, judged.verdicts)
    return told


@pytest.mark.slow
def test_a_broken_problem_is_an_error_and_the_others_are_judged(tmp_path):
    both = Bundle(
        problems={BROKEN.id: BROKEN, PROBLEM.id: PROBLEM},
        items=(*bundle_of(problem=BROKEN).items, *bundle_of(candidate(ROWS)).items),
    )
    two = JudgeOptions(device="cpu", gpus=(None, None))
    judged = judge_bundle(both, tmp_path / "v", two)
    (error,) = judged.verdicts.errors
    assert (error.problem_id, error.candidate_id) == (BROKEN.id, None)
    assert error.problem_error is not None
    assert [v.status for v in judged.verdicts.verdicts] == [Status.PASSED]
    assert judged.pending == 0


def deadly(name):
    """Return a problem that ends every judge that loads it."""
    source = f"import os\nos._exit(3)  # {name}\n"
    return Problem(name=name, kind=ProblemKind.KERNELBENCH, source=source)


def judge_with(*bad, tmp_path):
    """Judge a good problem behind bad ones on one seat."""
    problems = [*bad, PROBLEM]
    items = [
        item
        for count, problem in zip(range(len(problems), 0, -1), problems, strict=True)
        for item in bundle_of(*many(count), problem=problem).items
    ]
    wanted = Bundle(problems={p.id: p for p in problems}, items=tuple(items))
    return judge_bundle(wanted, tmp_path / "v", CPU)


@pytest.mark.slow
def test_one_problem_that_ends_its_judge_does_not_end_the_work(tmp_path):
    bad = deadly("one")
    judged = judge_with(bad, tmp_path=tmp_path)
    assert [v.status for v in judged.verdicts.verdicts] == [Status.PASSED]
    assert [(e.problem_id, e.error) for e in judged.verdicts.errors] == [(bad.id, "WorkerDied")]
    assert judged.pending == 2


@pytest.mark.slow
def test_a_seat_is_left_after_two_problems_that_it_cannot_load(tmp_path):
    judged = judge_with(deadly("one"), deadly("two"), tmp_path=tmp_path)
    assert judged.verdicts.verdicts == ()
    assert [e.error for e in judged.verdicts.errors] == ["WorkerDied", "WorkerDied"]


@pytest.mark.slow
@pytest.mark.parametrize("is_mended", [True, False])
def test_a_problem_that_fails_after_its_load_is_the_fault_of_the_machine(tmp_path, is_mended):
    flag = tmp_path / "fault"
    source = ROWS_PROBLEM.replace(
        "        return x /",
        f"        import os\n        assert not os.path.exists({str(flag)!r})\n        return x /",
    )
    moody = Problem(name="moody", kind=ProblemKind.KERNELBENCH, source=source)
    told = []

    def tell(line):
        told.append(line)
        if "moody: loaded" in line:
            flag.touch()
        elif is_mended and "trying once more" in line:
            flag.unlink()

    wanted = bundle_of(candidate(ROWS), problem=moody, tier=Tier.FINAL)  # draws anew
    board = Board(tmp_path / "v")
    Seat(Plan(wanted, endless, seats=1), board, CPU, gpu=None, lanes=1, tell=tell).run()
    judged = board.judged(wanted)
    assert sum("trying once more" in line for line in told) == 1, told
    if is_mended:
        assert [v.status for v in judged.verdicts.verdicts] == [Status.PASSED]
        assert (judged.pending, judged.verdicts.errors) == (0, ())
    else:
        (error,) = judged.verdicts.errors
        assert (error.candidate_id, error.error) == (candidate(ROWS).id, "InfraError")
        assert "ProblemError" in error.message
        assert judged.pending == 1


@pytest.mark.slow
def test_what_does_not_fit_the_time_stays_pending(tmp_path):
    slow = ROWS.replace("import torch,", "import time, torch,").replace(
        "        y = torch", "        time.sleep(30)\n        y = torch"
    )
    options = JudgeOptions(device="cpu", budget_s=30.0)
    began = time.monotonic()
    # The first one is built beside the load, which waits for it.
    judged = judge_bundle(bundle_of(candidate(ROWS), candidate(slow)), tmp_path / "v", options)
    assert 29.0 < time.monotonic() - began < 40.0
    assert judged.pending == 1
    found = read_verdicts(tmp_path / "v")
    assert PROBLEM.id in found.infos
    assert [v.status for v in found.verdicts] == [Status.PASSED]


def test_no_time_at_all_starts_nothing_and_leaves_an_empty_file(tmp_path):
    options = JudgeOptions(device="cpu", budget_s=5.0)
    judged = judge_bundle(bundle_of(candidate(ROWS)), tmp_path / "v", options)
    assert (judged.items, judged.pending) == (1, 1)
    assert read_verdicts(tmp_path / "v").infos == {}


def test_a_place_that_cannot_be_written_shows_before_any_work(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        judge_bundle(bundle_of(candidate(ROWS)), tmp_path / "none" / "v", CPU)


def test_the_final_tier_needs_a_gpu(tmp_path):
    with pytest.raises(ConfigError, match="needs a GPU"):
        judge_bundle(bundle_of(candidate(ROWS), tier=Tier.FINAL), tmp_path / "v", CPU)


# ---- who judges what


def endless():
    return float("inf")


def test_large_problems_first_and_fast_before_final():
    other = Problem(name="other", kind=ProblemKind.NATIVE, source="# other\n")
    final = Item(problem_id=PROBLEM.id, candidate=candidate(ROWS), tier=Tier.FINAL)
    fast = [Item(problem_id=PROBLEM.id, candidate=c, tier=Tier.FAST) for c in many(3)]
    bundle = Bundle(
        problems={other.id: other, PROBLEM.id: PROBLEM},
        items=(Item(problem_id=other.id), final, *fast, *fast),  # asked for twice, judged once
    )
    plan = Plan(bundle, endless, seats=2)
    group = plan.next_group()
    assert group.problem is PROBLEM
    assert plan.claim(group, 10) == [*fast, final]
    assert plan.next_group().problem is other


def test_an_idle_gpu_helps_only_where_that_is_worth_a_second_load():
    plan = Plan(bundle_of(*many(40)), endless, seats=2)
    plan.took(None, 10.0)
    plan.took(Tier.FAST, 2.0)
    group = plan.next_group()
    assert len(plan.claim(group, 4)) == 4
    assert plan.next_group() is group  # 72 s of work are left, and a load takes 10 s
    assert len(plan.claim(group, 10)) == 9  # a quarter: two share what is left
    plan.claim(group, 10)
    plan.claim(group, 10)
    plan.claim(group, 10)
    idle = threading.Thread(target=lambda: answers.append(plan.next_group()))
    answers = []
    idle.start()
    idle.join(0.3)
    assert idle.is_alive()  # the others may still fail and put items back
    plan.leave(group, is_loaded=True)
    plan.claim(group, 40)
    plan.leave(group, is_loaded=True)
    idle.join(5.0)
    assert answers == [None]


def test_what_was_put_back_is_handed_out_again_and_in_order():
    plan = Plan(bundle_of(*many(3)), endless, seats=2)
    group = plan.next_group()
    items = plan.claim(group, 3)
    plan.put_back(group, items[1:])
    plan.leave(group, is_loaded=True)
    assert plan.next_group() is group
    assert plan.claim(group, 3) == items[1:]


def fail_to_load(plan, failed=()):
    """Let a GPU take the next problem and fail; return what it could not load."""
    group = plan.next_group(failed)
    plan.load_failed(group)
    plan.leave(group, is_loaded=False)
    return [*failed, group]


@pytest.mark.parametrize(("seats", "limit"), [(1, 1), (2, 2), (3, 2)])
def test_a_problem_is_given_up_after_two_gpus_or_all(seats, limit):
    plan = Plan(bundle_of(), endless, seats=seats)
    for _ in range(limit):
        fail_to_load(plan)
    assert plan.next_group() is None


def test_what_a_gpu_could_not_load_is_left_to_the_others():
    bundle = Bundle(
        problems={BROKEN.id: BROKEN, PROBLEM.id: PROBLEM},
        items=(*bundle_of(problem=BROKEN).items, *bundle_of().items),
    )
    plan = Plan(bundle, endless, seats=2)
    failed = fail_to_load(plan)
    other = plan.next_group(failed)
    assert other not in failed
    assert plan.next_group() in failed
    plan.leave(other, is_loaded=False)
    assert plan.next_group([*failed, other]) is None


def group_at_three(plan):
    """Return a group that three GPUs are to load."""
    plan.took(None, 1.0)
    group = plan.next_group()
    assert [plan.next_group(), plan.next_group()] == [group, group]
    return group


def test_bad_gpus_close_no_problem_that_another_one_works_at():
    plan = Plan(bundle_of(*many(40)), endless, seats=3)
    group = group_at_three(plan)
    plan.loaded(group)
    for _ in range(2):
        plan.load_failed(group)
        assert not plan.close(group)
        plan.leave(group, is_loaded=False)
    assert len(plan.claim(group, 3)) == 3
    plan.leave(group, is_loaded=True)
    plan.load_failed(plan.next_group())  # nobody has it loaded any more
    assert plan.claim(group, 3) == []


def test_a_problem_that_was_given_up_is_served_where_it_loads_after_all():
    plan = Plan(bundle_of(*many(40)), endless, seats=3)
    group = group_at_three(plan)
    for _ in range(2):
        plan.load_failed(group)
        plan.leave(group, is_loaded=False)
    assert plan.claim(group, 3) == []
    plan.loaded(group)
    assert len(plan.claim(group, 3)) == 3


def test_a_broken_problem_is_closed_at_once():
    plan = Plan(bundle_of(*many(3)), endless, seats=2)
    group = plan.next_group()
    assert plan.close(group)
    plan.leave(group, is_loaded=False)
    assert plan.next_group() is None


def test_nothing_is_started_that_cannot_finish():
    left_s = [1000.0]
    plan = Plan(bundle_of(*many(3)), lambda: left_s[0], seats=2)
    group = plan.next_group()
    plan.took(None, 10.0)
    plan.took(Tier.FAST, 20.0)
    assert plan.fits(Tier.FAST)
    left_s[0] = 29.0
    assert not plan.fits(Tier.FAST)
    plan.leave(group, is_loaded=True)
    assert plan.next_group() is None
    plan.stop()
    assert plan.claim(group, 1) == []
