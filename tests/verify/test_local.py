"""The judge behind its pipe: its death is the machine's fault, and the next one goes on."""

import os
import signal
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from small_kernels import DOUBLE, DOUBLE_PROBLEM, candidate

from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError, DeviceLost, InfraError, ProblemError, WorkerTimeout
from hotloop.sandbox.processes import descendants
from hotloop.verify import LocalVerifier, find_device, local
from hotloop.verify.devices import gpu_names
from hotloop.verify.isolation_choice import choose_tier


def problem(source=DOUBLE_PROBLEM):
    return Problem(name="double", kind=ProblemKind.KERNELBENCH, source=source, policy=Policy())


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    others = judge_pids()
    verifier = LocalVerifier("cpu", log_path=tmp_path_factory.mktemp("log") / "judge.log")
    verifier.load(problem())
    yield verifier, judge_pids() - others
    verifier.close()


@pytest.fixture
def verifier(running):
    return running[0]


@pytest.fixture(scope="module")
def spare():
    verifier = LocalVerifier("cpu")
    yield verifier
    verifier.close()


def judge_pids():
    listing = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    return {
        int(line.split()[0])
        for line in listing.splitlines()
        if "hotloop.worker.judge" in line and int(line.split()[1]) == os.getpid()
    }


def test_a_right_kernel_passes_without_any_time(verifier):
    verdict = verifier.verify(candidate(DOUBLE), Tier.FAST)
    assert verdict.status is Status.PASSED
    assert verdict.performance is None
    assert verdict.deterministic is True
    assert verdict.isolation == "T1"
    assert {c.profile for c in verdict.correctness.cases} >= {"shipped", "normal", "large"}


SLOW_TO_LOAD = DOUBLE_PROBLEM.replace("return x * 2", "import time; time.sleep(0.6); return x * 2")


@pytest.mark.slow
def test_what_is_verified_first_is_compiled_beside_the_load(spare):
    waits = []
    for ahead in ([candidate(DOUBLE)], []):
        spare.load(problem(SLOW_TO_LOAD + f"# {len(ahead)}\n"), ahead=ahead)
        verdict = spare.verify(candidate(DOUBLE), Tier.FAST)
        assert verdict.status is Status.PASSED
        waits.append(verdict.stage_s.get("compile_wait", 0.0))
    assert waits[0] < waits[1] / 4


@pytest.mark.slow
def test_what_cannot_be_compiled_ahead_is_a_verdict_as_ever(spare):
    broken = candidate(DOUBLE.replace("tl.load(x + i", "tl.load(z + i"))
    spare.load(problem(), ahead=[broken, candidate(DOUBLE.replace("torch, triton", "os, triton"))])
    assert spare.verify(broken, Tier.FAST).status is Status.COMPILE_ERROR
    assert spare.verify(candidate(DOUBLE), Tier.FAST).status is Status.PASSED


def test_a_wrong_kernel_does_not(verifier):
    verdict = verifier.verify(candidate(DOUBLE.replace("2 *", "2.0001 *")), Tier.FAST)
    assert verdict.status is Status.INCORRECT_NUMERICAL
    assert verdict.evidence.details["samples"]


def test_a_dead_judge_is_an_infra_error_and_the_next_one_goes_on(running):
    verifier, (pid,) = running
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(InfraError, match="judge"):
        verifier.verify(candidate(DOUBLE), Tier.FAST)
    with pytest.raises(InfraError, match="started again"):  # not the user's fault either
        verifier.build(candidate(DOUBLE))
    assert verifier.verify(candidate(DOUBLE), Tier.FAST).status is Status.PASSED


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("return x * 2", "raise ValueError('no weights')", "no weights"),
        ("return x * 2", "return x / 0", "finite"),
        ("def get_inputs", "def other", "get_inputs"),
    ],
)
def test_a_broken_reference_is_a_problem_error_and_the_judge_stays(spare, old, new, why):
    with pytest.raises(ProblemError, match=why):
        spare.load(problem(DOUBLE_PROBLEM.replace(old, new)))


def test_a_candidate_before_any_problem_is_refused():
    with pytest.raises(ConfigError, match="load"):
        LocalVerifier("cpu").verify(candidate(DOUBLE), Tier.FAST)


def test_names_of_tiers_and_devices():
    assert choose_tier("T0") == "T0"
    with pytest.raises(ConfigError, match="T9"):
        choose_tier("T9")
    with pytest.raises(ConfigError, match="tpu"):
        find_device("tpu")
    assert find_device("cpu") == "cpu"


@pytest.mark.skipif(bool(gpu_names()), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there():
    assert find_device("auto") == "cpu"
    with pytest.raises(DeviceLost, match="hotloop doctor"):
        find_device("cuda")


@pytest.mark.slow
def test_a_dead_zygote_is_the_machines_fault_and_not_the_candidates():
    verifier = LocalVerifier("cpu")
    verifier.load(problem())
    waiting = DOUBLE.replace("import torch,", "import time, torch,").replace(
        "        y = torch", "        time.sleep(3)\n        y = torch"
    )
    zygotes = [p.pid for p in descendants(os.getpid()) if b"worker.zygote" in command_of(p.pid)]
    killer = threading.Timer(6.0, lambda: [os.kill(pid, signal.SIGKILL) for pid in zygotes])
    killer.start()
    try:
        with pytest.raises(InfraError):
            verifier.verify(candidate(waiting), Tier.FAST)  # 8 calls of 3 s each
    finally:
        verifier.close()


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("output", ["torch.fft.rfft(x)", "torch.complex(x, -x)"])
def test_complex_outputs_are_refused_because_no_gate_reads_them(spare, output):
    with pytest.raises(ProblemError, match="complex|not floating point"):
        spare.load(problem(DOUBLE_PROBLEM.replace("return x * 2", f"return {output}")))


ENDLESS = DOUBLE_PROBLEM.replace("return x * 2", "import time; time.sleep(100.0); return x * 2")


@pytest.mark.slow
def test_a_reference_that_does_not_end_is_given_up_and_named(monkeypatch):
    monkeypatch.setattr(local, "LOAD_S", 3.0)
    with closing(LocalVerifier("cpu")) as verifier:
        for ask in (verifier.load, verifier.audit):
            with pytest.raises(WorkerTimeout, match="not loaded within 3 s .* does not end"):
                ask(problem(ENDLESS))
