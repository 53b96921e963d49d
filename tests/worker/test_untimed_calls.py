"""Untimed calls: all alike, none of them unwatched, whatever a forward does to hide its work."""

import os
import threading
import weakref

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

from hotloop.worker.board import Board
from hotloop.worker.dispatch_witness import DispatchWitness
from hotloop.worker.draw import Draw
from hotloop.worker.launches import Launches
from hotloop.worker.observation import Observation
from hotloop.worker.starts import Starts
from hotloop.worker.untimed import Untimed, WatchedCall, draw_bare, draw_other_set, draw_set

X = torch.rand(32, 48)


def observe(work):
    """Return what is seen of a forward that does `work`."""
    witness, starts = DispatchWitness(), Starts()

    def forward(_):
        with witness:
            return [work()]

    try:
        observation = Observation(Launches(), forward, witness, starts=starts)
        witness.awake = True
        return observation.call(Untimed(looks=True).request(0), [X], range(0))[1]
    finally:
        starts.remove()


def hidden(work):
    """Return elements that torch worked on out of the modes' sight."""
    return sum(row["numel"] for row in observe(work)["hidden"])


def switched_off():
    """Compute while dispatch modes are off."""
    with torch._C._DisableTorchDispatch():
        return torch.softmax(X, 1)


def popped():
    """Compute while no mode is on the stack."""
    with _disable_current_modes():
        return torch.softmax(X, 1)


def packed_convolution():
    """Compute by a library of its own namespace."""
    ops, shape = torch.ops.mkldnn_prepacked, [1, 48, 32, 1]
    w = torch.ones(48, 48, 1, 1)
    held = ops.conv2d_prepack(w, None, [1, 1], [0, 0], [1, 1], 1, shape, "none")
    return ops.conv2d_run(X.t().contiguous().view(shape), held).view(48, 32).t()


def packed_convolution_out_of_sight():
    """Do it while dispatch modes are off."""
    with torch._C._DisableTorchDispatch():
        return packed_convolution()


@pytest.mark.parametrize("work", [switched_off, popped, packed_convolution_out_of_sight])
def test_operations_behind_a_modes_back_are_seen(work):
    assert hidden(work) >= X.numel()


@pytest.mark.parametrize(
    "work",
    [
        lambda: torch.softmax(X, 1),
        lambda: torch.nn.functional.dropout(X, training=False).reshape(48, 32).contiguous(),
        lambda: torch.nn.functional.conv2d(X[None, None], torch.ones(1, 1, 3, 3)),
        lambda: torch.einsum("ij,kj->ik", X, X),
        lambda: X[X > 0.5].sort().values.to(torch.float32),
        packed_convolution,
    ],
)
def test_what_a_mode_sees_is_not_hidden(work):
    seen = observe(work)
    assert seen["hidden"] == []


def test_a_printed_tensor_hides_a_few_values_only():
    big = torch.rand(200, 200)
    assert 0 < hidden(lambda: repr(big) and X) < big.numel() // 8


def test_ending_the_recording_is_seen():
    assert hidden(lambda: torch.autograd._disable_profiler_legacy() and X) > X.numel()


def layers():
    """Compute by operations that are made of others."""
    return torch.nn.functional.linear(X, X).relu().softmax(1).sum(1)


@pytest.mark.parametrize("work", [layers, torch.inference_mode()(layers)])
def test_work_is_counted_alike_with_and_without_modes(work):
    witness = DispatchWitness()
    witness.awake = True
    with witness:
        work()
    bare = witness.work
    seen = observe(work)
    assert bare == seen["work"] > X.numel()
    assert seen["hidden"] == []
    witness.awake = False
    with witness:
        work()
    assert witness.work == bare  # asleep, it keeps what it saw last


def in_a_thread():
    """Work in a thread that ends before the call does."""
    thread = threading.Thread(target=lambda: torch.softmax(X, 1))
    thread.start()
    thread.join()
    return X


def in_a_child():
    """Work in a process that ends before the call does."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return X


@pytest.mark.parametrize("work", [in_a_thread, in_a_child])
def test_what_begins_and_ends_within_a_call_is_counted(work):
    seen = observe(work)
    assert seen["started"] >= 1
    assert seen["python_threads"] == 1


def test_nothing_begins_in_a_plain_call():
    assert observe(lambda: X + 1)["started"] == 0


def test_names_are_given_back():
    before = threading._start_new_thread
    starts = Starts()
    starts.install()
    assert threading._start_new_thread is not before
    starts.remove()
    assert threading._start_new_thread is before


def test_kept_outputs_are_the_ones_before_and_only_once():
    made = iter((torch.ones(3), torch.zeros(3)))
    starts = Starts()
    observation = Observation(Launches(), lambda _: [next(made)], DispatchWitness(), starts=starts)
    starts.remove()
    order = Untimed().request(0)
    observation.call(order, [], range(0))
    observation.step("keep")
    observation.call(order, [], range(0))
    assert [t.tolist() for t in observation.step("recopy")] == [[1, 1, 1]]
    assert observation.step("recopy") == []


def test_memory_is_poisoned_once_the_outputs_before_are_let_go_of():
    starts, alive = Starts(), []
    observation = Observation(
        Launches(), lambda _: [torch.ones(3)], DispatchWitness(), starts=starts
    )
    starts.remove()
    order = Untimed().request(0)
    (before,), _ = observation.call(order, [], range(0))
    held = weakref.ref(before)
    del before
    assert held() is not None  # by the watch, until the next call
    observation.call(order, [], range(0), lambda: alive.append(held()))
    assert alive == [None]


class Ends:
    """Works when it is let go of."""

    def __del__(self):
        torch.softmax(X, 1)


def behind_a_mode():
    """Return something that works out of the modes' sight when it is let go of."""

    class Hidden:
        def __del__(self):
            with torch._C._DisableTorchDispatch():
                torch.softmax(X, 1)

    return Hidden()


@pytest.mark.parametrize(
    ("later", "seen"),
    [(Ends, "operations"), (behind_a_mode, "hidden"), (lambda: None, None)],
)
def test_what_runs_as_an_output_ends_is_under_the_next_calls_watch(later, seen):
    witness, starts = DispatchWitness(), Starts()

    def forward(_):
        with witness:
            y = X.clone()
            y.later = later()
            return [y]

    try:
        observation = Observation(Launches(), forward, witness, starts=starts)
        witness.awake = True
        order = Untimed(looks=True).request(0)
        first = observation.call(order, [X], range(0))[1]
        second = observation.call(order, [X], range(0))[1]
    finally:
        starts.remove()
    for key in ("operations", "hidden"):
        assert first[key] == []
        names = {row["name"] for row in second[key]}
        assert names == ({"_softmax"} if key == seen else set())


def test_addresses_and_bare_calls_are_drawn():
    assert {draw_set(16) for _ in range(200)} == {0, 1, 2, 3}
    assert draw_set(1) == 0
    again = sum(draw_set(4, 3) == 3 for _ in range(1000))
    assert 500 < again < 750  # 625 expected, 15 the deviation
    assert {draw_other_set(3, 1) for _ in range(100)} == {0, 2}
    assert draw_other_set(1, 0) == 0
    assert {tuple(draw_bare(2)) for _ in range(100)} == {(False, True), (True, False)}
    assert sum(draw_bare(8)) == 4


def test_a_bare_answer_tells_work_starts_and_launches_only():
    answer = {"outputs": [], "work": 7, "started": 1, "launches": 2}
    found = WatchedCall.read(answer, has_python=True, bare=True)
    assert (found.seen, found.work, found.started, found.launches) == (None, 7, 1, 2)
    assert WatchedCall.read({"outputs": []}, has_python=False, bare=False).seen is None


def test_inputs_are_hidden_while_candidates_prepare():
    from hotloop.worker.arena import Arena, Layout

    layout = Layout()
    slots = [layout.place_like(t) for t in (X, torch.arange(4), X[0])]
    board = Board(Arena.create("cpu", layout.size_bytes), layout, {}, [(slots[:2], slots[2:])], 0)
    board.write_inputs(0, Draw((X, torch.arange(4)), {}, 0, "normal"))
    values, indices = (board.arena.view(s) for s in slots[:2])
    assert torch.equal(values, X)
    board.hide_inputs()
    assert bool(values.isnan().all())
    assert not indices.any()
