import pytest

from hotloop.core.problem import ProblemKind, Role
from hotloop.errors import ConfigError
from hotloop.problems import load_problem_spec

MODEL = """M, N = 8, 16
dtype = "float32"

class Model: ...
"""


def load(tmp_path, text):
    path = tmp_path / "p.py"
    path.write_text(MODEL + text)
    return load_problem_spec(path, device="cuda")


def test_workloads_policy_and_tolerances_are_read(tmp_path):
    problem = load(
        tmp_path,
        "workloads = [{'M': 7}, {'M': 9, 'N': 5, 'role': 'held_out', 'name': 'odd'}]\n"
        "policy = {'precision': 'strict', 'languages': ['triton'], 'library_calls': 'none'}\n"
        "tolerances = {'atol': 1e-5}\n",
    )
    assert problem.kind is ProblemKind.NATIVE
    nominal, boundary, odd = problem.workloads
    assert (nominal.name, nominal.role, nominal.settings) == ("nominal", Role.NOMINAL, {})
    assert (boundary.role, boundary.settings) == (Role.BOUNDARY, {"M": 7})
    assert (odd.name, odd.role, odd.settings) == ("odd", Role.HELD_OUT, {"M": 9, "N": 5})
    assert problem.policy.precision == "strict"
    assert problem.policy.languages == ("triton",)
    assert problem.policy.shape_scope == "generic", "the file lists other shapes"
    assert problem.tolerances == {"atol": 1e-5}


def test_a_workload_may_be_the_nominal_one(tmp_path):
    problem = load(tmp_path, "workloads = [{'M': 7}, {'M': 4, 'role': 'nominal'}]\n")
    assert [w.role for w in problem.workloads] == [Role.NOMINAL, Role.BOUNDARY]
    assert problem.workloads[0].settings == {"M": 4}


def test_tolerances_are_part_of_the_identity(tmp_path):
    loose, tight = (load(tmp_path, f"tolerances = {{'rtol': {r}}}\n") for r in (1e-3, 1e-5))
    assert loose.id != tight.id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workloads = [dict(M=3)]\n", "line 5: workloads must be a literal list"),
        ("workloads = {'M': 3}\n", "workloads must be a list"),
        ("workloads = [{'K': 3}]\n", "the file has no constant 'K'"),
        ("workloads = [{'M': [3]}]\n", "M must be a number or text"),
        ("workloads = [{'M': 3, 'role': 'timed'}]\n", "role is one of nominal, boundary, held_out"),
        ("workloads = [3]\n", "expected a dict of constants, got 3"),
        ("workloads = [{'role': 'nominal'}] * 2\n", "must be a literal"),
        ("workloads = [{'M': 1, 'name': 'a'}, {'M': 2, 'name': 'a'}]\n", "names must differ"),
        ("policy = {'speed': 'high'}\n", "unknown key 'speed'"),
        ("policy = {'precision': 'fp4'}\n", "precision is one of as_shipped, strict"),
        ("policy = {'languages': 'triton'}\n", "expected a list of languages"),
        ("tolerances = {'atol': -1}\n", "atol must be a number of 0 or more"),
        ("tolerances = {'max': 1}\n", "unknown key 'max'"),
        ("grad = ['x']\n", "line 5: backward passes are not in this version"),
    ],
)
def test_mistakes_are_refused_with_their_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)
