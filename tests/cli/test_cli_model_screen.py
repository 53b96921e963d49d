import io

import pytest
from model_run import plan_in
from rich.console import Console

from hotloop.cli import summary
from hotloop.cli.live import draw
from hotloop.cli.progress import Progress
from hotloop.cli.screen import PlainScreen, budget_text
from hotloop.core.attempt import Attempt
from hotloop.core.event import Event
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.engine import RunResult, StopReason


def attempt(number, action="draft", parents=(), status=None):
    verdict = None
    if status is not None:
        failed = status is not Status.PASSED
        verdict = Verdict(
            status=status, stage=Stage.EXTRACT, message="", candidate_id="", problem_id="p",
            tier=Tier.FAST, device="cpu",
            evidence=Evidence(kind="no_code", message="no code") if failed else None,
        )  # fmt: skip
    return Attempt(
        id=number, action=action, point={}, parents=parents, generator="model", candidate_id=None,
        verdict=verdict, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip


NO_FILE = Event(kind="waiting", payload={"waiting": (), "message": "candidate c: bundle it"})
EVENTS = (
    Event(kind="asking", payload={"attempt": attempt(1)}),
    Event(kind="asking", payload={"attempt": attempt(2, "repair", (1,))}),
    Event(kind="finished", payload={"attempt": attempt(1, status=Status.NO_CODE)}),
    Event(kind="waiting", payload={"waiting": ("answers/a.prompt.md",), "message": "m"}),
    Event(kind="waiting", payload={"waiting": ("answers/b.prompt.md\x1b[31m",), "message": "m"}),
    NO_FILE,
)


def plain_lines(events):
    stream = io.StringIO()
    screen = PlainScreen(stream)
    for event in events:
        screen(event)
    return stream.getvalue().splitlines()


def progress_of(events):
    progress = Progress()
    for event in events:
        progress.take(event)
    return progress


def budget(**more):
    return Event(kind="budget", payload={"spent_s": 12.0, "limit_s": 60.0, **more})


def test_plain_lines_tell_calls_attempts_without_code_and_what_is_awaited():
    lines = plain_lines(EVENTS)
    assert lines[0] == "asking for attempt 1: draft"
    assert lines[1] == "asking for attempt 2: repair of 1"
    assert lines[2].startswith("attempt id  action  from  status")
    assert "NO_CODE" in lines[3]
    assert lines[4] == "waiting for answers/a.prompt.md"
    assert lines[5].startswith("waiting for answers/b.prompt.md")
    assert lines[6] == "waiting: candidate c: bundle it"
    assert "\x1b" not in "".join(lines)


def test_a_call_that_an_earlier_session_began_is_not_called_asked():
    asked = {"attempt": attempt(2)}
    again = [Event(kind="asking", payload={**asked, "is_new": new}) for new in (False, True)]
    assert plain_lines(again) == [
        "going on with the call for attempt 2: draft",
        "asking for attempt 2: draft",
    ]


def test_the_live_screen_shows_calls_in_flight_and_what_is_awaited():
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(draw(progress_of(EVENTS)))
    text = console.file.getvalue()
    assert "1 call in flight" in text
    assert "waiting for answers/a.prompt.md and 1 more" in text
    assert "repair" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        ({}, None),
        ({"spent_tokens": 0, "spent_usd": 0.0}, None),
        ({"spent_tokens": 12345, "spent_usd": 0.456}, "tokens 12,345, dollars $0.46"),
        ({"spent_tokens": 10, "spent_usd": 0.00123}, "tokens 10, dollars $0.0012"),
        ({"spent_tokens": None, "spent_usd": None}, "tokens unknown, dollars unknown"),
        ({"spent_tokens": None, "spent_usd": 0.0}, "tokens unknown, dollars $0.00"),
    ],
)
def test_costs_are_shown_where_calls_were_made_and_unknown_is_no_number(spent, words):
    text = budget_text(progress_of([budget(**spent)]))
    assert text == "budget 12 of 60 s (20%)" + (f", {words}" if words else "")


def result(reason, waiting=(), **more):
    given = {
        "best_attempt_id": None, "fast": None, "final": None, "spent_s": 10.0, "setup_s": 1.0,
        "attempts": (attempt(1, status=Status.NO_CODE),), "calls": 3, "tokens": None, "usd": 0.0,
    }  # fmt: skip
    return RunResult(reason=reason, waiting=waiting, **given | more)


def test_a_run_that_waits_ends_with_the_files_and_the_command_that_goes_on(tmp_path):
    plan = plan_in(tmp_path, no_wait=True)
    files = tuple(f"answers/{n}.prompt.md" for n in range(7))
    lines = summary.closing(plan, result(StopReason.WAITING, files)).splitlines()
    assert lines[0].startswith("waiting: 1 candidate")
    assert lines[1] == "to be answered: 7"
    assert [line.strip() for line in lines[2:7]] == list(files[:5])
    assert "2 more" in lines[7]
    assert "hotloop optimize" in lines[8]
    assert "--no-wait" in lines[8]
    assert summary.record(plan, result(StopReason.WAITING, files))["waiting"] == list(files)


def test_a_run_that_waits_tells_the_best_so_far(tmp_path):
    passed = attempt(1, status=Status.PASSED)
    found = result(StopReason.WAITING, ("a",), best_attempt_id=1, fast=passed.verdict)
    assert "best so far: attempt 1: PASSED" in summary.closing(plan_in(tmp_path), found)


def test_a_run_that_waits_for_a_bundle_says_how_to_judge_it(tmp_path):
    plan = plan_in(tmp_path, judge="bundle", no_wait=True)
    text = summary.closing(plan, result(StopReason.WAITING, ("candidate 1",)))
    assert f"hotloop bundle {plan.folder}" in text
    assert "hotloop judge --bundle" in text
    assert "--verdicts" in text


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_reason_to_stop_has_its_words(tmp_path, reason):
    assert summary.closing(plan_in(tmp_path), result(reason))


def test_the_result_names_the_model_and_what_it_cost(tmp_path):
    plan = plan_in(tmp_path)
    passed = attempt(1, status=Status.PASSED)
    found = result(StopReason.TOKENS, attempts=(passed,), best_attempt_id=1, fast=passed.verdict)
    line = summary.closing(plan, found).splitlines()[0]
    assert "PASSED" in line
    assert f"3 calls (tokens unknown, dollars $0.00) of {plan.config.model}" in line


def test_the_opening_says_who_writes_and_what_is_sent(tmp_path):
    plan = plan_in(tmp_path, max_tokens=1000)
    first = summary.opening(plan, is_default_model=False)[0]
    assert str(plan.config.model) in first
    assert "1,000 tokens" in first
    assert "it is sent the reference" in first


def test_a_cuda_kernel_is_named_by_its_own_suffix(tmp_path):
    plan = plan_in(tmp_path, language="cuda")
    passed = attempt(1, status=Status.PASSED)
    found = result(StopReason.WALL, attempts=(passed,), best_attempt_id=1, fast=passed.verdict)
    best = plan.folder / "best"
    best.mkdir(parents=True)
    assert str(best / "kernel.py") in summary.closing(plan, found)
    (best / "kernel.cu").write_text("")
    assert str(best / "kernel.cu") in summary.closing(plan, found)
