"""A judge that is silent while it starts or loads is given up; a slow one is waited for."""

import os
import signal
import subprocess
import sys
import time

import pytest

from hotloop.errors import WorkerDied, WorkerTimeout
from hotloop.verify.transport import JudgeProcess

SLOW = """
import sys, threading, time
from hotloop.core.record import from_json, to_json
from hotloop.core.wire import Request, Response, read_frame, write_frame
lock = threading.Lock()
def answer(request):
    if request.method != "ping":
        time.sleep(request.params["seconds"])
    with lock:
        write_frame(sys.stdout.buffer, to_json(Response(id=request.id, result=request.method)))
while (frame := read_frame(sys.stdin.buffer)) is not None:
    threading.Thread(target=answer, args=[from_json(Request, frame)], daemon=True).start()
"""


@pytest.fixture
def judge():
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    started = JudgeProcess([sys.executable, "-c", SLOW], env, subprocess.DEVNULL)
    started.request("ping", {}, 30.0)
    yield started
    started.kill()


def test_one_that_works_for_long_and_answers_beside_it_is_waited_for(judge: JudgeProcess) -> None:
    assert judge.request("load", {"seconds": 0.7}, 30.0, silence_s=0.2) == "load"


def test_one_that_is_stopped_is_given_up_long_before_its_deadline(judge: JudgeProcess) -> None:
    os.kill(judge._process.pid, signal.SIGSTOP)
    began_s = time.monotonic()
    with pytest.raises(WorkerDied, match="no sign of life for 0 s at `load`"):
        judge.request("load", {"seconds": 0.0}, 30.0, silence_s=0.2)
    assert time.monotonic() - began_s < 10.0


def test_one_that_answers_beside_its_work_has_a_deadline_all_the_same(judge: JudgeProcess) -> None:
    with pytest.raises(WorkerTimeout, match="did not answer `load` within 1 s"):
        judge.request("load", {"seconds": 30.0}, 0.6, silence_s=0.1)


@pytest.mark.parametrize("has_log", [True, False])
def test_a_death_names_the_log_where_there_is_one(tmp_path, has_log):
    with (tmp_path / "judge.log").open("wb") as file:
        log = file if has_log else subprocess.DEVNULL
        started = JudgeProcess([sys.executable, "-c", "import os; os._exit(3)"], {}, log)
        with pytest.raises(WorkerDied) as caught:
            started.request("audit", {}, 30.0)
        started.kill()
    told = str(caught.value)
    assert (f"see {tmp_path / 'judge.log'}" in told) is has_log
    assert ("run the file by itself" in told) is not has_log
    assert "run folder" not in told


def test_who_does_not_ask_waits(judge: JudgeProcess) -> None:
    with pytest.raises(WorkerTimeout):
        judge.request("load", {"seconds": 30.0}, 0.3)
