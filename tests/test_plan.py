import shlex

import pytest

from hotloop.core.attempt import Action, Attempt
from hotloop.core.graph import AttentionSpec
from hotloop.core.problem import ProblemInfo
from hotloop.errors import ConfigError
from hotloop.plan import plan_search
from hotloop.store.memory import MemoryStore
from hotloop.wiring import has_calls_left, open_generator, shows_counters

PROBLEM = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my problem.py"
    path.write_text(PROBLEM)
    return path


def test_the_same_search_has_the_same_folder_and_another_seed_another(problem):
    first = plan_search(problem, device="cpu")
    again = plan_search(problem, device="cpu", budget="1h")
    other = plan_search(problem, device="cpu", seed=1)
    assert first.folder == again.folder
    assert first.folder != other.folder
    assert first.folder.parent.name == "runs"


def test_another_problem_text_has_another_folder(problem):
    first = plan_search(problem, device="cpu")
    problem.write_text(PROBLEM.replace("q_idx - kv_idx", "q_idx"))
    assert plan_search(problem, device="cpu").folder != first.folder


def test_planning_leaves_nothing_behind(problem, tmp_path):
    before = list(tmp_path.iterdir())
    plan_search(problem, device="cpu")
    assert list(tmp_path.iterdir()) == before


def test_the_commands_hold_what_the_search_depends_on(problem):
    plan = plan_search(
        problem, device="cpu", budget="1m30s", settings={"S": 64}, max_candidates=5, seed=3
    )
    words = shlex.split(plan.search_command())
    assert words[:3] == ["hotloop", "optimize", str(problem)]
    pairs = dict(zip(words[3::2], words[4::2], strict=True))
    assert pairs == {
        "--device": "cpu",
        "--set": "S=64",
        "--budget": "90s",
        "--max-candidates": "5",
        "--strategy": "tune",
        "--parallel": "2",
        "--seed": "3",
        "--out": str(plan.folder),
    }
    assert "--set S=64" in plan.verify_command()


def test_a_command_names_a_data_set_only_where_the_problem_is_of_it(problem, tmp_path):
    level = tmp_path / "data" / "level1"
    level.mkdir(parents=True)
    (level / "2_Relu.py").write_text(
        "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    )
    of_set = plan_search("kernelbench/1/2", device="cpu", data=tmp_path / "data")
    of_file = plan_search(problem, device="cpu", data=tmp_path / "data")
    for command in ("search_command", "verify_command"):
        assert f"--data {tmp_path / 'data'}" in getattr(of_set, command)()
        assert "--data" not in getattr(of_file, command)(), "a file is refused with one"


def test_a_loaded_problem_is_taken_as_it_is(problem):
    loaded = plan_search(problem, device="cpu").problem
    assert plan_search(loaded, device="cpu").spec.problem_id == loaded.id


@pytest.mark.parametrize("budget", [60, 60.0, "60", "60s", "1m"])
def test_a_budget_is_seconds_or_text(problem, budget):
    assert plan_search(problem, device="cpu", budget=budget).spec.budget.wall_s == 60.0


@pytest.mark.parametrize("budget", [0, -5, "", "soon", float("nan")])
def test_a_budget_that_is_none_is_refused(problem, budget):
    with pytest.raises(ConfigError, match="budget"):
        plan_search(problem, device="cpu", budget=budget)


@pytest.mark.parametrize(
    ("sees", "shown"),
    [("nothing", False), ("execution", False), ("performance", True), ("memory", True)],
)
def test_counters_are_read_only_for_prompts_that_show_them(problem, tmp_path, sees, shown):
    model = f"dir:{tmp_path / 'answers'}"
    assert shows_counters(plan_search(problem, device="cpu", model=model, sees=sees).spec) is shown
    assert not shows_counters(plan_search(problem, device="cpu").spec)


def attempt(action):
    return Attempt(
        id=1, action=action, point={}, parents=(), generator="model", candidate_id=None,
        verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip


def test_a_run_whose_calls_are_used_up_shows_no_model_anything_any_more(problem, tmp_path):
    model = f"dir:{tmp_path / 'answers'}"
    limited = plan_search(problem, device="cpu", model=model, max_calls=2).spec
    free, asked = (attempt(action) for action in (Action.SWEEP, Action.DRAFT))
    assert has_calls_left(limited, [asked, free, free])
    assert not has_calls_left(limited, [asked, asked])
    assert has_calls_left(plan_search(problem, device="cpu", model=model).spec, [asked] * 99)


@pytest.mark.parametrize("precision", [None, "strict", "tf32"])
def test_the_builtin_generator_knows_the_policy(problem, precision):
    spec = AttentionSpec(
        B=1, H=2, Hkv=2, S=32, Skv=32, D=16, dtype="float32", scale=0.25, normalize="softmax",
        score_mod=None, mask_mod=None, buffers=(),
    )  # fmt: skip
    info = ProblemInfo(
        problem_id="p", device="cpu", inputs=(), outputs=(), parameters=(), graph=None,
        attention=spec, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip
    plan = plan_search(problem, device="cpu", precision=precision)
    with open_generator(plan, MemoryStore()) as generator:
        dimensions = generator.space(info).dimensions
    choices = next(d.choices for d in dimensions if d.name == "dot_precision")
    assert ("tf32" in choices) == (precision == "tf32")
