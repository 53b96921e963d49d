import io
import itertools
import time
from dataclasses import replace

import pytest
from rich.console import Console

from hotloop.cli import wording
from hotloop.cli.live import LiveScreen, draw
from hotloop.cli.progress import Progress
from hotloop.cli.screen import PlainScreen, budget_text, open_screen
from hotloop.core.attempt import Attempt
from hotloop.core.event import Event
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict


class Terminal(io.StringIO):
    def isatty(self):
        return True


def info(device):
    return ProblemInfo(
        problem_id="p", device=device, inputs=(), outputs=(), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=0, rankable=True, setup_s=1.5,
        baselines_ms={"flex": 0.5} if device == "cuda" else {},
        environment={"gpu": "NVIDIA H200" if device == "cuda" else None},
    )  # fmt: skip


def verdict(device="cpu", status=Status.PASSED, message="wrong"):
    performance = None
    if device == "cuda" and status is Status.PASSED:
        performance = Performance(
            latency_ms=0.4, spread_ms=0.01, samples=50, timer="cupti", l2="cold",
            speedup={"flex": 1.25, "eager": 9.0}, speedup_ci={"flex": (1.2, 1.3)},
        )  # fmt: skip
    failed = status is not Status.PASSED
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message=message, candidate_id="c", problem_id="p",
        tier=Tier.FAST, device=device, performance=performance,
        evidence=Evidence(kind="wrong_values", message=message) if failed else None,
    )  # fmt: skip


def attempt(number, found=None, objective=None):
    return Attempt(
        id=number, action="schedule", point={}, parents=(), generator="builtin",
        candidate_id="c", verdict=found, objective=objective, started_s=0.0, finished_s=None,
    )  # fmt: skip


def events_of_a_run(device):
    good = attempt(1, verdict(device), 0.4 if device == "cuda" else 4096.0)
    bad = attempt(2, verdict(device, Status.INCORRECT_NUMERICAL))
    yield Event(kind="setup", payload={"info": info(device)})
    yield Event(kind="started", payload={"attempt": attempt(1)})
    yield Event(kind="building", payload={"attempt": attempt(1)})
    yield Event(kind="verifying", payload={"attempt": attempt(1)})
    yield Event(kind="finished", payload={"attempt": good})
    yield Event(kind="best", payload={"attempt": good})
    yield Event(kind="started", payload={"attempt": attempt(2)})
    yield Event(kind="finished", payload={"attempt": bad})
    yield Event(kind="budget", payload={"spent_s": 12.0, "limit_s": 60.0})
    yield Event(kind="warning", payload={"message": "one judge was replaced"})
    yield Event(kind="final", payload={"attempt": good, "verdict": verdict(device)})
    yield Event(kind="stopped", payload={"reason": "budget"})


def live_text(device):
    progress = Progress()
    for event in events_of_a_run(device):
        progress.take(event)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(draw(progress))
    return console.file.getvalue()


def plain_text(device):
    stream = io.StringIO()
    with PlainScreen(stream) as screen:
        for event in events_of_a_run(device):
            screen(event)
    return stream.getvalue()


@pytest.mark.parametrize("render", [live_text, plain_text])
def test_on_a_cpu_nothing_looks_like_gpu_performance(render):
    text = render("cpu")
    assert "4096" in text
    assert "static cost" in text
    assert "not timed" in text
    for word in (" ms", "speed", " x over", "x over", "TFLOP"):
        assert word not in text


@pytest.mark.parametrize("render", [live_text, plain_text])
def test_on_a_gpu_time_and_the_ratio_over_the_fastest_baseline_are_shown(render):
    text = render("cuda")
    assert "0.4 ms" in text
    assert "1.25x over flex [1.20, 1.30]" in text
    assert "over eager" not in text
    assert "INCORRECT_NUMERICAL" in text
    assert "one judge was replaced" in text
    assert "stopped: budget" in text


def test_the_live_screen_draws_and_leaves_the_terminal():
    stream = Terminal()
    with LiveScreen(stream) as screen:
        for event in events_of_a_run("cuda"):
            screen(event)
    assert "PASSED" in stream.getvalue()


def test_who_waits_for_the_reference_is_told_what_for_and_how_long_at_most():
    stream, clock = io.StringIO(), itertools.count(0.0, 2.0)
    with PlainScreen(stream, clock=lambda: next(clock), loading_after_s=0.01) as screen:
        until(lambda: stream.getvalue())
        told = stream.getvalue()
        screen(Event(kind="setup", payload={"info": info("cpu")}))
    assert told.startswith("loading the problem for ")
    assert "the budget begins after it" in told
    assert "given up after 20 min" in told
    console = Console(file=io.StringIO(), width=400, color_system=None)
    console.print(draw(Progress(), waited_s=12.0))
    assert "loading the problem for 12 s" in console.file.getvalue()


def test_a_problem_that_is_loaded_at_once_is_not_waited_for():
    stream = io.StringIO()
    with PlainScreen(stream, loading_after_s=0.05) as screen:
        screen(Event(kind="setup", payload={"info": info("cpu")}))
        time.sleep(0.1)
    assert "loading" not in stream.getvalue()


def until(found, patience_s=10.0):
    end_s = time.monotonic() + patience_s
    while not found() and time.monotonic() < end_s:
        time.sleep(0.005)


def test_only_the_last_attempts_are_drawn_and_the_rest_counted():
    progress = Progress()
    for number in range(1, 20):
        progress.take(Event(kind="started", payload={"attempt": attempt(number)}))
    console = Console(file=io.StringIO(), width=400, color_system=None)
    console.print(draw(progress))
    text = console.file.getvalue()
    assert "7 earlier attempts not shown" in text


@pytest.mark.parametrize(
    ("terminal", "environ", "is_live"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"CI": "true"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_the_live_screen_needs_a_willing_terminal(terminal, environ, is_live):
    stream = Terminal() if terminal else io.StringIO()
    assert isinstance(open_screen(stream, environ), LiveScreen) is is_live


def test_the_budget_line_comes_every_half_minute_only():
    ticks = itertools.count(0, 20)
    stream = io.StringIO()
    screen = PlainScreen(stream, clock=lambda: next(ticks))
    for spent in (10.0, 20.0, 30.0, 40.0):
        screen(Event(kind="budget", payload={"spent_s": spent, "limit_s": 60.0}))
    assert stream.getvalue().splitlines() == [
        "budget 20 of 60 s (33%)",
        "budget 40 of 60 s (67%)",
    ]


def test_a_run_without_a_time_limit_says_so():
    assert budget_text(Progress(spent_s=3.0)) == "budget 3 s, no limit"


def test_terminal_codes_in_a_candidates_message_are_taken_out():
    shown = wording.outcome(
        verdict(
            status=Status.INCORRECT_NUMERICAL, message="\x1b]52;c;aGk=\x07\x1b[31mred\nline\u202e"
        )
    )
    assert not set(shown) & {"\x1b", "\x07", "\n", "\u202e"}
    assert "red line" in shown


@pytest.mark.parametrize(
    ("reason", "message", "line"),
    [
        ("wall", "one verification took 66 s", "stopped: wall: one verification took 66 s"),
        ("exhausted", None, "stopped: exhausted"),
        ("failed", "the judge ended", "stopped: failed"),  # the error itself is the last line
    ],
)
def test_the_stop_line_says_what_the_reason_does_not(reason, message, line):
    stream = io.StringIO()
    PlainScreen(stream)(Event(kind="stopped", payload={"reason": reason, "message": message}))
    assert stream.getvalue() == f"{line}\n"


def test_plain_lines_have_headings_once_and_say_why_there_is_no_code():
    stream = io.StringIO()
    nothing = replace(verdict(status=Status.NO_CODE, message="prose alone"), stage=Stage.EXTRACT)
    with PlainScreen(stream) as screen:
        screen(Event(kind="setup", payload={"info": info("cpu")}))
        for number, found in ((1, nothing), (2, verdict())):
            screen(Event(kind="finished", payload={"attempt": attempt(number, found, 3.0)}))
    lines = stream.getvalue().splitlines()
    assert lines[1].startswith("attempt id  status  stage  static cost (less is better)")
    assert lines[2].endswith(": prose alone")
    assert lines[3].endswith("  3")
    assert len(lines) == 4


def test_what_never_ran_was_in_no_cage():
    nothing = replace(verdict(status=Status.NO_CODE), stage=Stage.EXTRACT)
    assert "isolation" not in wording.outcome(nothing)
    assert "isolation" in wording.outcome(verdict())
