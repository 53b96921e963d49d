"""A real judge that is stopped in its work: another one takes over, and what comes late is late."""

import os
import signal
import threading
import time

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.engine.evaluation import MISSED, Evaluation
from hotloop.errors import WorkerTimeout
from hotloop.sandbox.processes import descendants
from hotloop.store.memory import MemoryStore
from hotloop.verify import LocalVerifier

pytestmark = pytest.mark.slow

HEARTBEAT_S = 0.5
PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(7, 33)]
def get_init_inputs():
    return []
"""
KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
"""
CANDIDATE = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=KERNEL),))


@pytest.fixture(scope="module")
def verifier():
    verifier = LocalVerifier("cpu")
    problem = Problem(name="double", kind=ProblemKind.KERNELBENCH, source=PROBLEM, policy=Policy())
    verifier.load(problem)
    yield verifier
    verifier.close()


def judge_pid(verifier) -> int:
    return verifier._judge._process.pid


def evaluate(store, verifier):
    lease = store.leases.lease(CANDIDATE.id, Tier.FAST, judge="cpu", ttl_s=60.0)
    return lease, Evaluation(store, verifier, CANDIDATE, lease).verdict(HEARTBEAT_S)


def test_a_judge_that_works_answers_beside_its_work(verifier):
    alive = []
    ended = threading.Event()

    def ask():
        while not ended.is_set():
            alive.append(verifier.is_alive(MISSED * HEARTBEAT_S))

    asking = threading.Thread(target=ask)
    asking.start()
    _, verdict = evaluate(MemoryStore(), verifier)
    ended.set()
    asking.join()
    assert verdict.status is Status.PASSED
    assert set(alive) == {True}


def test_a_stopped_judge_is_replaced_within_its_grace(verifier):
    store = MemoryStore()
    pid = judge_pid(verifier)
    os.kill(pid, signal.SIGSTOP)
    began_s = time.monotonic()
    with pytest.raises(WorkerTimeout, match="no sign of life"):
        evaluate(store, verifier)
    assert time.monotonic() - began_s < 4 * MISSED * HEARTBEAT_S
    assert pid not in {process.pid for process in descendants(os.getpid())}
    lease, verdict = evaluate(store, verifier)
    assert (lease.attempt, verdict.status) == (2, Status.PASSED)
    assert len(store.leases.failures(CANDIDATE.id, Tier.FAST)) == 1


def test_a_judge_that_was_stopped_for_a_moment_goes_on(verifier):
    pid = judge_pid(verifier)
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(2 * HEARTBEAT_S, os.kill, (pid, signal.SIGCONT)).start()
    lease, verdict = evaluate(MemoryStore(), verifier)
    assert (lease.attempt, verdict.status) == (1, Status.PASSED)
    assert judge_pid(verifier) == pid
