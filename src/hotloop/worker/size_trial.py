"""Which constants of a problem are sizes, and whether its reference accepts others.

Shapes are found on torch's meta device, which computes nothing, so a problem of any size can be
asked. What is chosen is then run on the CPU: there an index out of range is an exception, while on
a GPU it would end the judge's context.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker.arguments import encode_args
from hotloop.worker.attention_math import Mods, unfused
from hotloop.worker.boundary_sizes import Sizes, SizeSpace
from hotloop.worker.draw import Outputs
from hotloop.worker.inputs import draw_inputs, seeded
from hotloop.worker.load import LoadedProblem, load_problem
from hotloop.worker.module_host import ContractError
from hotloop.worker.module_runner import ModuleRunner, quiet, state_of
from hotloop.worker.overrides import stated_sizes
from hotloop.worker.pieces import all_finite

LIMITS = {"cuda": 1 << 20, "cpu": 1 << 15}
"""Elements of a shape's inputs, or scores; on a CPU kernels are interpreted one by one."""
PARAMETERS_FACTOR = 8
"""How many times that its parameters may have."""
MIN_FEATURES = 16
"""A smaller constant that only parameters have is a kernel's width or a number of layers."""
ATTENTION_NAMES = ("B", "H", "Hkv", "S", "Skv")
LENGTHS = ("S", "Skv")
"""Sizes of attention that kernels cut into tiles; of the others a few are as good as many."""

Settings = Mapping[str, int | float | str]


def size_space(problem: Problem, own: Settings, device: str) -> SizeSpace | None:
    """Return the constants that are sizes; None when the file has none that can be varied.

    Args:
        problem: what to load.
        own: settings of the nominal workload, which hold for what is not varied.
        device: `cuda` or `cpu`: what runs the candidates.

    Raises:
        ProblemError: the problem does not load.
    """
    loaded = load_problem(problem, device="cpu", settings=own)
    if problem.kind is ProblemKind.ATTENTION:
        return _attention_space(loaded, own, device)
    described = _describe(loaded)
    if described is None:
        return None

    def changed(name: str, size: int) -> Any:
        for other in (size + 1, size * 2):
            found = _described(problem, own, {name: other})
            if found is not None:
                return found
        return None

    nominal: Sizes = {}
    structural = set()
    for name, size in stated_sizes(problem.source, loaded.namespace).items():
        found = changed(name, size) if size > 0 else None
        if found is None:
            continue
        of_inputs, of_parameters = found[0] != described[0], found[2] != described[2]
        if of_parameters and found[1] == described[1]:
            continue  # a candidate's constructor could not know
        if of_inputs or (of_parameters and size >= MIN_FEATURES):
            nominal[name] = size
            if found[1:] != described[1:]:
                structural.add(name)

    def measure(sizes: Sizes) -> int | None:
        found = _described(problem, own, sizes)
        if found is None:
            return None
        return max(_count(found[0]), _count(found[2]) // PARAMETERS_FACTOR)

    if not nominal:
        return None
    return SizeSpace(nominal, frozenset(structural), measure, LIMITS[device])


def runs_on_cpu(problem: Problem, settings: Settings) -> bool:
    """Whether the reference accepts these sizes: it loads, runs once and is finite."""
    try:
        outputs = _run(load_problem(problem, device="cpu", settings=settings))
    except Exception as exc:  # noqa: BLE001  sizes that a file is not written for break anything
        text = f"{type(exc).__name__}: {str(exc)[:200]}"
        print(f"hotloop judge: sizes {dict(settings)} left out: {text}", file=sys.stderr)
        return False
    return all(all_finite(t) for t in outputs if t.dtype.is_floating_point)


def _run(loaded: LoadedProblem) -> Outputs:
    with torch.no_grad(), quiet():
        if loaded.sizes is None:
            assert loaded.get_inputs is not None
            runner = ModuleRunner(loaded, None)
            with seeded(0, "cpu"):
                values, _ = draw_inputs(loaded.get_inputs, "cpu", None)
            return runner.run(state_of(runner.build(0)), values, 0)
        s = loaded.sizes
        mods = Mods(loaded.score_mod, loaded.mask_mod, s.scale, sigmoid=s.normalize == "sigmoid")
        q = torch.randn(s.B, s.H, s.S, s.D, dtype=s.dtype)
        k = torch.randn(s.B, s.Hkv, s.Skv, s.D, dtype=s.dtype)
        return (unfused(q, k, k, mods),)


def _attention_space(loaded: LoadedProblem, own: Settings, device: str) -> SizeSpace:
    stated = {n: loaded.namespace.get(n) for n in ATTENTION_NAMES}
    nominal = {n: v for n, v in stated.items() if type(v) is int}
    # Heads in groups stay as they are: a number of groups that does not divide is no problem.
    heads = ("H", "Hkv") if "Hkv" in nominal else ()
    varied = {n: v if n in LENGTHS else 1 for n, v in nominal.items() if n not in heads}

    def measure(sizes: Sizes) -> int | None:
        try:
            settings = {**own, **sizes}
            s = load_problem(loaded.problem, device="cpu", settings=settings).sizes
        except ProblemError:
            return None
        assert s is not None
        return s.B * s.H * s.S * (s.Skv + s.D) + 2 * s.B * s.Hkv * s.Skv * s.D

    return SizeSpace(varied, frozenset(), measure, LIMITS[device])


def _described(problem: Problem, own: Settings, sizes: Sizes) -> Any:
    try:
        return _describe(load_problem(problem, device="cpu", settings={**own, **sizes}))
    except ProblemError:
        return None


def _describe(loaded: LoadedProblem) -> Any:
    """Return shapes of inputs, constructor arguments, shapes of parameters; None if unknown."""
    assert loaded.get_inputs is not None
    assert loaded.model_class is not None
    try:
        with seeded(0, "cpu"), torch.device("meta"), torch.no_grad(), quiet():
            values = loaded.get_inputs()
            state = state_of(loaded.model_class(*loaded.init_args))
        arguments = encode_args(loaded.init_args)
    except (Exception, ContractError):  # noqa: BLE001  the file may need values, or refuse sizes
        return None
    inputs = [tuple(v.shape) if isinstance(v, Tensor) else None for v in values]
    return inputs, arguments, [tuple(t.shape) for t in state.values()]


def _count(shapes: list[tuple[int, ...] | None]) -> int:
    return sum(math.prod(shape) for shape in shapes if shape is not None)
