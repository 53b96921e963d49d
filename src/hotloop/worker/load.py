"""Run a problem file, once, and take from it what the judge needs.

This is the only place where a file's top-level code runs. Settings replace its constants first
(`overrides.py`). It runs on the CPU, whatever the device; an attention file's captured tensors are
moved afterwards, and a model's inputs are drawn on the device later, by the judge.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.python_source import parse_python
from hotloop.errors import ProblemError
from hotloop.worker.attention_file import AttentionSizes, captured_buffers, read_sizes
from hotloop.worker.attribution import source_filename, user_code
from hotloop.worker.overrides import Setting, override_constants

Buffers = dict[str, torch.Tensor]


@dataclass(slots=True)
class LoadedProblem:
    """An executed problem file. Model fields are None for attention, and the reverse."""

    problem: Problem
    namespace: dict[str, Any]
    """The executed module."""
    device: str
    """`cuda` or `cpu`."""
    model_class: type[torch.nn.Module] | None = None
    init_args: tuple[Any, ...] = ()
    """What `get_init_inputs` returned."""
    get_inputs: Callable[[], Any] | None = None
    sizes: AttentionSizes | None = None
    score_mod: Callable[..., Any] | None = None
    mask_mod: Callable[..., Any] | None = None
    get_buffers: Callable[[torch.Generator], Buffers] | None = None
    """Draws the captured tensors on the CPU; `draw_buffers` checks and moves them."""
    buffer_seed: int | None = None
    """Seed of the captured tensors in timed calls; None: any."""
    timed_profile: str | None = None
    """Value profile of timed calls; None: the first that applies."""
    fixed_buffers: Buffers = field(default_factory=dict)
    """Tensors captured without `get_buffers`, on the device: the same for every seed."""
    only_profiles: tuple[str, ...] = ()
    """Value profiles that are wanted; empty: all that apply."""

    def wants(self, profile: str) -> bool:
        """Whether cases of a value profile are wanted."""
        return not self.only_profiles or profile in self.only_profiles


def load_problem(
    problem: Problem, *, device: str, settings: Mapping[str, Setting] | None = None
) -> LoadedProblem:
    """Run the problem's file with its settings in force.

    Args:
        problem: Its own settings apply first.
        device: Where its tensors live: `cuda` or `cpu`.
        settings: Those of one workload; they win over the problem's.

    Raises:
        ProblemError: the file raises, or lacks something; one line, with the file's line.
    """
    merged = {**problem.settings, **(settings or {})}
    namespace = _run(problem, merged)
    loaded = LoadedProblem(problem, namespace, device)
    if problem.kind is ProblemKind.ATTENTION:
        _take_attention(loaded)
    else:
        _take_model(loaded)
    return loaded


def draw_buffers(loaded: LoadedProblem, seed: int) -> Buffers:
    """Return freshly drawn captured tensors on the device; empty without `get_buffers`.

    Raises:
        ProblemError: `get_buffers` raises, or returns something else than named tensors.
    """
    if loaded.get_buffers is None:
        return {}
    with user_code(loaded.problem, "get_buffers()"):
        buffers = loaded.get_buffers(torch.Generator().manual_seed(seed))
    if not isinstance(buffers, dict):
        raise ProblemError(
            f"{loaded.problem.name}: get_buffers() must return a dict of tensors by name, got "
            f"{type(buffers).__name__}"
        )
    for name, tensor in buffers.items():
        if not (isinstance(name, str) and name.isidentifier() and isinstance(tensor, torch.Tensor)):
            raise ProblemError(
                f"{loaded.problem.name}: get_buffers() must map names to tensors, got "
                f"{name!r}: {type(tensor).__name__}"
            )
    return {name: tensor.to(loaded.device) for name, tensor in buffers.items()}


def install_buffers(loaded: LoadedProblem, buffers: Mapping[str, torch.Tensor]) -> None:
    """Make drawn buffers the ones that score_mod and mask_mod read, as globals of the file."""
    for name, tensor in buffers.items():
        if name not in loaded.fixed_buffers:
            loaded.namespace[name] = tensor


def _run(problem: Problem, settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Execute the file in a module of its own and return its namespace."""
    filename = source_filename(problem)
    module = ModuleType(f"hotloop_problem_{problem.id}")
    module.__file__ = filename
    lines = problem.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(problem.source), None, lines, filename)
    sys.modules[module.__name__] = module  # dataclasses and pickles look their module up
    with user_code(problem, "the file"):
        tree = parse_python(problem.source, filename)
        assigned = override_constants(tree, settings)
        left = {n: v for n, v in settings.items() if n not in assigned}
        if left and problem.kind is not ProblemKind.ATTENTION:
            raise ProblemError(f"{problem.name}: no constant to set: {', '.join(sorted(left))}")
        vars(module).update(left)
        exec(compile(tree, filename, "exec"), vars(module))
    return vars(module)


def _take_model(loaded: LoadedProblem) -> None:
    namespace, name = loaded.namespace, loaded.problem.name
    model_class = namespace.get("Model")
    if not (isinstance(model_class, type) and issubclass(model_class, torch.nn.Module)):
        got = "nothing" if model_class is None else repr(model_class)
        raise ProblemError(f"{name}: expected `class Model(torch.nn.Module)`, got {got}")
    if not callable(namespace.get("get_inputs")):
        raise ProblemError(
            f"{name}: expected a function get_inputs() that returns forward's arguments, got none"
        )
    loaded.model_class = model_class
    loaded.get_inputs = namespace["get_inputs"]
    get_init_inputs = namespace.get("get_init_inputs")
    if get_init_inputs is None:
        return
    with user_code(loaded.problem, "get_init_inputs()"):
        init_args = get_init_inputs()
    if not isinstance(init_args, (list, tuple)):
        raise ProblemError(
            f"{name}: get_init_inputs() must return a list of Model's arguments, got "
            f"{type(init_args).__name__}"
        )
    loaded.init_args = tuple(init_args)


def _take_attention(loaded: LoadedProblem) -> None:
    namespace, problem = loaded.namespace, loaded.problem
    loaded.sizes = read_sizes(problem, namespace)
    for role in ("score_mod", "mask_mod", "get_buffers"):
        function = namespace.get(role)
        if function is not None and not callable(function):
            raise ProblemError(f"{problem.name}: {role} must be a function, got {function!r}")
        setattr(loaded, role, function)
    seed = namespace.get("buffer_seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ProblemError(f"{problem.name}: buffer_seed must be an int, got {seed!r}")
    loaded.buffer_seed = seed
    profile = namespace.get("timed_profile")
    if profile is not None and not isinstance(profile, str):
        raise ProblemError(f"{problem.name}: timed_profile must be a name, got {profile!r}")
    loaded.timed_profile = profile
    drawn = draw_buffers(loaded, seed or 0)
    install_buffers(loaded, drawn)
    functions = (loaded.score_mod, loaded.mask_mod)
    loaded.fixed_buffers = captured_buffers(problem, functions, drawn, loaded.device)
