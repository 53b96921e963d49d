"""The kernels that the verifier is timed on are what the suite says they are."""

import ast
import os
from pathlib import Path

import pytest
from benchmarks.faults import FAULTS, refused, uncompilable, wrong
from benchmarks.verify_problem import measure
from benchmarks.verify_suite import (
    ATTENTION,
    KERNELBENCH,
    KERNELS,
    SUITE,
    candidate,
    entry_of,
    with_constants,
)

from hotloop.problems import is_kernelbench_name, load_problem_spec
from hotloop.problems.kernelbench import POLICY
from hotloop.verify.static_rules import check_candidate

DATA = os.environ.get("HOTLOOP_KERNELBENCH")
needs_data = pytest.mark.skipif(not DATA, reason="HOTLOOP_KERNELBENCH names no data set")


def by_name(entry):
    return entry.problem


def test_every_kernel_belongs_to_one_problem_of_its_own():
    assert sorted(e.kernel for e in KERNELBENCH) == sorted(p.stem for p in KERNELS.glob("*.py"))
    assert len({e.problem for e in SUITE}) == len(SUITE)
    assert all(is_kernelbench_name(e.problem) for e in KERNELBENCH)
    assert all((KERNELS.parents[1] / e.problem).is_file() for e in ATTENTION)


@pytest.mark.parametrize("entry", KERNELBENCH, ids=by_name)
def test_a_kernel_says_which_problem_it_is_for_and_keeps_the_rules(entry):
    _, level, number = entry.problem.split("/")
    assert ast.get_docstring(ast.parse(entry.source)).startswith(
        f"KernelBench level {level}, problem {number}:"
    )
    for source in entry.sources():
        assert check_candidate(candidate(source), POLICY) is None


@pytest.mark.parametrize("entry", KERNELBENCH, ids=by_name)
def test_each_source_is_another_candidate(entry):
    sources = entry.sources()
    spoiled = [spoil(entry.source) for spoil in FAULTS.values()]
    assert len(sources) == 3
    assert len({candidate(s).id for s in (*sources, *spoiled)}) == 6
    for source in spoiled:
        ast.parse(source)


@needs_data
def test_the_data_set_has_the_problems_and_their_constants():
    for entry in KERNELBENCH:
        problem = load_problem_spec(entry.problem, device="cpu", data=DATA, settings=entry.shrink)
        assert problem.settings == entry.shrink


def test_the_static_fault_is_refused_and_only_that_one():
    source = entry_of("kernelbench/1/19").source
    found = check_candidate(candidate(refused(source)), POLICY)
    assert found.rule == "banned_import"
    for spoil in (uncompilable, wrong):
        assert check_candidate(candidate(spoil(source)), POLICY) is None


def test_the_output_is_spoiled_and_nothing_else():
    source = "tl.store(out_ptr, x + 1, mask=m)\ntl.store(map_ptr, first)\n"
    assert wrong(source) == "tl.store(out_ptr, (x + 1) * 2 + 1, mask=m)\ntl.store(map_ptr, first)\n"
    assert uncompilable("tl.store(a, b)\ntl.store(c, d)") == (
        "tl.store(a, b)\ntl.store(c, no_such_value)"
    )
    with pytest.raises(ValueError, match="store"):
        wrong("x = 1")


def test_in_gluon_what_the_copy_engine_takes_out_is_spoiled():
    text = (Path(__file__).parents[1] / "templates/golden/hopper_causal_softcap.py.txt").read_text()
    before = "o.index(w).reshape([ROWS, BLOCK_D]).store(acc.to(DTYPE))"
    assert text.count(before) == 1
    after = "o.index(w).reshape([ROWS, BLOCK_D]).store((acc.to(DTYPE)) * 2 + 1)"
    assert wrong(text) == text.replace(before, after)
    assert "store(no_such_value)" in uncompilable(text)


def test_a_constant_that_is_not_there_is_an_error():
    assert with_constants("BLOCK = 64\n", {"BLOCK": 32}) == "BLOCK = 32\n"
    for values in ({"BLOCK": 64}, {"SIZE": 1}):
        with pytest.raises(ValueError, match="expected one line"):
            with_constants("BLOCK = 64\n", values)


def test_a_problem_outside_the_suite_is_an_error():
    with pytest.raises(ValueError, match="kernelbench/1/2"):
        entry_of("kernelbench/1/2")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "entry", [pytest.param(e, marks=needs_data if e.kernel else ()) for e in SUITE], ids=by_name
)
def test_the_judge_passes_the_kernels_and_catches_the_spoiled_ones(entry):
    row = {"verdicts": []}
    measure(entry, row, device="cpu", log=None)
    assert [(v["what"], v["status"]) for v in row["verdicts"]] == [
        ("cold", "PASSED"),
        *[("new", "PASSED")] * 3,
        ("static", "REJECTED_STATIC"),
        ("compile", "COMPILE_ERROR"),
        ("wrong", "INCORRECT_NUMERICAL"),
    ]
    assert all(v["latency_ms"] is None for v in row["verdicts"])
