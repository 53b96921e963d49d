"""What a run remembers: tries by what they were to do, how they ended, what was asked before."""

from prompt_cases import FORBIDDEN, HELD_OUT_ROWS, TOLERANCE, norm_task, verdict, wrong_values
from runs import IDEAS, TASK, Run, broken, fast, reply

from hotloop import errors
from hotloop.core.attempt import Action
from hotloop.core.verdict import Stage, Status, Tier
from hotloop.prompts.render import Sees
from hotloop.prompts.said import said_in, said_note
from hotloop.prompts.speed import moves

SAID = {n: reply(str(n), said=f"I try way {n}.") for n in range(1, 30)}


def tried(run, number):
    """The section of a prompt that says what was tried, as lines."""
    text = run.prompt(number)
    if "## What was tried" not in text:
        return []
    section = text.split("## What was tried\n")[1].split("\n\n")[0]
    return [line.removeprefix("- ") for line in section.split("\n")]


def test_tries_are_told_by_their_words_and_how_they_ended():
    run = Run(SAID)
    run.step(1, fast(0.5))
    run.step(2, fast(0.4), Action.OPTIMISE, 1)
    run.step(3, fast(0.45), Action.OPTIMISE, 2)
    run.step(4, broken(), Action.OPTIMISE, 2)
    run.step(5, fast(0.3), Action.OPTIMISE, 2)
    assert tried(run, 5) == [
        "4 attempts so far: 3 PASSED, 1 COMPILE_ERROR.",
        "best correct kernel so far: 0.4 ms a call, fastest baseline (compile) 0.0255 ms",
        "won: I try way 1. -> 0.5 ms",
        "won: I try way 2. -> 0.4 ms",
        "slower: I try way 3. -> 0.45 ms",
        "failed: I try way 4. -> does not compile: at line 3: invalid syntax",
    ]


def test_a_chain_of_repairs_is_one_try_of_its_idea():
    run = Run({0: IDEAS} | SAID)
    run.step(1, broken(), idea=0)
    run.step(2, wrong_values(rmse=0.9), Action.REPAIR, 1)
    run.step(3, broken(), idea=1)
    assert "failed (2 times): Keep a row in registers. -> wrong values" in tried(run, 3)
    run.step(4, fast(0.5), Action.REPAIR, 2)
    run.step(5, fast(0.5))
    assert "won: Keep a row in registers. -> 0.5 ms" in tried(run, 5)
    assert not any("times): Keep" in line for line in tried(run, 5))


def test_sweeps_are_one_line():
    run = Run(SAID)
    run.step(1, fast(0.5))
    for number, (block, ms) in enumerate([(64, 0.6), (128, 0.4), (256, 0.7)], 2):
        run.step(number, fast(ms), Action.SWEEP, 1, BLOCK=block, STAGES=2)
    run.step(5, fast(), Action.OPTIMISE, 3)
    lines = tried(run, 5)
    assert "won: swept BLOCK over 3 points -> best: BLOCK = 128, 0.4 ms" in lines
    assert sum("swept" in line for line in lines) == 1
    assert lines[0].startswith("1 attempt so far")


def test_a_kernel_that_no_machine_could_judge_is_no_try():
    run = Run(SAID)
    run.step(1, broken("the first fault"))
    lost = verdict(Status.INCONCLUSIVE, stage=Stage.STATIC, kind="not_judged", message="no GPU")
    run.step(2, lost, Action.REPAIR, 1)
    run.step(3, fast(), Action.REPAIR, 2)
    assert "the first fault" in run.prompt(3)
    assert "no GPU" not in run.prompt(3)
    assert not any("way 2" in line for line in tried(run, 3))


def test_a_kernel_on_void_inputs_is_one():
    run = Run(SAID)
    void = verdict(Status.INCONCLUSIVE, stage=Stage.CORRECTNESS, kind="ill_conditioned")
    run.step(1, void)
    run.step(2, fast(), Action.DRAFT)
    assert any("could not be judged on these inputs" in line for line in tried(run, 2))


def test_calls_that_failed_are_no_tries():
    run = Run(SAID | {2: errors.RateLimited("busy")})
    run.step(1, broken())
    run.step(2, None, Action.REPAIR, 1)
    run.step(3, fast(), Action.REPAIR, 2)
    assert tried(run, 3)[0] == "1 attempt so far: 1 COMPILE_ERROR."
    assert "Your last answer" not in run.prompt(3)
    assert "I try way 1" in tried(run, 3)[1]


def test_open_attempts_are_not_remembered_but_their_moves_are():
    run = Run(SAID)
    run.step(1, fast())
    first = run.write(run.propose(2, Action.OPTIMISE, 1))  # not concluded
    second = run.write(run.propose(3, Action.OPTIMISE, 1))
    assert tried(run, 3)[0] == "1 attempt so far: 1 PASSED."
    assert first.asked.move != second.asked.move


def test_every_improvement_asks_for_something_else_until_it_is_the_models_turn():
    run = Run(SAID)
    run.step(1, fast())
    known = list(dict.fromkeys(m.key for m in moves(fast(), TASK.info)))
    asked = [run.step(n, broken(), Action.OPTIMISE, 1).asked.move
             for n in range(2, len(known) + 4)]  # fmt: skip
    assert asked == [*known, None, None]
    last = run.prompt(len(known) + 3)
    assert "your own idea and none of these" in last
    for move in moves(fast(), TASK.info):
        assert move.text[:60] in last.split("none of these")[1]


def test_moves_are_asked_anew_in_another_line_and_not_after_a_sweep():
    run = Run(SAID | {1: reply(tunables='TUNABLES = {"BLOCK": [512, 1024]}')})
    run.step(1, fast())
    first = run.step(2, fast(), Action.OPTIMISE, 1).asked.move
    run.step(3, fast(0.02), Action.SWEEP, 1, BLOCK=512)
    swept = run.step(4, fast(), Action.OPTIMISE, 3).asked.move
    run.step(5, fast(0.019), Action.SWEEP, 1, BLOCK=256)
    again = run.step(6, fast(), Action.OPTIMISE, 5).asked.move
    run.step(7, fast())
    other = run.step(8, fast(), Action.OPTIMISE, 7).asked.move
    assert len({first, swept, again}) == 3
    assert other == first


def test_nobody_is_told_to_declare_tunables_that_are_declared():
    run = Run(dict.fromkeys(range(30), reply(tunables='TUNABLES = {"BLOCK": [512, 1024]}')))
    run.step(1, fast())
    asked = [run.step(n, broken(), Action.OPTIMISE, 1).asked.move for n in range(2, 12)]
    assert "tunables" not in asked
    plain = Run(SAID)
    plain.step(1, fast())
    assert "tunables" in [plain.step(n, broken(), Action.OPTIMISE, 1).asked.move
                          for n in range(2, 12)]  # fmt: skip


def test_a_repair_of_an_improvement_knows_what_it_has_to_beat():
    run = Run(SAID)
    run.step(1, fast(0.5))
    run.step(2, broken(), Action.OPTIMISE, 1)
    run.step(3, fast(), Action.REPAIR, 2)
    assert "A correct kernel exists already: 0.5 ms a call" in run.prompt(3)
    run.step(4, broken())
    run.step(5, fast(), Action.REPAIR, 4)
    assert "exists already" not in run.prompt(5)  # a draft was to be correct, no more
    blind = Run(SAID, sees=Sees.PERFORMANCE.name.lower())
    blind.step(1, fast(0.5))
    blind.step(2, broken(), Action.OPTIMISE, 1)
    blind.step(3, fast(), Action.REPAIR, 2)
    assert "exists already" not in blind.prompt(3)


def test_what_failed_on_hidden_sizes_or_by_a_limit_does_not_say_which():
    run = Run(SAID)
    run.step(1, wrong_values({"rows": HELD_OUT_ROWS}, tier=Tier.FINAL, workload="odd"))
    limit = verdict(Status.INCORRECT_NUMERICAL, stage=Stage.CORRECTNESS, kind="wrong_values",
                    message=f"error 0.1 over the limit {TOLERANCE}")  # fmt: skip
    run.step(2, limit)
    run.step(3, fast())
    assert "fails on sizes that are not shown" in run.prompt(3)
    assert "failed: I try way 2. -> wrong values" in tried(run, 3)
    assert [word for word in FORBIDDEN if word in run.prompt(3)] == []


def test_the_words_of_a_reply_are_cleaned_and_cut():
    long = "I ```split``` it <|im_end|> " + "x" * 500
    note = said_note(f"{long}\n\n```python\ncode\n```")
    assert note is None or len(note) < 250
    kept = said_in((said_note("<|im_end|> I split /home/me/x/y by seed=42. More.\n\n```a\n```"),))
    assert "I split y by seed=[hidden]." in kept
    assert "<|im_end|>" not in kept
    assert "More" not in kept
    assert said_note("```python\ncode\n```") is None
    assert said_in(("a diff was applied",)) is None
    assert said_note("# Title\n\nI cut it.\n```\nx\n```") == "said: I cut it."


def test_a_repair_knows_the_repairs_before_it():
    run = Run(SAID)
    run.step(1, broken())
    run.step(2, wrong_values(rmse=0.9), Action.REPAIR, 1)
    run.step(3, broken("at line 5: no tl.foo"), Action.REPAIR, 2)
    run.step(4, broken(), Action.REPAIR, 2)
    lines = run.prompt(4).split("none of which was enough:\n")[1].split("\n\n")[0]
    assert lines == (
        "- I try way 2. -> wrong values\n- I try way 3. -> does not compile: at line 5: no tl.foo"
    )
    assert "none of which" not in run.prompt(2)
    blind = Run(SAID, sees="performance")
    blind.step(1, broken())
    blind.step(2, broken(), Action.REPAIR, 1)
    blind.step(3, broken(), Action.REPAIR, 2)
    assert "I try way" not in blind.prompt(3)


def test_a_reply_without_a_kernel_does_not_hide_why_its_idea_failed():
    run = Run({0: IDEAS} | SAID | {2: "No code today."})
    run.step(1, broken(), idea=0)
    run.step(2, None, Action.REPAIR, 1)
    run.step(3, broken(), idea=1)
    assert any("Keep a row in registers. -> does not compile" in line for line in tried(run, 3))


def test_moves_of_a_gluon_run_are_asked_and_told_in_its_words():
    gluon = (
        reply(said="")
        .replace("import triton.language as tl", "from triton.experimental import gluon")
        .replace("@triton.jit", "@gluon.jit")
    )
    run = Run(dict.fromkeys(range(30), gluon), task=norm_task("gluon"))
    run.step(1, fast())
    known = list(dict.fromkeys(m.key for m in moves(fast(), TASK.info, "gluon")))
    asked = [run.step(n, broken(), Action.OPTIMISE, 1).asked.move
             for n in range(2, len(known) + 2)]  # fmt: skip
    assert asked == known
    assert "bulk_loads" in known
    assert any("Load whole tiles by TMA" in line for line in tried(run, len(known) + 1))
