"""Golden prompts, what each ablation level shows, and what none of them shows.

To renew the goldens after a change of wording: HOTLOOP_RENEW=1 pytest tests/prompts/test_render.py
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_cases import (
    FORBIDDEN,
    KERNEL,
    SECRET_DETAILS,
    WORDS,
    attention_task,
    candidate,
    norm_task,
    passed,
    verdict,
    wrong_values,
)

from hotloop.core.verdict import Stage, Status
from hotloop.prompts import render
from hotloop.prompts.analysis import analyse
from hotloop.prompts.feedback import Judged
from hotloop.prompts.idea_list import parse_ideas
from hotloop.prompts.memory import Entry, Memory, Result
from hotloop.prompts.render import Context, Sees
from hotloop.prompts.speed import moves

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
MEMORY = Memory(
    attempts=7,
    statuses={"PASSED": 3, "COMPILE_ERROR": 2, "INCORRECT_NUMERICAL": 2},
    entries=(
        Entry(idea="one row a program", result=Result.WON, told="0.0281 ms"),
        Entry(idea="two rows a program", result=Result.SLOWER, told="0.0302 ms", count=2),
        Entry(idea="TMA descriptors\n```", result=Result.FAILED, told="does not compile", count=2),
    ),
    asked=frozenset({"spills"}),
)


def context(task, judged_verdict, **fields):
    judged = Judged(verdict=judged_verdict, candidate=candidate(), problem=task.problem,
                    info=task.info)  # fmt: skip
    return Context(judged=judged, memory=MEMORY, **fields)


def prompts(task):
    """One prompt of each template, with all that it can hold."""
    findings = analyse(KERNEL, inputs=task.info.inputs, precision=task.problem.policy.precision)
    failed = wrong_values(
        {
            "samples": [{"index": [k, 3], "got": "2", "expected": "1"} for k in range(4)],
            "mismatches": 9000,
        },
        rmse=0.9,
    )
    return {
        "first": render.first_prompt(task),
        "draft": render.first_prompt(task, idea="Keep each row in registers.", memory=MEMORY),
        "ideas": render.ideas_prompt(task, memory=MEMORY),
        "repair": render.repair_prompt(task, context(task, failed, findings=findings)),
        "optimise": render.optimise_prompt(task, context(task, passed(), wants_diff=True)),
        "regenerate": render.regenerate_prompt(task, context(task, passed())),
    }


TASKS = {
    "norm_triton": norm_task(),
    "norm_cuda": norm_task("cuda"),
    "attention_triton": attention_task(),
    "attention_cuda": attention_task("cuda"),
    "norm_gluon": norm_task("gluon"),
    "attention_gluon": attention_task("gluon"),
}
ALL = {(t, p): prompt for t, task in TASKS.items() for p, prompt in prompts(task).items()}
IDS = [f"{t}.{p}" for t, p in ALL]


@pytest.mark.parametrize(("key", "prompt"), ALL.items(), ids=IDS)
def test_a_prompt_is_as_its_golden(key, prompt):
    path = GOLDEN / f"{key[0]}.{key[1]}.md"
    if os.environ.get("HOTLOOP_RENEW"):
        path.write_text(prompt.text, encoding="utf-8")
    assert prompt.text == path.read_text(encoding="utf-8")


def test_every_golden_belongs_to_a_prompt():
    assert {p.stem for p in GOLDEN.glob("*.md")} == set(IDS)


@pytest.mark.parametrize("prompt", ALL.values(), ids=IDS)
def test_no_prompt_holds_a_secret(prompt):
    assert [word for word in FORBIDDEN if word in prompt.text] == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.md")), ids=lambda p: p.stem)
def test_no_golden_holds_a_secret(path):
    text = path.read_text(encoding="utf-8")
    assert [word for word in FORBIDDEN if word in text] == []


def test_secrets_of_a_verdict_stay_out_of_a_prompt():
    task = norm_task()
    failed = verdict(Status.RUNTIME_ERROR, stage=Stage.CORRECTNESS, details=SECRET_DETAILS)
    text = render.repair_prompt(task, context(task, failed)).text
    assert "tl.store(y_ptr + i, x)" in text
    assert [word for word in FORBIDDEN if word in text] == []


def test_the_users_words_are_verbatim():
    for (task, _), prompt in ALL.items():
        assert (WORDS in prompt.text) is task.startswith("attention")


@pytest.mark.parametrize("prompt", ALL.values(), ids=IDS)
def test_fences_are_in_pairs_and_no_gap_is_wide(prompt):
    fences = [line for line in prompt.text.split("\n") if line.startswith("```")]
    assert len(fences) % 2 == 0
    assert "\n\n\n\n" not in prompt.text
    assert "{{" not in prompt.text
    assert "{%" not in prompt.text


def test_each_level_shows_more():
    task = norm_task()
    shown = {s: render.optimise_prompt(task, context(task, passed(), sees=s)) for s in Sees}
    marks = {
        Sees.CODE: "norm_kernel", Sees.EXECUTION: "The kernel is correct",
        Sees.PERFORMANCE: "Roofline", Sees.MEMORY: "two rows a program",
    }  # fmt: skip
    for level, prompt in shown.items():
        for since, mark in marks.items():
            assert (mark in prompt.text) is (level >= since), (level, mark)
        assert (prompt.move is not None) is (level >= Sees.PERFORMANCE)


def test_a_failure_is_told_at_the_level_of_execution():
    task = norm_task()
    failed = wrong_values(rmse=0.9)
    code = render.repair_prompt(task, context(task, failed, sees=Sees.CODE)).text
    execution = render.repair_prompt(task, context(task, failed, sees=Sees.EXECUTION)).text
    assert "as large as the output" not in code
    assert "as large as the output" in execution


def test_moves_are_asked_one_at_a_time_until_none_is_left():
    task, asked = norm_task(), []
    known = context(task, passed())
    for _ in range(20):
        memory = replace(MEMORY, asked=frozenset(asked))
        prompt = render.optimise_prompt(task, replace(known, memory=memory))
        if prompt.move is None:
            break
        asked.append(prompt.move)
    assert asked == list(dict.fromkeys(m.key for m in moves(passed(), task.info)))
    assert len(asked) >= 3


def test_without_a_candidate_the_prompt_asks_for_one():
    task = norm_task()
    nothing = verdict(Status.NO_CODE, stage=Stage.EXTRACT, message="got prose alone")
    judged = Judged(verdict=nothing, candidate=None, problem=task.problem)
    text = render.repair_prompt(task, Context(judged=judged)).text
    assert "got prose alone" in text
    assert "Your kernel" not in text


def test_the_same_data_give_the_same_prompt_and_a_digest():
    task = norm_task()
    first, second = render.first_prompt(task), render.first_prompt(task)
    assert first == second
    assert len(first.template_digest) == 16


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1. **Tiles**: cut rows.\n2. Split the keys\n   over programs.\n3) Persist.",
         ["Tiles: cut rows.", "Split the keys over programs.", "Persist."]),
        ("<think>1. no</think>\n### 1. One pass", ["One pass"]),
        ("I have no ideas.", []),
        ("**1. Split K**\n\nCut the keys.\n\n**2.** Persist", ["Split K Cut the keys.", "Persist"]),
        ("1) Tiles\n2) Rows\n10) Keys", ["Tiles", "Rows", "Keys"]),
        ("### 1. Tiles\n\nIn rows.\n\n### 2. Split K\n\nIn two.\n\n## Closing\nGood luck.",
         ["Tiles In rows.", "Split K In two."]),
        ("- 1. Tiles\n* 2. Rows", ["Tiles", "Rows"]),
        ("1. Half the bytes, so\n2.5x fewer bytes and\n0.4 ms saved.\n2. Rows.",
         ["Half the bytes, so 2.5x fewer bytes and 0.4 ms saved.", "Rows."]),
        ("2.5x fewer bytes\n0.4 ms saved\n100. much\n(1) no\n1.\n** 2. **", []),
        ("Ideas:\n\n1. Tiles.\n\n2. Rows.\n\nI trust the first.\n   And the second.",
         ["Tiles.", "Rows."]),
        ("1. Tiles:\n\n- cut rows\n- keep them\n\n2. Rows.\n\n   Two a program.\n\nDone.",
         ["Tiles: cut rows keep them", "Rows. Two a program."]),
        ("  1. Tiles.\n\n     Of rows.\n\n  That is all.", ["Tiles. Of rows."]),
        ("1. **Tiles**: cut rows.\n\nI like it.", ["Tiles: cut rows."]),
        ("1. Tiles.\n---\nThat is all.", ["Tiles."]),
    ],
)  # fmt: skip
def test_ideas_are_the_numbered_items(reply, expected):
    assert parse_ideas(reply) == expected
