"""Parts of the look at a candidate's conduct; whole candidates are in `tests/attacks/cheats`."""

import threading
import time

import pytest
import torch

from hotloop.worker import copy_out, poison
from hotloop.worker.claims import MalformedAnswer, Observed
from hotloop.worker.conduct import _refused, _with_one_changed
from hotloop.worker.launches import Launches
from hotloop.worker.state_guard import StateGuard

SEEN = {
    "launches": 1, "operations": [], "answers": [], "from_kernels": 1, "python_threads": 1,
    "tasks": 0,
}  # fmt: skip


def test_launches_are_counted_and_left_out_only_under_watch():
    ran = []
    launches = Launches()
    launches.run((), lambda: ran.append("before"))
    with launches.watched():
        launches.run((), lambda: ran.append("counted"))
    assert launches.count == 1
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


@pytest.mark.parametrize(
    ("policy", "census", "operations", "refused"),
    [
        ("none", set(), {"mm": 100}, "mm"),
        ("none", set(), {"_softmax": 100}, "_softmax"),
        ("none", set(), {"mm": 3, "sum": 100, "exp": 100}, None),
        ("anchored", {"mm"}, {"mm": 100, "max_pool2d_with_indices": 100}, None),
        ("anchored", {"_softmax"}, {"_softmax": 100}, "_softmax"),
        ("anchored", {"_softmax"}, {"_softmax": 10, "sum": 100, "mul": 100}, None),
    ],
)
def test_operations_beside_a_kernel(policy, census, operations, refused):
    assert _refused(operations, policy, frozenset(census), largest=100) == refused


@pytest.mark.parametrize("shape", [(8, 48), (1000,), (3, 5, 7)])
def test_one_element_is_changed_within_the_range_of_the_others(shape):
    x = torch.rand(shape)
    changed = _with_one_changed(x)
    place = (changed != x).flatten().nonzero().tolist()
    assert len(place) == 1
    assert place[0][0] % 2 == 1 or x.numel() % 2  # odd, in memory order
    assert x.min() <= changed.min()
    assert changed.max() <= x.max()
    assert changed.unique().numel() == x.unique().numel()


def test_layout_stays_and_integers_are_left_alone():
    x = torch.rand(20, 12).t()
    assert _with_one_changed(x).stride() == x.stride()
    whole = torch.arange(100)
    assert _with_one_changed(whole) is whole


def test_threads_and_patches_are_told(monkeypatch):
    guard = StateGuard()
    before = guard.describe()
    assert before["patched"] == []
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
    names = {"hotloop.worker.copy_out.copy_out", "time.perf_counter"}
    assert set(guard.describe()["patched"]) == names


def test_code_that_was_exchanged_inside_a_function_is_told():
    guard = StateGuard()
    code = poison.fill.__code__
    poison.fill.__code__ = (lambda tensor: None).__code__
    try:
        assert guard.describe()["patched"] == ["hotloop.worker.poison.fill"]
    finally:
        poison.fill.__code__ = code


@pytest.mark.parametrize(
    "spoilt",
    [
        {"launches": "many"},
        {"operations": [{"name": "mm"}]},
        {"answers": {"mm": 0}},
        {"patched": "none"},
        {"tasks": None},
    ],
)
def test_what_is_no_observation_is_refused(spoilt):
    assert Observed.read(SEEN).launches == 1
    with pytest.raises(MalformedAnswer):
        Observed.read({**SEEN, **spoilt})
