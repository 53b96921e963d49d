"""`kernel[grid]` that is held and called again: its grid and its hooks are those of each call."""

import pytest
import torch

from hotloop.worker.launches import Launches


@pytest.fixture
def call(monkeypatch):
    """Return the watched call of a launcher, and what launches were given."""
    from triton.runtime import interpreter

    seen = []

    def stock(executor, x, **named):
        seen.append((executor.grid, list(executor.pre_run_hooks), x.numel()))

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", stock)
    launches = Launches()
    launches.watch_interpreter()
    monkeypatch.setattr(launches, "watching", True)
    return interpreter.GridExecutor.__call__, seen


class Executor:
    """A launcher of a kernel of one tensor."""

    def __init__(self, hook):
        self.grid = lambda given: (given["x"].numel(),)
        self.pre_run_hooks = [hook]

    @staticmethod
    def fn(x):
        """Stand for the kernel's function."""


def test_each_call_has_its_own_grid_and_hooks(call):
    watched, seen = call
    heard = []
    held = Executor(lambda x: heard.append(x.numel()))
    grid, hooks = held.grid, held.pre_run_hooks
    for n in (4, 9):
        watched(held, torch.zeros(n))
    assert seen == [((4,), [], 4), ((9,), [], 9)]
    assert heard == [4, 9]
    assert held.grid is grid
    assert held.pre_run_hooks is hooks


def test_a_hook_that_raises_leaves_the_launcher_as_it_was(call):
    watched, seen = call

    def hook(x):
        raise ValueError("no")

    held = Executor(hook)
    with pytest.raises(ValueError, match="no"):
        watched(held, torch.zeros(4))
    assert held.pre_run_hooks == [hook]
    assert seen == []
