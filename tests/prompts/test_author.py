"""The model generator: prompts by the journal, replies to candidates, failures by their type."""

import pytest
from prompt_cases import FORBIDDEN, SECRET_DETAILS, candidate, norm_task, verdict, wrong_values
from runs import IDEAS, TASK, Run, broken, fast, kernel, reply

from hotloop import errors
from hotloop.core.attempt import Action
from hotloop.core.model import Finish, Reply
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Stage, Status
from hotloop.prompts.calling import MAX_FAILURES_IN_A_ROW
from hotloop.testing.scripted_model import WAIT, told

PROSE = "I would use one row a program. Shall I go on?"


def test_a_reply_becomes_a_candidate_with_its_prompt_and_cost():
    run = Run({1: reply(tunables='TUNABLES = {"BLOCK": [512, 1024]}')})
    written = run.write(run.propose(1))
    assert written.candidate.text().startswith("import torch")
    assert [d.name for d in written.declared.dimensions] == ["BLOCK"]
    assert (written.asked.template, written.asked.sees) == ("first", "memory")
    assert written.asked.prompt_id == run.model.calls[0][1].id
    assert (written.spent.calls, written.spent.tokens, written.spent.usd) == (1, 150, 0.01)
    assert written.spent.call_s == 2.0
    assert "said: I keep the row on the chip." in written.notes


def test_costs_that_nobody_stated_are_unknown_and_a_folder_is_free():
    silent = Reply(text=reply())
    paid = Run({1: silent})
    free = Run({1: silent}, paid=False)
    assert paid.write(paid.propose(1)).spent.usd is None
    spent = free.write(free.propose(1)).spent
    assert (spent.usd, spent.tokens) == (0.0, None)


def test_what_needs_a_call():
    run = Run({})
    asks = {a for a in Action if run.generator.needs_call(run.propose(len(a), a))}
    assert asks == {Action.DRAFT, Action.REPAIR, Action.OPTIMISE, Action.REGENERATE}


def test_the_start_and_a_sweep_ask_nobody():
    start = candidate(kernel(tunables='TUNABLES = {"BLOCK": [512, 1024]}'))
    run = Run({}, start=start)
    begun = run.step(1, fast(), Action.START)
    swept = run.step(2, fast(), Action.SWEEP, 1, BLOCK=512)
    assert begun.candidate == start
    assert begun.declared == swept.declared is not None
    assert (swept.candidate.pins, swept.candidate.sources) == ({"BLOCK": 512}, start.sources)
    assert begun.spent.calls == swept.spent.calls == 0
    assert run.model.calls == []
    with pytest.raises(ValueError, match="schedule"):
        run.write(run.propose(3, Action.SCHEDULE))


def test_a_start_without_a_starting_kernel_is_a_mistake_of_the_caller():
    run = Run({})
    with pytest.raises(ValueError, match="start"):
        run.write(run.propose(1, Action.START))


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="performance"):
        Run({}, sees="everything")


CUDA = """I scale a row a block.

```cuda
/* {"inputs": {"x": ["R", "C"]}, "outputs": {"y": {"shape": ["R", "C"], "dtype": "float32"}},
    "kernels": [{"name": "k", "grid": ["R"], "block": [256], "args": ["x", "y", "C"]}]} */
extern "C" __global__ void k(const float* x, float* y, int c) { y[blockIdx.x] = x[c]; }
```
"""


def test_cuda_is_written_mended_and_improved():
    run = Run(dict.fromkeys(range(1, 9), CUDA), task=norm_task("cuda"))
    assert run.step(1, broken()).candidate.entry == "kernel.cu"
    run.step(2, fast(), Action.REPAIR, 1)
    asked = [run.step(n, fast(), Action.OPTIMISE, 2).asked.move for n in range(3, 9)]
    assert "## Language: CUDA C++" in run.prompt(1)
    assert "```cuda\n/* {" in run.prompt(2).split("## Your kernel")[1]
    assert "tunables" not in asked  # such a file cannot declare any
    assert None in asked


# -- the same prompt again ----------------------------------------------------------------------


def test_an_open_attempt_gets_its_prompt_again_whatever_was_concluded_meanwhile():
    run = Run({1: reply("a"), 2: errors.Pending("later", waiting=("f",)), 3: reply("c")})
    run.step(1, broken())
    open_one = run.propose(2, Action.REPAIR, 1)
    with pytest.raises(errors.Pending):
        run.write(open_one)
    run.step(3, fast())
    later = run.again({2: reply("b"), 4: reply("d")})
    written = later.write(open_one)
    assert later.prompt(2) == run.prompt(2)
    assert written.asked.template == "repair"
    assert written.asked.prompt_id == later.model.calls[0][1].id
    fresh = later.write(later.propose(4, Action.REPAIR, 1))  # its attempt has no prompt yet
    assert fresh.asked.prompt_id != written.asked.prompt_id


def test_a_reply_is_paid_once():
    run = Run({1: reply()})
    proposal = run.propose(1)
    first = run.write(proposal)
    again = run.again({})  # any call would be a KeyError
    second = again.write(proposal)
    assert second == first


def test_the_next_prompt_is_shown_without_a_call_and_without_a_note():
    run = Run({1: reply()})
    run.step(1, broken())
    proposal = run.propose(2, Action.REPAIR, 1)
    shown = run.generator.prompt_for(TASK.info, proposal)
    assert (shown.asked.template, run.model.attempts()) == ("repair", [1])
    assert len(run.store.notes("asked")) == 1
    later = run.again({2: reply()})
    later.write(proposal)
    assert later.prompt(2) == shown.prompt.messages[-1].text
    assert later.generator.prompt_for(TASK.info, proposal).prompt == shown.prompt


# -- replies without code -----------------------------------------------------------------------


def test_a_reply_without_code_is_told_in_the_next_prompt_beside_the_code_it_was_about():
    run = Run({1: reply("subject"), 2: PROSE, 3: reply()})
    run.step(1, broken("at line 8: no such name"))
    nothing = run.step(2, None, Action.REPAIR, 1)
    assert nothing.no_code.kind == "no_code"
    assert nothing.no_code.details["reason"] == "prose_only"
    run.step(3, fast(), Action.REPAIR, 2)
    text = run.prompt(3)
    assert "Your last answer to this" in text
    assert "prose alone" in text
    assert "# subject" in text
    assert "no such name" in text
    assert "Your last answer to this" not in run.prompt(2)


def test_a_first_reply_without_an_interface_is_shown_and_keeps_its_idea():
    code = reply().replace("ModelNew", "Model2")
    run = Run({0: IDEAS, 1: code, 2: reply()})
    nothing = run.step(1, None, idea=1)
    assert nothing.no_code.details["reason"] == "no_entry"
    written = run.step(2, fast(), Action.REPAIR, 1)
    assert "class Model2" in run.prompt(2)
    assert "class ModelNew(torch.nn.Module)`, found code without it" in run.prompt(2)
    assert "Two rows a program." in run.prompt(2)
    assert (written.asked.template, written.asked.idea) == ("first", "Two rows a program.")


def test_an_improvement_without_code_is_asked_for_as_an_improvement():
    run = Run({1: reply("good"), 2: PROSE, 3: reply()})
    run.step(1, fast())
    run.step(2, None, Action.OPTIMISE, 1)
    written = run.step(3, fast(), Action.REPAIR, 2)
    assert written.asked.template == "optimise"
    assert "prose alone" in run.prompt(3)


def test_a_cut_off_answer_says_so():
    run = Run({1: told("", finish=Finish.LENGTH)})
    written = run.write(run.propose(1))
    assert "length limit" in written.no_code.message


def test_a_refusal_is_no_code_and_teaches_the_next_prompt_nothing():
    run = Run({1: told("I cannot help.", finish=Finish.REFUSAL), 2: reply()})
    refused = run.step(1, None)
    run.step(2, fast(), Action.REPAIR, 1)
    assert (refused.no_code.kind, refused.spent.tokens) == ("refused", 150)
    assert "declined" in refused.no_code.message
    assert "last answer" not in run.prompt(2)
    assert "cannot help" not in run.prompt(2)
    assert "What was tried" not in run.prompt(2)


def test_a_diff_that_nobody_asked_for_is_applied_to_what_was_shown():
    diff = "It is one word.\n\n```diff\n@@ -5,1 +5,1 @@\n-BLOCK = 1024\n+BLOCK = 2048\n```\n"
    run = Run({1: reply(), 2: diff})
    run.step(1, fast())
    assert "BLOCK = 2048" in run.step(2, fast(), Action.OPTIMISE, 1).candidate.text()
    blind = Run({1: reply(), 2: diff}, sees="nothing")
    blind.step(1, fast())
    missed = blind.step(2, None, Action.OPTIMISE, 1)
    assert missed.no_code.details["reason"] == "diff_without_parent"


# -- failing calls ------------------------------------------------------------------------------

FAILING = (errors.BadReply, errors.ReplyTooLong, errors.ContextOverflow, errors.Refused,
           errors.SentTwice, errors.RateLimited, errors.DeadlinePassed)  # fmt: skip
ENDING = (errors.AuthError, errors.UnknownModel, errors.QuotaExhausted, errors.EndpointDown,
          errors.RequestRejected, errors.NotRecorded, errors.Pending)  # fmt: skip


@pytest.mark.parametrize("kind", FAILING)
def test_a_call_that_fails_by_itself_is_an_attempt_without_code(kind):
    run = Run({1: kind("the reason"), 2: reply()})
    failed = run.step(1, None)
    assert failed.no_code.kind == "call_failed"
    assert "the reason" in failed.no_code.message
    assert failed.asked.template == "first"
    run.step(2, fast(), Action.REPAIR, 1)
    assert "the reason" not in run.prompt(2)
    assert run.prompt(2) == run.prompt(1)


@pytest.mark.parametrize("kind", ENDING)
def test_a_call_that_no_other_would_outdo_is_raised(kind):
    run = Run({1: kind("the reason")})
    with pytest.raises(kind, match="the reason"):
        run.write(run.propose(1))


def test_an_unknown_cost_of_a_failed_call_is_not_zero():
    lost = Run({1: errors.BadReply("rubbish")})
    turned_away = Run({1: errors.RateLimited("busy")})
    assert lost.write(lost.propose(1)).spent.tokens is None
    assert turned_away.write(turned_away.propose(1)).spent.tokens == 0


def test_failures_in_a_row_end_the_run_with_one_line():
    run = Run(dict.fromkeys(range(1, 9), errors.Refused("blocked")))
    for number in range(1, MAX_FAILURES_IN_A_ROW):
        assert run.write(run.propose(number)).no_code is not None
    with pytest.raises(errors.EndpointDown, match="5 calls in a row") as told_it:
        run.write(run.propose(MAX_FAILURES_IN_A_ROW))
    assert "blocked" in str(told_it.value)
    assert "\n" not in str(told_it.value)


def test_a_reply_between_failures_starts_the_count_anew():
    script = {n: reply() if n == 4 else errors.BadReply("rubbish") for n in range(1, 9)}
    run = Run(script)
    kinds = [run.write(run.propose(n)).no_code is None for n in range(1, 9)]
    assert kinds == [n == 4 for n in range(1, 9)]


def test_calls_that_run_out_of_time_are_no_sign_of_a_dead_endpoint():
    run = Run(dict.fromkeys(range(1, 9), errors.DeadlinePassed("late")))
    assert all(run.write(run.propose(n)).no_code for n in range(1, 9))


# -- what is shown ------------------------------------------------------------------------------

MARKS = {
    "code": "# last-code",
    "execution": "no such name",
    "memory": "What was tried",
}
LEVELS = ["nothing", "code", "execution", "performance", "memory"]


@pytest.mark.parametrize("sees", LEVELS)
def test_a_repair_shows_what_its_level_shows(sees):
    run = Run({1: reply("last-code"), 2: reply()}, sees=sees)
    run.step(1, broken("at line 8: no such name"))
    written = run.step(2, fast(), Action.REPAIR, 1)
    shown = {level for level, mark in MARKS.items() if mark in run.prompt(2)}
    below = LEVELS[: LEVELS.index(sees) + 1]
    assert shown == {level for level in MARKS if level in below}
    assert written.asked.template == ("first" if sees == "nothing" else "repair")
    assert written.asked.sees == sees


@pytest.mark.parametrize("sees", LEVELS)
def test_an_improvement_shows_times_from_performance_on(sees):
    run = Run({1: reply("last-code"), 2: reply()}, sees=sees)
    run.step(1, fast(0.0281))
    written = run.step(2, fast(), Action.OPTIMISE, 1)
    has_times = sees in ("performance", "memory")
    assert ("0.0281 ms" in run.prompt(2)) is has_times
    assert (written.asked.move is not None) is has_times
    assert ("The kernel is correct" in run.prompt(2)) is (sees not in ("nothing", "code"))


def test_with_code_alone_a_prompt_does_not_tell_how_it_ended():
    prompts = []
    for ends in (fast(), broken()):
        run = Run({1: reply(), 2: reply()}, sees="code")
        run.step(1, ends)
        run.step(2, fast(), Action.OPTIMISE if ends.passed else Action.REPAIR, 1)
        prompts.append(run.prompt(2))
    assert prompts[0] == prompts[1]


def test_without_sight_every_prompt_is_the_first():
    run = Run({n: PROSE if n == 2 else reply() for n in range(1, 5)}, sees="nothing")
    run.step(1, fast())
    run.step(2, None, Action.OPTIMISE, 1)
    run.step(3, broken(), Action.REPAIR, 2)
    run.step(4, broken(), Action.REGENERATE, 1)
    assert len({run.prompt(n) for n in range(1, 5)}) == 1


def test_the_values_of_a_sweep_are_told_with_the_code():
    run = Run({1: reply(tunables='TUNABLES = {"BLOCK": [512, 1024]}'), 3: reply()})
    run.step(1, fast())
    run.step(2, fast(0.02), Action.SWEEP, 1, BLOCK=512)
    run.step(3, fast(), Action.OPTIMISE, 2)
    assert "judged with BLOCK = 512 in place" in run.prompt(3)


def test_nothing_secret_is_ever_in_a_prompt():
    run = Run({0: IDEAS} | {n: reply() for n in range(1, 9)})
    secret = verdict(Status.RUNTIME_ERROR, stage=Stage.CORRECTNESS, details=SECRET_DETAILS,
                     message=SECRET_DETAILS["traceback"])  # fmt: skip
    run.step(1, secret, idea=0)
    run.step(2, wrong_values(rmse=0.9), Action.REPAIR, 1)
    run.step(3, fast(), Action.REPAIR, 2)
    run.step(4, secret, Action.OPTIMISE, 3)
    run.step(5, fast(), Action.REPAIR, 4)
    run.step(6, fast(), Action.REGENERATE, 3)
    run.step(7, fast(), idea=1)
    for _, prompt in run.model.calls:
        text = prompt.messages[-1].text
        assert [word for word in FORBIDDEN if word in text] == []


def test_a_cpu_prompt_holds_nothing_that_looks_like_speed():
    task = norm_task()
    info = ProblemInfo(**{f: getattr(task.info, f) for f in task.info.__slots__}
                       | {"device": "cpu", "baselines_ms": {}})  # fmt: skip
    run = Run({n: reply() for n in range(1, 4)})
    run.task = type(task)(problem=task.problem, info=info, language="triton")
    right = verdict(stage=Stage.CORRECTNESS, device="cpu")
    run.step(1, right)
    run.step(2, right, Action.OPTIMISE, 1)
    run.step(3, right, Action.OPTIMISE, 1)
    for word in ("slower", " ms", "won:"):
        assert word not in run.prompt(3)
    assert "- correct (2 times): I keep the row" in run.prompt(3)


# -- giving up ----------------------------------------------------------------------------------


def test_a_straggler_is_cut(in_thread):
    run = Run({1: WAIT})
    proposal = run.propose(1)
    result = in_thread(run.write, proposal)
    assert run.model.began.wait(5)
    run.generator.cancel(1)
    written = result(5)
    assert written.no_code.kind == "call_failed"
    assert "cut" in written.no_code.message
    assert written.asked.template == "first"


def test_a_call_that_was_cut_before_it_began_is_not_made():
    run = Run({1: reply()})
    run.generator.cancel(1)
    assert run.write(run.propose(1)).no_code.kind == "call_failed"
    assert run.model.calls == []


def test_cutting_another_call_changes_nothing():
    run = Run({1: reply()})
    run.generator.cancel(2)
    assert run.write(run.propose(1)).candidate is not None
