import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hotloop.core import kill_points

SOURCES = Path(kill_points.__file__).parents[1]


def calls_of_reach():
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "kill_points.reach" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "kill_points.reach":
                yield path, node


def test_every_name_stands_in_one_place_and_is_written_out():
    arguments = [node.args[0] for _, node in calls_of_reach()]
    assert all(isinstance(argument, ast.Constant) for argument in arguments)
    assert Counter(argument.value for argument in arguments) == Counter(kill_points.NAMES)


@pytest.mark.parametrize("wanted", ["after-rows", "after-rows:0", "after-rows:x", "nowhere:1", ""])
def test_a_wrong_point_is_refused(wanted):
    with pytest.raises(ValueError, match="expected NAME:N"):
        kill_points.at(wanted, kill_points.die)


def test_acts_once_at_the_nth_time():
    acted = []
    kill_points.act_with(kill_points.at("after-rows:2", lambda: acted.append(1)))
    try:
        seen = []
        for name in ("after-rows", "before-rows", "after-rows", "after-rows"):
            kill_points.reach(name)
            seen.append(len(acted))
    finally:
        kill_points.act_with(None)
    assert seen == [0, 0, 1, 1]


PROGRAM = """
from hotloop.core import kill_points
kill_points.reach("after-rows")
print("once", flush=True)
kill_points.reach("after-rows")
print("twice", flush=True)
"""


@pytest.mark.parametrize(
    ("wanted", "status", "output"),
    [("", 0, "once\ntwice\n"), ("after-rows:2", -signal.SIGKILL, "once\n")],
)
def test_the_variable_kills_a_process(wanted, status, output):
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, kill_points.VARIABLE: wanted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stdout) == (status, output), child.stderr
