"""Sizes beside the problem's own: which constants may vary, which values they get, what is kept."""

import random

import pytest
import torch

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.boundary_sizes import (
    HELD_OUT,
    HELD_OUT_FRAC,
    OTHERS,
    SHOWN,
    VALUES,
    SizeSpace,
    proposals,
    values_of,
)
from hotloop.worker.size_trial import LIMITS, runs_on_cpu, size_space

SOURCE = """
import torch
BATCH = 64 * 2
COLUMNS, FEATURES = 256, 96
KERNEL = 3
EPS = 1e-5
DERIVED = COLUMNS * 2
class Model(torch.nn.Module):
    def __init__(self, columns, features):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(columns, features))
        self.k = torch.nn.Parameter(torch.rand(KERNEL))
    def forward(self, x):
        {check}
        return x @ self.w + self.k.sum() + EPS
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return [COLUMNS, FEATURES]
"""

MISTAKES = {
    "above": lambda n: n > 1 and n % 16 == 1,
    "below": lambda n: n % 16 == 15,
    "tile": lambda n: n % 16 == 0,
    "odd": lambda n: n % 8 == 4,
    "one": lambda n: n == 1,
    "prime": lambda n: n % 16 in (5, 7, 13),
}
"""Sizes at which a kernel with a mistake at block ends is wrong: each is met by one kind alone."""


def problem(inputs="torch.rand(BATCH, COLUMNS)", check="pass"):
    source = SOURCE.format(inputs=inputs, check=check)
    return Problem(name="m", kind=ProblemKind.KERNELBENCH, source=source)


def space_of(*, device="cpu", **changes):
    return size_space(problem(**changes), {}, device)


def made(space, kinds, seed=0):
    """Return the first proposal of each kind, as a judge takes it where all are accepted."""
    covered, found = set(), []
    for i, kind in enumerate(kinds):
        found.append(next(proposals(space, kind, covered, random.Random(seed + i))))
        covered |= set(found[-1])
    return found


def test_constants_that_shapes_follow_are_found_without_their_memory():
    space = space_of()
    assert space.nominal == {"BATCH": 128, "COLUMNS": 256, "FEATURES": 96}
    assert space.structural == {"COLUMNS", "FEATURES"}
    huge = space_of(inputs="torch.rand(BATCH, COLUMNS, 2**40)[:, :, 0]")
    assert huge.nominal == space.nominal


def test_what_a_candidates_constructor_could_not_know_stays_as_it_is():
    own_width = problem().source.replace("(self, columns, features)", "(self)")
    own_width = own_width.replace("rand(columns, features)", "rand(COLUMNS, FEATURES)")
    own_width = own_width.replace("[COLUMNS, FEATURES]", "[]")
    fixed = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=own_width)
    assert set(size_space(fixed, {}, "cpu").nominal) == {"BATCH"}


def test_a_file_without_such_constants_has_no_space():
    fixed = Problem(
        name="m",
        kind=ProblemKind.KERNELBENCH,
        source="import torch\nN = 3\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x * N\n"
        "def get_inputs():\n    return [torch.rand(8, 8)]\n",
    )
    assert size_space(fixed, {}, "cpu") is None
    assert space_of(inputs="torch.rand(BATCH, int(torch.tensor(COLUMNS).item()))") is None


def test_attention_varies_lengths_and_keeps_groups_of_heads():
    source = "import torch\nB, H, Hkv, S, D = 2, 8, 2, 1024, 16\n"
    grouped = Problem(name="a", kind=ProblemKind.ATTENTION, source=source)
    space = size_space(grouped, {}, "cpu")
    assert set(space.nominal) == {"B", "S"}
    for sizes in made(space, SHOWN + HELD_OUT):
        assert runs_on_cpu(grouped, sizes)


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_each_kind_meets_a_mistake_that_no_other_does(kind):
    met = {k for k in VALUES if any(map(MISTAKES[kind], VALUES[k]))}
    assert met == {kind}
    assert all(map(MISTAKES[kind], VALUES[kind])) or kind == "prime"
    if kind == "prime":
        assert all(all(n % d for d in range(2, n)) for n in VALUES[kind])


def test_shapes_fit_and_vary_every_dimension():
    for device in ("cpu", "cuda"):
        space = space_of(device=device)
        assert not space.fits({"BATCH": 1 << 15, "COLUMNS": 1 << 15})
        shapes = made(space, SHOWN + HELD_OUT)
        assert all(space.measure(s) <= LIMITS[device] for s in shapes)
        for name, own in space.nominal.items():
            assert any(s[name] != own for s in shapes)
            assert any(s[name] % 8 for s in shapes)
        assert len({tuple(s.items()) for s in shapes}) == len(shapes)


def test_shown_shapes_are_the_same_for_every_judge_and_others_differ():
    space = space_of()
    assert made(space, SHOWN, seed=5) == made(space, SHOWN, seed=5)
    assert made(space, HELD_OUT, seed=5) != made(space, HELD_OUT, seed=6)
    assert len(HELD_OUT) >= HELD_OUT_FRAC * (len(HELD_OUT) + len(SHOWN))


def test_held_out_values_are_never_those_that_a_model_is_told_as_smaller_sizes():
    for nominal in (2, 3, 8, 30, 62, 64, 100, 128, 260, 1000, 4096):
        halved = {nominal >> k for k in range(1, 13)}
        for kind in {*HELD_OUT, *OTHERS}:
            values = values_of(kind, nominal)
            assert values
            assert not halved & set(values)
            assert nominal not in values


def test_a_reference_that_needs_all_but_one_size_gets_shapes_that_vary_that_one():
    space = space_of(check="assert x.shape[1] % 64 == 0")
    seen = list(proposals(space, "odd", set(), random.Random(1)))
    kept = [s for s in seen if runs_on_cpu(problem(check="assert x.shape[1] % 64 == 0"), s)]
    assert kept
    assert all(s["COLUMNS"] % 64 == 0 for s in kept)
    assert any(s["BATCH"] % 8 == 4 for s in kept)


def test_what_would_end_a_gpu_context_is_left_out_on_the_cpu(capfd):
    """An index beyond the end: a plain exception here, a lost context there."""
    table = "x = torch.ones(200)[torch.arange(x.shape[0])][:, None] * x"
    assert runs_on_cpu(problem(check=table), {"BATCH": 129})
    assert not runs_on_cpu(problem(check=table), {"BATCH": 201})
    assert "IndexError" in capfd.readouterr().err
    assert not runs_on_cpu(problem(check="x = x / 0"), {"BATCH": 17})


def test_a_space_that_never_fits_yields_nothing():
    space = SizeSpace({"N": 64}, frozenset(), lambda sizes: 1 << 30, 1 << 10)
    assert list(proposals(space, "above", set(), random.Random(0))) == []
    assert torch.get_default_device().type == "cpu"
