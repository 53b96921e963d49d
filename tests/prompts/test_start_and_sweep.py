"""The user's kernel and sweeps: the same from every generator, and no call for either."""

import pytest
from prompt_cases import candidate
from runs import TASK, Run, fast, kernel

from hotloop.core.attempt import Action
from hotloop.prompts.starting import StartGenerator
from hotloop.testing.fakes import FakeGenerator

START = candidate(kernel(tunables='TUNABLES = {"BLOCK": [512, 1024]}'))


@pytest.fixture
def run():
    return Run({}, start=START)


@pytest.fixture
def generators(run):
    """One that asks a model, and one around a generator that knows of no kernel of the user."""
    return [run.generator, StartGenerator(FakeGenerator(), START, run.store)]


def test_the_start_is_the_same_from_both(run, generators):
    begun = [g.generate(TASK.info, run.propose(1, Action.START)) for g in generators]
    assert begun[0] == begun[1]
    assert begun[0].candidate == START
    assert [d.name for d in begun[0].declared.dimensions] == ["BLOCK"]
    assert begun[0].spent.calls == 0


def test_a_sweep_is_the_same_from_both(run, generators):
    run.step(1, fast(), Action.START)
    sweep = run.propose(2, Action.SWEEP, 1, BLOCK=512)
    swept = [g.generate(TASK.info, sweep) for g in generators]
    assert swept[0] == swept[1]
    assert (swept[0].candidate.pins, swept[0].candidate.sources) == ({"BLOCK": 512}, START.sources)
    assert run.model.calls == []


def test_a_sweep_without_a_parent_is_refused_by_both(run, generators):
    for generator in generators:
        with pytest.raises(ValueError, match="expected a parent with a candidate"):
            generator.generate(TASK.info, run.propose(1, Action.SWEEP))


def test_a_broken_declaration_is_told_and_the_kernel_runs(run):
    broken = candidate(kernel(tunables="TUNABLES = {1: 2}"))
    generator = StartGenerator(FakeGenerator(), broken, run.store)
    begun = generator.generate(TASK.info, run.propose(1, Action.START))
    assert (begun.candidate, begun.declared) == (broken, None)
    assert "TUNABLES" in begun.notes[0]


def test_all_else_is_the_inner_generators(run, generators):
    _, wrapped = generators
    schedule = run.propose(1, Action.SCHEDULE, BLOCK=64, num_warps=4)
    inner = FakeGenerator()
    assert wrapped.generate(TASK.info, schedule) == inner.generate(TASK.info, schedule)
    assert wrapped.space(TASK.info) == inner.space(TASK.info)
    own = [
        wrapped.needs_call(run.propose(n, a)) for n, a in enumerate([Action.START, Action.SWEEP])
    ]
    assert own == [False, False]
