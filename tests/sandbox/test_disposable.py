"""Asking a process that hangs, lies, floods or dies: an answer or a reason, always in time."""

from __future__ import annotations

import os
import sys
import time

import pytest

from hotloop.sandbox.disposable import MAX_ANSWER_BYTES, Answer, ask_process
from hotloop.sandbox.processes import descendants


def ask(code: str, deadline_s: float = 20.0, **extra: str) -> Answer:
    return ask_process([sys.executable, "-S", "-c", code], deadline_s, extra=extra)


def running() -> set[int]:
    return {p.pid for p in descendants(os.getpid()) if not p.zombie}


def test_an_answer_is_its_stdout_alone() -> None:
    answer = ask("import sys; print('yes'); print('noise', file=sys.stderr)")
    assert (answer.text, answer.reason, answer.is_silent) == ("yes\n", "", False)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; print('before'); sys.exit('the driver is gone')", "the driver is gone"),
        ("raise SystemExit(3)", "ended with 3"),
        ("import os; os.kill(os.getpid(), 11)", "ended with -11"),
        ("print('x' * (1 << 20))", f"wrote over {MAX_ANSWER_BYTES >> 10} KiB"),
        ("import sys; sys.stderr.write('x' * (1 << 20))", "wrote over"),
    ],
    ids=["fails", "fails without a word", "crashes", "floods stdout", "floods stderr"],
)
def test_a_process_that_fails_has_a_reason_and_no_text(code: str, reason: str) -> None:
    answer = ask(code)
    assert answer.text is None
    assert reason in answer.reason
    assert not answer.is_silent


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('half'); time.sleep(60)",
        "while True: pass",
    ],
)
def test_a_process_that_hangs_is_silent_and_killed(code: str) -> None:
    before, start = running(), time.monotonic()
    answer = ask(code, 0.3)
    assert answer.is_silent
    assert "did not answer within 0.3 s" in answer.reason
    assert answer.text is None
    assert time.monotonic() - start < 5.0
    assert running() <= before


def test_a_grandchild_that_holds_the_pipes_is_neither_awaited_nor_left() -> None:
    before, start = running(), time.monotonic()
    answer = ask(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "print('done')"
    )
    assert answer.text == "done\n"
    assert time.monotonic() - start < 15.0
    assert running() <= before


def test_no_key_of_ours_passes_and_what_is_given_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    answer = ask("import os; print(os.environ.get('SOME_API_KEY'), os.environ['GIVEN'])", GIVEN="1")
    assert answer.text == "None 1\n"


def test_a_program_that_is_not_there() -> None:
    assert ask_process(["no-such-tool"], 1.0).reason == "no-such-tool is not installed"
    assert "cannot be started" in ask_process(["/"], 1.0).reason


def test_control_codes_are_taken_out() -> None:
    assert ask(r"print('\x1b]0;title\x07{}')").text == "{}\n"
