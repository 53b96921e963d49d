"""Parts of the look at a candidate's conduct; whole candidates are in `tests/attacks/cheats`."""

import _thread
import threading
import time

import pytest
import torch
from problem_files import forward

from hotloop.worker import copy_out, observation, poison
from hotloop.worker.beside_kernels import refused
from hotloop.worker.call_rules import works_unwatched
from hotloop.worker.cases import Case
from hotloop.worker.claims import MalformedAnswer, Observed, patched
from hotloop.worker.compare import make_bound
from hotloop.worker.known_case import Known
from hotloop.worker.launches import Launches
from hotloop.worker.one_element import with_one_changed
from hotloop.worker.reference import Draw, build_reference
from hotloop.worker.state_guard import StateGuard

SEEN = {
    "launches": 1, "operations": [], "applied": 0, "answers": [], "from_kernels": 1,
    "python_threads": 1, "tasks": 0, "hidden": [], "started": 0,
}  # fmt: skip
REFERENCE = build_reference(forward("x + 1", "torch.rand(4)"))
"""Of no importance: a problem that allows nothing in particular."""


def test_launches_are_counted_and_left_out_only_under_watch():
    ran = []
    launches = Launches()
    launches.run((), lambda: ran.append("before"))
    assert launches.unwatched == 1
    with launches.watched():
        launches.run((), lambda: ran.append("counted"))
    assert (launches.count, launches.unwatched) == (1, 1)
    with launches.watched(left_out=True):
        launches.run((), lambda: ran.append("left out"))
    assert launches.count == 1
    launches.run((), lambda: ran.append("after"))
    assert ran == ["before", "counted", "after"]


def test_a_watcher_sees_the_tensors_before_and_after():
    seen = []
    launches, x = Launches(), torch.zeros(2)

    def watch(tensors):
        seen.append(tensors[0].tolist())
        return lambda: seen.append(tensors[0].tolist())

    with launches.watched(watcher=watch):
        launches.run((3, (x,), None), lambda: x.fill_(1))
    assert seen == [[0, 0], [1, 1]]


def test_a_launch_that_fails_leaves_the_watch_on():
    seen, launches = [], Launches()

    def fail():
        raise RuntimeError("no such kernel")

    watched = launches.watched(watcher=lambda tensors: lambda: seen.append("after"))
    with watched, pytest.raises(RuntimeError, match="no such kernel"):
        launches.run((), fail)
    assert seen == ["after"]


@pytest.mark.parametrize(
    ("policy", "census", "operations", "found"),
    [
        ("none", set(), {"mm": 100}, "mm"),
        ("none", set(), {"_softmax": 100}, "_softmax"),
        ("none", set(), {"mm": 3, "sum": 100, "exp": 100}, None),
        ("anchored", {"mm"}, {"mm": 100, "max_pool2d_with_indices": 100}, None),
        ("anchored", {"_softmax"}, {"_softmax": 100}, "_softmax"),
        ("anchored", {"_softmax"}, {"_softmax": 10, "sum": 100}, "sum"),
        ("anchored", {"_softmax"}, {"_softmax": 10, "sum": 39, "zeros": 100}, None),
        ("anchored", {"_softmax"}, {"_softmax": 10, "sum": 49}, "sum"),
    ],
)
def test_operations_beside_a_kernel(policy, census, operations, found):
    assert refused(operations, policy, frozenset(census), largest=100) == found


@pytest.mark.parametrize("shape", [(8, 48), (1000,), (3, 5, 7)])
def test_one_element_is_changed_within_the_range_of_the_others(shape):
    x = torch.rand(shape)
    changed = with_one_changed(x)
    place = (changed != x).flatten().nonzero().tolist()
    assert len(place) == 1
    assert place[0][0] % 2 == 1 or x.numel() % 2  # odd, in memory order
    assert x.min() <= changed.min()
    assert changed.max() <= x.max()
    assert changed.unique().numel() == x.unique().numel()


def test_layout_stays_and_integers_are_left_alone():
    x = torch.rand(20, 12).t()
    assert with_one_changed(x).stride() == x.stride()
    whole = torch.arange(100)
    assert with_one_changed(whole) is whole


def test_threads_and_patches_are_told(monkeypatch):
    guard = StateGuard()
    before = guard.describe()
    assert guard.patched() == []
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    found = guard.describe()
    done.set()
    thread.join()
    assert found["python_threads"] == before["python_threads"] + 1
    assert found["tasks"] >= 1
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(copy_out, "copy_out", print)
    monkeypatch.setattr(observation.Observation, "call", print)
    monkeypatch.setattr(StateGuard, "describe", dict)
    names = {"hotloop.worker.copy_out.copy_out", "time.perf_counter"}
    assert names | {"Observation.call", "StateGuard.describe"} <= set(guard.patched())


def test_a_thread_that_runs_no_python_is_told():
    guard = StateGuard()
    begin = threading.Lock()
    begin.acquire()
    _thread.start_new_thread(begin.acquire, ())  # a function in C: it has no frame
    time.sleep(0.1)  # it is counted once it runs
    found = guard.describe()
    begin.release()
    assert found["python_threads"] == 2


def test_hooks_around_launches_are_told():
    from triton import knobs

    guard = StateGuard()
    knobs.runtime.launch_enter_hook.add(print)
    try:
        assert guard.patched() == ["triton.launch_enter_hook"]
    finally:
        knobs.runtime.launch_enter_hook.remove(print)
    assert guard.patched() == []


def test_code_that_was_exchanged_inside_a_function_is_told():
    guard = StateGuard()
    code = poison.fill.__code__
    poison.fill.__code__ = (lambda tensor: None).__code__
    try:
        assert "hotloop.worker.poison.fill" in guard.patched()
    finally:
        poison.fill.__code__ = code


@pytest.mark.parametrize(
    "spoilt",
    [
        {"launches": "many"},
        {"operations": [{"name": "mm"}]},
        {"answers": {"mm": 0}},
        {"hidden": [{"name": "mm"}]},
        {"started": True},
        {"tasks": None},
    ],
)
def test_what_is_no_observation_is_refused(spoilt):
    assert Observed.read(SEEN).launches == 1
    with pytest.raises(MalformedAnswer):
        Observed.read({**SEEN, **spoilt})


def test_what_is_no_list_of_patches_is_refused():
    assert patched({}) == ()
    assert patched({"patched": ["torch.equal"]}) == ("torch.equal",)
    with pytest.raises(MalformedAnswer):
        patched({"patched": "none"})


def known(golden, *inputs):
    """Return a case whose limits follow from float32 results of these inputs."""
    draw = Draw(inputs, {}, 0, "normal")
    eager = golden.float()
    bound = make_bound(golden, [eager], eager.dtype, exact=False)
    case = Case("nominal", "normal", 0, (bound,))
    return Known(REFERENCE, case, draw, (golden,)), [eager]


@pytest.mark.parametrize(
    ("golden", "plain"),
    [
        (lambda x: torch.zeros_like(x), True),
        (lambda x: torch.full_like(x, 3.0), True),
        (lambda x: x.abs(), True),  # of positive values: a copy
        (lambda x: x * 2, False),
        (lambda x: x.t().contiguous(), False),
        (lambda x: x.sum(dim=1), False),
    ],
)
def test_results_that_need_no_arithmetic_are_plain(golden, plain):
    x = torch.rand(6, 8) + 0.5
    case, outputs = known(golden(x.double()), x)
    assert case.is_plain(outputs) == plain


def test_a_result_is_right_within_its_limits_only():
    x = torch.rand(6, 8)
    case, outputs = known(x.double() * 2, x)
    assert case.is_right(outputs)
    assert not case.is_right([outputs[0] * 1.01])
    assert case.largest == 48


@pytest.mark.parametrize(
    ("watched", "bare", "more"),
    [([0], [48], True), ([0], [0], False), ([48], [48], False), ([0, 48], [48, 48], False),
     ([0, 0], [48, 0], False), ([0], [], False), ([10], [33], False)],
)  # fmt: skip
def test_work_that_is_done_in_every_bare_call_only_is_told(watched, bare, more):
    x = torch.rand(6, 8)
    case, _ = known(x.double() * 2, x)
    assert works_unwatched(case, watched, bare) == more


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int32, torch.bool])
def test_types_without_a_small_step_are_left_alone(dtype):
    x = torch.rand(4, 8).to(dtype)
    assert with_one_changed(x) is x
