"""The screen of a suite: problems by state, what runs, what ended; else plain lines."""

import io
import sys
import threading
import time

import pytest
from rich.console import Console
from test_cli_bench import REPLY, bench, place  # noqa: F401  a fixture
from test_cli_screen import Terminal, attempt, info, until, verdict

from hotloop.cli.suite_live import RUNNING_SHOWN, LiveSuite, draw_suite
from hotloop.cli.suite_progress import RUNNING, SuiteProgress
from hotloop.cli.suite_screen import PlainSuite, open_suite_screen, shown_search
from hotloop.core.event import Event
from hotloop.errors import ProblemError, WorkerDied
from hotloop.problems import list_kernelbench
from hotloop.suite.planning import plan_suite
from hotloop.suite.standing import State

NAMES = [f"kernelbench/1/{n}" for n in range(1, 8)]


def events(device):
    best = attempt(1, verdict(device), 0.4 if device == "cuda" else 4096.0)
    yield Event(kind="setup", payload={"info": info(device)})
    yield Event(kind="finished", payload={"attempt": best})
    yield Event(kind="best", payload={"attempt": best})
    yield Event(kind="verifying", payload={"attempt": attempt(2)})
    yield Event(kind="budget", payload={"spent_s": 12.0, "limit_s": 60.0, "spent_tokens": 900,
                                        "spent_usd": 0.25})  # fmt: skip


@pytest.fixture
def progress():
    known = {NAMES[0]: "done", NAMES[1]: "waiting for reply", NAMES[2]: "skipped"}
    return SuiteProgress.of(NAMES, known)


def drawn(progress, *, elapsed_s=0.0):
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(draw_suite(progress, elapsed_s))
    return console.file.getvalue()


def test_problems_are_counted_by_state(progress):
    progress.begin(NAMES[3])
    told = "1 done, 1 running, 3 open, 1 waiting for reply, 1 skipped"
    assert ", ".join(f"{count} {state}" for state, count in progress.counts) == told
    text = drawn(progress, elapsed_s=42.4)
    assert f"{told}; 42 s in this session" in text
    assert "2 of 7 problems have nothing left to do" in text
    assert "tokens" not in text, "no model was asked"


def test_what_runs_has_its_budget_its_best_and_what_it_does(progress):
    progress.begin(NAMES[3], at_s=5.0, limit_s=60.0)
    (line,) = [line for line in drawn(progress, elapsed_s=47.0).splitlines() if "loading" in line]
    assert line.split()[1:7] == ["42", "s", "0", "of", "60", "s"]
    for event in events("cuda"):
        progress.take(NAMES[3], event)
    text = drawn(progress)
    (line,) = [line for line in text.splitlines() if line.startswith(NAMES[3])]
    for words in ("12 of 60 s", "verifying", "attempt 1, 0.4 ms, 1.25x over flex"):
        assert words in line
    assert "tokens 900, dollars $0.25" in text


def test_on_a_cpu_no_time_and_no_speed_is_shown(progress):
    progress.begin(NAMES[3])
    for event in events("cpu"):
        progress.take(NAMES[3], event)
    (line,) = [line for line in drawn(progress).splitlines() if line.startswith(NAMES[3])]
    assert "static cost 4096" in line
    assert " ms" not in line
    assert "x over" not in line


def test_what_ended_is_told_and_its_costs_are_kept(progress):
    progress.begin(NAMES[3])
    for event in events("cuda"):
        progress.take(NAMES[3], event)
    progress.end(NAMES[3], "done", "done: PASSED (final tier), 0.4 ms")
    progress.begin(NAMES[4])
    progress.end(NAMES[4], "failed", "")
    progress.note(NAMES[4], "failed: WorkerDied: the judge ended")
    text = drawn(progress)
    assert f"{NAMES[3]}: done: PASSED (final tier), 0.4 ms" in text
    assert f"{NAMES[4]}: failed: WorkerDied: the judge ended" in text
    assert progress.costs == (900, 0.25)
    assert progress.states[NAMES[4]] == "failed"
    assert RUNNING not in progress.states.values()


def test_costs_that_nobody_counted_are_unknown(progress):
    progress.begin(NAMES[3])
    progress.take(NAMES[3], Event(kind="budget", payload={"spent_s": 1.0, "limit_s": None,
                                                         "spent_tokens": None}))  # fmt: skip
    assert progress.costs[0] is None
    assert "tokens unknown" in drawn(progress)


def test_texts_of_others_are_no_markup_and_carry_no_codes(progress):
    progress.begin(NAMES[3])
    progress.note(NAMES[3], "[red]x[/red] \x1b[31m")
    text = drawn(progress)
    assert "[red]x[/red]" in text
    assert "\x1b" not in text


def test_many_runs_at_a_time_stay_on_one_screen():
    names = [f"kernelbench/1/{n}" for n in range(200)]
    progress = SuiteProgress.of(names, {})
    for name in names[:40]:
        progress.begin(name)
    text = drawn(progress)
    assert f"{40 - RUNNING_SHOWN} more are running" in text
    assert len(text.splitlines()) < RUNNING_SHOWN + 12


@pytest.mark.parametrize(
    ("stream", "environ", "kind"),
    [(Terminal(), {}, LiveSuite), (Terminal(), {"NO_COLOR": "1"}, PlainSuite),
     (Terminal(), {"CI": "1"}, PlainSuite), (io.StringIO(), {}, PlainSuite)],
)  # fmt: skip
def test_only_a_terminal_is_drawn_on(stream, environ, kind):
    asked = []
    screen = open_suite_screen(stream, environ, NAMES, lambda: asked.append(1) or {})
    assert isinstance(screen, kind)
    assert bool(asked) is (kind is LiveSuite), "200 journals are not read for plain lines"


def test_a_problem_that_loads_for_long_is_told_of_until_it_is_loaded():
    stream = io.StringIO()
    quick, slow = NAMES[:2]
    with PlainSuite(stream, loading_every_s=0.02) as screen:
        screen.begin(quick, 30.0)
        screen.take(quick, Event(kind="setup", payload={"info": info("cpu")}))
        screen.begin(slow, 30.0)
        until(lambda: stream.getvalue().count("not loaded after") == 2)
        screen.end(slow, "skipped", "skipped: too large")
        told = stream.getvalue().splitlines()
        time.sleep(0.05)
        assert stream.getvalue().splitlines() == told, "nothing is loaded any more"
    waiting = [line for line in told if "not loaded after" in line]
    assert len(waiting) >= 2
    assert all(line.startswith(f"{slow}: not loaded after ") for line in waiting)
    assert all(line.endswith("loading is given up after 20 min") for line in waiting)
    assert told[-1] == f"{slow}: skipped: too large"


def jobs_in(folder):
    plan = plan_suite(list_kernelbench(folder / "data"), folder / "s",
                      {"device": "cpu", "data": folder / "data"})  # fmt: skip
    return plan.jobs


@pytest.mark.parametrize(
    ("error", "state"), [(ProblemError("broken"), "skipped"), (WorkerDied("gone"), "failed"),
                         (ZeroDivisionError("a bug"), "failed")],
)  # fmt: skip
def test_a_run_that_raises_ends_on_the_screen_too(place, error, state):  # noqa: F811
    jobs = jobs_in(place)
    name = jobs[0].member.name
    live = SuiteProgress.of([job.member.name for job in jobs], {})
    screen = LiveSuite(Terminal(), live)

    def search(plan, *, listen, stop):
        listen(Event(kind="warning", payload={"message": "look"}))
        assert live.states[name] == RUNNING
        raise error

    heard = []
    with pytest.raises(type(error)):
        shown_search(search, jobs, screen)(jobs[0].plan, listen=heard.append, stop=None)
    assert [event.kind for event in heard] == ["warning"], "the suite hears it as well"
    assert (live.states[name], live.running) == (state, {})


def test_runs_in_many_threads_do_not_disturb_each_other():
    names = [f"p{n}" for n in range(8)]
    live = SuiteProgress.of(names, {})
    with LiveSuite(Terminal(), live) as screen:

        def work(name):
            for _ in range(20):
                screen.begin(name)
                for event in events("cuda"):
                    screen.take(name, event)
                screen.end(name, "done", "done")

        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(live.states.values()) == {State.DONE.value}
    assert live.tokens == 8 * 20 * 900


def test_the_command_draws_on_a_terminal(place, monkeypatch, capsys):  # noqa: F811
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert bench() == 4
    text = terminal.getvalue()
    assert "\x1b[" in text, "it is redrawn"
    assert "0 of 3 problems have nothing left to do" in text
    assert "3 waiting for verdict" in text
    assert "kernelbench/1/1" in capsys.readouterr().out, "the table comes at the end"


def test_without_a_terminal_each_problem_has_its_line(place, capsys):  # noqa: F811
    assert bench() == 4
    err = capsys.readouterr().err
    assert "\x1b" not in err
    for name in ("1/1", "1/2", "2/7"):
        assert f"kernelbench/{name}: waiting for verdict" in err
    assert REPLY not in err


def test_plain_lines_say_that_a_problem_begins():
    stream = io.StringIO()
    with PlainSuite(stream) as screen:
        screen.begin("p", 60.0)
        screen.begin("q")
    assert stream.getvalue().splitlines() == [
        "p: begun: loading the reference, then the search under a budget of 60 s",
        "q: begun: loading the reference, then the search",
    ]
