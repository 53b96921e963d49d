import json

import pytest
from model_run import Scribe, info_of, plan_in, write_run

from hotloop import api
from hotloop.cli.options import DATA_VARIABLE
from hotloop.cli.prompt import of_problem, of_run, prompt
from hotloop.core.attempt import Action
from hotloop.core.record import to_json
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import fake_verdict


def next_of(folder):
    with api.load_run(folder) as reader:
        return of_run(reader)


def test_a_run_that_waits_shows_the_prompt_that_waits(tmp_path):
    found = next_of(write_run(tmp_path).folder)
    assert found.prompt == "Make it faster."
    assert (found.attempt, found.parents, found.template) == (4, (2,), "optimise")


def test_of_a_prompt_that_was_withdrawn_and_the_one_in_its_place_the_latter_waits(tmp_path):
    plan = plan_in(tmp_path)
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        scribe.propose(1, Action.DRAFT)
        for text in ("Build on this kernel.", "That kernel is wrong: mend it."):
            scribe.wait(1, scribe.send(1, text))
    assert next_of(plan.folder).prompt == "That kernel is wrong: mend it."


def test_a_fresh_run_shows_the_call_for_ideas(tmp_path):
    plan = plan_in(tmp_path)
    with SqliteStore(plan.folder) as store:
        Scribe(store, plan).setup()
    found = next_of(plan.folder)
    assert (found.template, found.attempt) == ("ideas", 0)
    assert "score + (q_idx - kv_idx)" in found.prompt


def test_a_call_for_ideas_that_waits_is_shown_as_it_was_sent(tmp_path):
    plan = plan_in(tmp_path)
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        scribe.propose(1, Action.DRAFT, point={"idea": 0})
        scribe.wait(0, scribe.send(0, "Name four ideas."))
    found = next_of(plan.folder)
    assert (found.prompt, found.template, found.attempt) == ("Name four ideas.", "ideas", 0)


def test_the_next_prompt_of_a_run_is_made_from_its_journal(tmp_path):
    plan = plan_in(tmp_path, strategy="refine")
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        asked = scribe.ask(1, Action.DRAFT)
        scribe.answer(asked, "code")
        scribe.conclude(asked[0], 16, Status.COMPILE_ERROR, message="line 3: no such name: tll")
    found = next_of(plan.folder)
    assert (found.template, found.attempt, found.parents) == ("repair", 2, (1,))
    assert "BLOCK = 16" in found.prompt
    assert found == next_of(plan.folder)  # nothing was written


@pytest.mark.parametrize("is_refused", [True, False])
def test_the_next_prompt_builds_on_nothing_that_the_final_tier_refused(tmp_path, is_refused):
    plan = plan_in(tmp_path, strategy="refine", parallel=1)
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        for number, parents, objective in ((1, (), 0.4), (2, (1,), 0.5)):
            action = Action.OPTIMISE if parents else Action.DRAFT
            asked = scribe.ask(number, action, parents=parents)
            scribe.answer(asked, "code")
            scribe.conclude(asked[0], 16 * number, Status.PASSED, objective=objective)
        if is_refused:
            candidate_id = store.attempts()[0].candidate_id
            wrong = fake_verdict(Status.INCORRECT_NUMERICAL, candidate_id, tier=Tier.FINAL)
            note = {"attempt_id": 1, "candidate_id": candidate_id, "verdict": to_json(wrong)}
            store.note("final", note)
    found = next_of(plan.folder)
    assert (found.attempt, found.parents) == (3, (2,) if is_refused else (1,))


def test_nothing_is_asked_before_the_starting_kernel_is_judged(tmp_path):
    kernel = tmp_path / "mine.py"
    kernel.write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n")
    plan = plan_in(tmp_path, start=kernel)
    with SqliteStore(plan.folder) as store:
        Scribe(store, plan).setup()
    with pytest.raises(ConfigError, match="no prompt yet"):
        next_of(plan.folder)


def test_a_run_that_was_not_loaded_has_no_prompt_yet(tmp_path):
    plan = plan_in(tmp_path)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
    with pytest.raises(ConfigError, match="start the run"):
        next_of(plan.folder)


def test_a_run_of_the_builtin_generator_has_no_prompts(tmp_path):
    plan = plan_in(tmp_path, model=None)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
    with pytest.raises(ConfigError, match="no model"):
        next_of(plan.folder)


@pytest.mark.parametrize(("language", "word"), [("triton", "Triton"), ("cuda", "CUDA")])
def test_the_first_prompt_of_a_problem_is_in_its_language(tmp_path, language, word):
    problem = plan_in(tmp_path).problem
    found = of_problem(problem, info_of(problem), language=language, sees="memory")
    assert (found.template, found.problem_id) == ("first", problem.id)
    assert word in found.prompt


def test_the_command_prints_the_prompt_and_nothing_else(tmp_path, capsys):
    folder = write_run(tmp_path).folder
    prompt(str(folder))
    assert capsys.readouterr().out == "Make it faster.\n"
    prompt(str(folder), json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["parents"] == [2]
    assert set(record) == {"prompt", "template", "problem_id", "attempt", "parents"}


def test_options_of_a_problem_are_refused_for_a_run(tmp_path, monkeypatch):
    folder = write_run(tmp_path).folder
    with pytest.raises(ConfigError, match="--language"):
        prompt(str(folder), language="cuda")
    with pytest.raises(ConfigError, match="--data: a run has its own"):
        prompt(str(folder), data=tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    prompt(str(folder), data=tmp_path)  # the environment's is for all commands


@pytest.mark.slow
def test_a_problem_is_loaded_by_a_judge(tmp_path, capsys):
    plan_in(tmp_path)
    prompt(str(tmp_path / "relative.py"), device="cpu", min_isolation="T0")
    assert "score + (q_idx - kv_idx)" in capsys.readouterr().out
