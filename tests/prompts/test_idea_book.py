"""Ideas before code: one call for a run, shared by its drafts, paid by one of them."""

import pytest
from runs import IDEAS, TASK, Run, broken, reply

from hotloop import errors
from hotloop.core.attempt import Action
from hotloop.core.model import Finish
from hotloop.store.memory import MemoryStore
from hotloop.testing.scripted_model import WAIT, told

DRAFTS = range(1, 5)


def with_ideas(ideas, **options):
    return Run({0: ideas} | {n: reply(str(n)) for n in range(1, 9)}, **options)


def ideas_costs(run, what="calls"):
    """What each sending of the call for ideas cost."""
    notes = [*run.store.notes("ideas_failed"), *run.store.notes("ideas")]
    return [note["cost"][what] for note in notes]


def test_four_drafts_at_a_time_make_one_call_and_carry_out_one_idea_each(in_thread):
    run = with_ideas(WAIT)
    drafts = [run.propose(n, idea=n - 1) for n in DRAFTS]
    results = [in_thread(run.write, draft) for draft in drafts]
    assert run.model.began.wait(5)
    run.model.script[0] = IDEAS
    assert run.model.attempts() == [0]
    run.model.release()
    written = [result(10) for result in results]
    assert run.model.attempts().count(0) == 1
    assert [w.spent.calls for w in written] == [1, 1, 1, 1]
    assert ideas_costs(run) == [1]
    assert len({w.asked.idea for w in written} - {None}) == 4


def test_each_draft_is_asked_for_its_idea():
    run = with_ideas(IDEAS)
    written = [run.step(n, broken(), idea=n - 1) for n in DRAFTS]
    ideas = ["Keep a row in registers.", "Two rows a program.", "Split each row.", "Persist."]
    assert [w.asked.idea for w in written] == ideas
    for number, idea in zip(DRAFTS, ideas, strict=True):
        carried = run.prompt(number).split("## The idea to carry out")[1]
        assert idea in carried
    assert "numbered list" in run.prompt(0)
    assert [w.spent.tokens for w in written] == [150, 150, 150, 150]
    assert ideas_costs(run, "tokens") == [150]


def test_a_draft_beyond_the_ideas_and_one_without_a_number_have_none():
    run = with_ideas("1. Only this one.")
    beyond = run.step(1, broken(), idea=3)
    plain = run.step(2, broken())
    assert beyond.asked.idea is plain.asked.idea is None
    assert any("no idea" in note for note in beyond.notes)
    assert "to carry out" not in run.prompt(1)


@pytest.mark.parametrize(
    "answer",
    [
        "I have none.",
        told(IDEAS, finish=Finish.REFUSAL),
        errors.BadReply("rubbish"),
        errors.DeadlinePassed("late"),
    ],
)
def test_without_ideas_the_drafts_go_on(answer):
    run = with_ideas(answer)
    written = [run.step(n, broken(), idea=n - 1) for n in (1, 2)]
    assert all(w.candidate is not None for w in written)
    assert all(any(note.startswith("no idea") for note in w.notes) for w in written)
    assert run.model.attempts() == [0, 1, 2]


@pytest.mark.parametrize("kind", [errors.AuthError, errors.QuotaExhausted, errors.NotRecorded])
def test_an_error_that_ends_the_run_ends_every_draft(kind, in_thread):
    run = with_ideas(lambda key, prompt: None)
    run.model.script = lambda key, prompt: kind("no") if key.attempt == 0 else reply()
    results = [in_thread(run.write, run.propose(n, idea=n - 1)) for n in DRAFTS]
    for result in results:
        with pytest.raises(kind):
            result(10)


def test_who_does_not_wait_gets_the_same_file_for_every_draft(in_thread):
    run = with_ideas(errors.Pending("answer it", waiting=("ideas.prompt.md",)))
    results = [in_thread(run.write, run.propose(n, idea=n - 1)) for n in DRAFTS]
    for result in results:
        with pytest.raises(errors.Pending) as told_it:
            result(10)
        assert told_it.value.waiting == ("ideas.prompt.md",)
    assert set(run.model.attempts()) == {0}
    later = run.again({0: IDEAS} | {n: reply() for n in DRAFTS})
    assert later.write(later.propose(3, idea=2)).asked.idea == "Split each row."
    assert later.model.prompt(0) == run.model.prompt(0)


def test_a_run_that_goes_on_has_the_same_ideas_and_does_not_pay_again():
    run = with_ideas(IDEAS)
    first = run.propose(1, idea=0)
    before = run.write(first)
    later = run.again({2: reply()})
    assert later.write(first) == before
    assert later.write(first).spent.calls == 1
    assert ideas_costs(later) == [1]
    second = later.write(later.propose(2, idea=1))
    assert (second.asked.idea, second.spent.calls) == ("Two rows a program.", 1)


def test_ideas_that_were_paid_and_not_read_are_not_asked_again():
    class DyingStore(MemoryStore):
        dies = True

        def note(self, kind, payload):
            if kind == "ideas" and self.dies:
                self.dies = False
                raise errors.StoreError("the disk is full")
            super().note(kind, payload)

    run = with_ideas(IDEAS, store=DyingStore())
    with pytest.raises(errors.StoreError):
        run.write(run.propose(1, idea=0))
    later = run.again({2: reply()})
    assert later.write(later.propose(2, idea=1)).asked.idea == "Two rows a program."


def test_after_two_failed_tries_nobody_asks_again():
    run = with_ideas(errors.BadReply("rubbish"))
    first = run.step(1, broken(), idea=0)
    second = run.again({0: errors.DeadlinePassed("late"), 2: reply(), 3: reply()})
    again = [second.step(n, broken(), idea=n - 1) for n in (2, 3)]
    assert second.model.attempts() == [0, 2, 3]
    third = run.again({4: reply()})
    last = third.step(4, broken(), idea=3)
    assert third.model.attempts() == [4]
    assert [w.spent.calls for w in (first, *again, last)] == [1, 1, 1, 1]
    assert ideas_costs(third) == [1, 1]
    assert any("late" in note for note in last.notes)
    assert last.candidate is not None


def test_one_failed_try_leaves_a_second_one_and_its_ideas_stay():
    run = with_ideas(errors.BadReply("rubbish"))
    run.step(1, broken(), idea=0)
    second = run.again({0: IDEAS, 2: reply()})
    assert second.step(2, broken(), idea=1).asked.idea == "Two rows a program."
    third = run.again({3: reply()})
    assert third.step(3, broken(), idea=2).asked.idea == "Split each row."


def test_a_failed_call_is_noted_once():
    run = with_ideas(errors.BadReply("rubbish"))
    first = run.propose(1, idea=0)
    before = run.write(first)
    assert (before.spent.calls, before.spent.usd) == (1, 0.01)
    after = run.again({}).write(first)
    assert (after.spent, after.candidate) == (before.spent, before.candidate)
    assert ideas_costs(run, "usd") == [None]


def test_calls_that_were_cut_are_paid_and_are_no_failed_tries(in_thread):
    run = with_ideas(WAIT)
    for number in (1, 2):
        leader = in_thread(run.write, run.propose(number, idea=0))
        assert run.model.began.wait(5)
        run.model.began.clear()
        run.generator.cancel(number)
        written = leader(10)
        assert (written.no_code.kind, written.spent.calls) == ("call_failed", 0)
    later = run.again({0: IDEAS, 1: reply(), 3: reply()})
    assert later.step(3, broken(), idea=2).asked.idea == "Split each row."
    assert later.step(1, broken(), idea=0).spent.calls == 1
    assert ideas_costs(later, "tokens") == [None, None, 150]


def test_a_draft_that_is_cut_leaves_the_ideas_to_another(in_thread):
    run = with_ideas(WAIT)
    first = in_thread(run.write, run.propose(1, idea=0))
    assert run.model.began.wait(5)
    run.model.script[0] = IDEAS
    second = in_thread(run.write, run.propose(2, idea=1))
    run.generator.cancel(1)
    assert first(10).no_code.kind == "call_failed"
    assert second(10).asked.idea == "Two rows a program."


def test_a_draft_that_waits_for_ideas_can_be_cut(in_thread):
    run = with_ideas(WAIT)
    leader = in_thread(run.write, run.propose(1, idea=0))
    assert run.model.began.wait(5)
    waiting = in_thread(run.write, run.propose(2, idea=1))
    run.generator.cancel(2)
    assert waiting(10).no_code.kind == "call_failed"
    run.model.script[0] = IDEAS
    run.model.release()
    assert leader(10).candidate is not None


def test_a_closed_model_ends_the_wait_for_ideas(in_thread):
    run = with_ideas(WAIT)
    leader = in_thread(run.write, run.propose(1, idea=0))
    assert run.model.began.wait(5)
    run.model.close()
    assert leader(10).no_code.kind == "call_failed"


def test_the_deadline_leaves_time_for_the_draft_itself():
    run = with_ideas(WAIT)
    written = run.write(run.propose(1, idea=0), deadline_s=0.4)
    assert written.candidate is not None
    assert any("no idea" in note for note in written.notes)


def test_a_prompt_is_shown_with_the_idea_only_when_it_is_known():
    run = with_ideas(IDEAS)
    draft = run.propose(2, idea=1)
    assert run.generator.prompt_for(TASK.info, draft).asked.idea is None
    assert "4 ideas" in run.generator.ideas_prompt(TASK.info).messages[-1].text
    run.step(1, broken(), idea=0)
    assert run.generator.prompt_for(TASK.info, draft).asked.idea == "Two rows a program."


def test_another_draft_without_a_parent_is_no_repair():
    run = with_ideas(IDEAS)
    run.step(1, broken(), idea=0)
    run.step(2, broken(), Action.DRAFT, idea=1)
    assert "Your kernel" not in run.prompt(2)
