"""Which of the prompts that were sent are rendered afresh after a refusal of the final tier."""

import dataclasses

import pytest
from prompt_cases import verdict
from runs import TASK, Run, broken, fast, reply

from hotloop import errors
from hotloop.core.attempt import Action
from hotloop.core.record import to_json
from hotloop.core.verdict import Stage, Status, Tier
from hotloop.prompts.renewal import Post

AWAITED = errors.Pending("later", waiting=("f",))


def refuse(run, number):
    """Have the final tier refuse the kernel of an attempt."""
    (attempt,) = [a for a in run.store.attempts() if a.id == number]
    wrong = dataclasses.replace(
        verdict(Status.INCORRECT_NUMERICAL, stage=Stage.CORRECTNESS, kind="values", message="off"),
        tier=Tier.FINAL, candidate_id=attempt.candidate_id,
    )  # fmt: skip
    note = {"attempt_id": number, "candidate_id": attempt.candidate_id, "verdict": to_json(wrong)}
    run.store.note("final", note)


def judged(latency_ms, candidate_id):
    return dataclasses.replace(fast(latency_ms), candidate_id=candidate_id)


def step(run, number, ends, *where):
    """As `Run.step`; the verdict bears the candidate's id."""
    proposal = run.propose(number, *where)
    written = run.write(proposal)
    ends = dataclasses.replace(ends, candidate_id=written.candidate.id)
    run.conclude(proposal, written, ends)


class Folder:
    """Notes what is to be withdrawn."""

    def __init__(self, *, is_unanswered=True, lying=()):
        self.is_unanswered = is_unanswered
        self.lying = lying
        self.asked = []

    @property
    def post(self):
        return Post(withdraw=self.withdraw, holds=self.holds)

    def withdraw(self, prompt, key, successor):
        self.asked.append((key.attempt, prompt.id, successor.id))
        return self.is_unanswered

    def holds(self, prompt, key):
        return prompt.id in self.lying


def waiting(action=Action.OPTIMISE):
    """A correct kernel, a prompt that awaits its answer, and then the kernel's refusal."""
    run = Run({1: reply("a"), 2: AWAITED})
    step(run, 1, fast())
    open_one = run.propose(2, action, 1)
    with pytest.raises(errors.Pending):
        run.write(open_one)
    refuse(run, 1)
    return run, open_one


def going_on(run, script, folder):
    return Run(script, task=run.task, store=run.store, post=folder.post)


@pytest.mark.parametrize("action", [Action.OPTIMISE, Action.REGENERATE])
def test_an_unanswered_prompt_is_rendered_afresh(action):
    run, open_one = waiting(action)
    folder = Folder()
    later = going_on(run, {2: reply("b")}, folder)
    written = later.write(open_one)
    assert later.prompt(2) != run.prompt(2)
    assert "## The best kernel so far" not in later.prompt(2)
    assert "values are wrong" in later.prompt(2)
    ((number, old, new),) = folder.asked
    assert (number, new) == (2, written.asked.prompt_id)
    assert old != new
    assert f"attempt {open_one.id}" in run.store.notes("warning")[-1]["message"]


def test_it_is_not_rendered_afresh_again():
    run, open_one = waiting()
    later = going_on(run, {2: AWAITED}, Folder())
    with pytest.raises(errors.Pending):
        later.write(open_one)
    folder = Folder()
    last = going_on(run, {2: reply("b")}, folder)
    last.write(open_one)
    assert last.prompt(2) == later.prompt(2)
    assert folder.asked == []
    assert last.generator.prompt_for(TASK.info, open_one).prompt.messages[-1].text == last.prompt(2)


def test_one_that_was_answered_meanwhile_stays():
    run, open_one = waiting()
    later = going_on(run, {2: reply("b")}, Folder(is_unanswered=False))
    later.write(open_one)
    assert later.prompt(2) == run.prompt(2)


def test_a_call_that_may_have_been_paid_stays():
    run, open_one = waiting()
    later = run.again({2: reply("b")})
    later.write(open_one)
    assert later.prompt(2) == run.prompt(2)


def test_a_reply_in_the_journal_is_never_lost():
    run = Run({1: reply("a"), 2: reply("b")})
    step(run, 1, fast())
    open_one = run.propose(2, Action.OPTIMISE, 1)
    first = run.write(open_one)  # the run is killed before its candidate is written down
    refuse(run, 1)
    folder = Folder()
    later = going_on(run, {}, folder)  # any call would be a KeyError
    assert later.write(open_one) == first
    assert folder.asked == []


def test_a_refusal_of_what_it_does_not_show_changes_nothing():
    run = Run({1: reply("a"), 2: reply("b"), 3: AWAITED}, sees="execution")
    step(run, 1, fast(0.5))
    step(run, 2, fast(0.4))
    open_one = run.propose(3, Action.OPTIMISE, 2)
    with pytest.raises(errors.Pending):
        run.write(open_one)
    refuse(run, 1)
    folder = Folder()
    later = Run({3: reply("c")}, store=run.store, sees="execution", post=folder.post)
    later.write(open_one)
    assert later.prompt(3) == run.prompt(3)
    assert folder.asked == []


def test_a_refusal_that_it_reckons_with_already_makes_no_prompt_outdated():
    run = Run({1: reply("a"), 2: reply("b"), 3: AWAITED}, sees="execution")
    step(run, 1, fast(0.5))
    step(run, 2, fast(0.4))
    refuse(run, 2)
    open_one = run.propose(3, Action.OPTIMISE, 2)
    with pytest.raises(errors.Pending):
        run.write(open_one)
    assert "values are wrong" in run.prompt(3)
    refuse(run, 1)  # of this one it shows nothing
    folder = Folder()
    later = Run({3: reply("c")}, store=run.store, sees="execution", post=folder.post)
    later.write(open_one)
    assert later.prompt(3) == run.prompt(3)
    assert folder.asked == []


def test_the_time_that_a_repair_is_to_beat_is_renewed_too():
    run = Run({1: reply("a"), 2: reply("b"), 3: reply("c"), 4: AWAITED})
    step(run, 1, fast(0.5))
    step(run, 2, fast(0.4), Action.OPTIMISE, 1)
    step(run, 3, broken(), Action.OPTIMISE, 2)
    open_one = run.propose(4, Action.REPAIR, 3)
    with pytest.raises(errors.Pending):
        run.write(open_one)
    assert "A correct kernel exists already: 0.4 ms" in run.prompt(4)
    refuse(run, 2)
    later = going_on(run, {4: reply("d")}, Folder())
    later.write(open_one)
    assert "A correct kernel exists already: 0.5 ms" in later.prompt(4)


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_run_that_was_killed_while_it_replaced_a_prompt_replaces_it(is_noted):
    run, open_one = waiting()
    killed = going_on(run, {}, Folder())  # it is withdrawn in the folder; nothing was sent
    fresh = killed.generator._prompts.outdated(TASK.info, open_one)
    if is_noted:
        killed.generator._prompts.note(open_one, fresh)
    folder = Folder()
    later = going_on(run, {2: reply("b")}, folder)
    written = later.write(open_one)
    assert written.asked.prompt_id == fresh.prompt.id
    assert len(folder.asked) == 1


class Died(BaseException):
    """The process is gone."""


def killed_while_withdrawing():
    """A prompt that waits, and the id of the one that a killed session laid in its place."""
    run, open_one = waiting()
    folder = Folder()

    def die(prompt, key, successor):
        folder.withdraw(prompt, key, successor)
        raise Died

    post = Post(withdraw=die, holds=folder.holds)
    with pytest.raises(Died):
        Run({}, task=run.task, store=run.store, post=post).write(open_one)
    ((_, _, laid),) = folder.asked
    return run, open_one, laid


def test_what_a_killed_session_laid_there_is_what_waits():
    run, open_one, laid = killed_while_withdrawing()
    folder = Folder(lying={laid})
    later = going_on(run, {2: reply("b")}, folder)
    assert later.write(open_one).asked.prompt_id == laid
    assert folder.asked == []
    assert len(run.store.notes("warning")) == 1


def test_what_was_announced_and_does_not_lie_there_is_laid_there():
    run, open_one, laid = killed_while_withdrawing()
    folder = Folder()
    going_on(run, {2: reply("b")}, folder).write(open_one)
    assert [new for _, _, new in folder.asked] == [laid]
    assert len(run.store.notes("successor")) == 1
