"""A session that is killed while it replaces a prompt leaves none that nobody waits for."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_outdated_prompts import PROBLEM, Answered

from hotloop.core import kill_points
from hotloop.core.model import Prompt
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status, Tier
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import fake_verdict

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("withdrawal_crash_child.py")
POINTS = ("prompt-withdrawn:1", "successor-put:1", "before-intent:1", "after-intent:1")


class Killed(Answered):
    """A run in a folder: two kernels, a prompt that improves the second, and its refusal."""

    def __init__(self, folder):
        super().__init__(folder.with_suffix(".answers"))
        self.journal = folder

    @contextmanager
    def opened(self):
        """A session's store."""
        with SqliteStore(self.journal) as self.store:
            yield

    def until_it_is_killed(self, point):
        """Return the prompt that waited before."""
        with self.opened():
            old = self.until_the_third_prompt()
        child = subprocess.run(
            [sys.executable, str(CHILD), str(self.journal)],
            env={**os.environ, kill_points.VARIABLE: point},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.returncode == -signal.SIGKILL, child.stderr
        return old

    def refuse(self, number):
        """Have the final tier refuse the kernel of an attempt."""
        (attempt,) = [a for a in self.store.attempts() if a.id == number]
        wrong = fake_verdict(Status.INCORRECT_NUMERICAL, attempt.candidate_id, tier=Tier.FINAL)
        self.store.note("final", {
            "attempt_id": number, "candidate_id": attempt.candidate_id, "verdict": to_json(wrong)
        })  # fmt: skip

    def sent(self):
        """Return the text of the prompt that the journal holds for the open attempt."""
        notes = [n for n in self.store.notes("call_intent") if n["key"]["attempt"] == 3]
        return from_json(Prompt, notes[-1]["prompt"]).messages[-1].text


@pytest.fixture
def killed(tmp_path):
    return Killed(tmp_path / "run")


@pytest.mark.parametrize("point", POINTS)
def test_the_same_prompt_waits_after_a_kill(killed, point):
    old = killed.until_it_is_killed(point)
    with killed.opened():
        killed.run()
        new = killed.waiting()
        assert new != old
        assert killed.sent() == new.read_text()
        told = [n["message"] for n in killed.store.notes("warning")]
        assert sum("another prompt takes its place" in message for message in told) == 1
        killed.answer(0.3)
        (attempt,) = [a for a in killed.run().attempts if a.id == 3]
    assert (attempt.objective, attempt.asked.template) == (0.3, "repair")
    assert [p.name for p in killed.folder.glob("*.withdrawn.md")] == [
        old.name.replace(".prompt.", ".withdrawn.")
    ]


@pytest.mark.parametrize("point", POINTS)
def test_one_that_is_outdated_meanwhile_is_withdrawn_and_names_the_one_that_waits(killed, point):
    """The next session renders another prompt: nobody would wait for the one that lies there."""
    old = killed.until_it_is_killed(point)
    lay = killed.prompts()
    with killed.opened():
        killed.refuse(1)
        killed.run()
        new = killed.waiting()  # the only one without an answer
        assert killed.sent() == new.read_text()
    assert new not in lay
    for former in {old, *lay}:
        assert not former.exists()
        withdrawn = former.with_name(former.name.replace(".prompt.", ".withdrawn."))
        assert "answer " in withdrawn.read_text().splitlines()[0]
    last = (lay or [old])[0]
    withdrawn = last.with_name(last.name.replace(".prompt.", ".withdrawn."))
    assert new.name in withdrawn.read_text().splitlines()[0]


def test_an_answer_to_the_one_that_lies_there_counts(killed):
    killed.until_it_is_killed("successor-put:1")
    killed.answer(0.3)
    with killed.opened():
        killed.refuse(1)  # else it would be rendered again
        (attempt,) = [a for a in killed.run().attempts if a.id == 3]
    assert attempt.objective == 0.3
    assert killed.prompts() == [] or killed.waiting().name.split("-a")[1].startswith("0004")


def test_prompts_of_another_run_in_the_folder_stay(killed):
    """Of another problem, and of the same attempt of the same problem."""
    killed.folder.mkdir()
    others = [f"{PROBLEM.id}-a0003-s0-00000000", "another-problem-a0003-s0-00000000"]
    for name in others:
        (killed.folder / f"{name}.prompt.md").write_text("of another run")
    theirs = {killed.folder / f"{name}.prompt.md" for name in others}
    killed.prompts = lambda: [p for p in Answered.prompts(killed) if p not in theirs]
    killed.until_it_is_killed("successor-put:1")
    with killed.opened():
        killed.refuse(1)
        killed.run()
    assert {path.read_text() for path in theirs} == {"of another run"}
    assert len(list(killed.folder.glob("*.withdrawn.md"))) == 2
