"""The oracle's side of a problem: inputs, a float64 golden and eager's own error.

It executes the problem file itself, with settings in place of module constants, and shares no code
with the verifier. Attention files are evaluated densely from `score_mod` and `mask_mod`.
"""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.mutation.oracle_inputs import fill_inputs, fill_state

State = dict[str, Tensor]


@dataclass(slots=True)
class OracleCase:
    """One set of inputs with what belongs into the outputs."""

    name: str
    inputs: list[Any]
    state: State
    golden: list[Tensor]
    yardstick: list[float]
    """Largest error of eager for each output, at least half a unit in the last place of the
    output's largest value; 0 where equality is demanded."""


class OracleProblem:
    """A problem file at one choice of settings."""

    def __init__(self, source: str, settings: Mapping[str, Any]) -> None:
        self.namespace = _execute(source, settings)
        self.is_attention = "Model" not in self.namespace
        self.init_args: list[Any] = []
        if not self.is_attention:
            get_init = self.namespace.get("get_init_inputs", list)
            self.init_args = list(get_init())

    def draw(self, profile: str, seed: int, fixed: Sequence[int]) -> tuple[list[Any], State]:
        """Return forward's arguments and the parameters and buffers by name."""
        torch.manual_seed(seed)
        if self.is_attention:
            return self._draw_attention(profile, seed)
        state = {
            name: value.detach().clone()
            for name, value in self.namespace["Model"](*self.init_args).state_dict().items()
        }
        values = list(self.namespace["get_inputs"]())
        return fill_inputs(values, profile, seed, fixed=fixed), fill_state(state, profile, seed)

    def run(
        self, inputs: Sequence[Any], state: State, dtype: torch.dtype, device: str = "cpu"
    ) -> list[Tensor]:
        """Run the reference in a dtype on a device; returns outputs on the CPU."""

        def cast(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return value.to(device, dtype if value.is_floating_point() else value.dtype, copy=True)

        wide = [cast(v) for v in inputs]
        buffers = {name: cast(value) for name, value in state.items()}
        with torch.device(device), torch.no_grad():
            if self.is_attention:
                return [self._attention(wide, buffers).cpu()]
            model = self.namespace["Model"](*self.init_args).to(device, dtype)
            model.load_state_dict(buffers)
            return [output.cpu() for output in outputs_of(model(*wide))]

    def case(self, profile: str, seed: int, fixed: Sequence[int]) -> OracleCase | None:
        """Return a case, or None where the values cannot tell a right result from a wrong one."""
        inputs, state = self.draw(profile, seed, fixed)
        try:
            golden = self.run(inputs, state, torch.float64)
            eager = self.run(inputs, state, torch.float32)
        except (RuntimeError, ValueError):
            return None  # the reference does not accept such values
        yardstick = yardstick_of(golden, eager)
        if yardstick is None:
            return None
        return OracleCase(f"{profile}/{seed}", inputs, state, golden, yardstick)

    def eager_yardstick(self, case: OracleCase, device: str) -> list[float] | None:
        """Return the yardstick of eager on a device, None where it is off itself."""
        eager = self.run(case.inputs, case.state, torch.float32, device)
        return yardstick_of(case.golden, eager)

    def _draw_attention(self, profile: str, seed: int) -> tuple[list[Any], State]:
        space = self.namespace
        b, h, s, d = (space[n] for n in "BHSD")
        kv = (b, space.get("Hkv", h), space.get("Skv", s), d)
        get_buffers = space.get("get_buffers")
        state = get_buffers(torch.Generator().manual_seed(seed)) if get_buffers else {}
        normal = [torch.randn(shape) for shape in ((b, h, s, d), kv, kv)]
        if profile == "shipped":
            return normal, state
        q, k, v = fill_inputs(normal, profile, seed, fixed=())
        plain = profile in ("mixed", "normal", "small", "sparse", "steps", "constant")
        return ([q, k, v] if plain else [normal[0], normal[1] * 3.0, v]), state

    def _attention(self, inputs: list[Any], state: State) -> Tensor:
        q, k, v = inputs
        space = self.namespace
        group = q.shape[1] // k.shape[1]
        k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
        space.update(state)
        scale = space.get("scale") or 1.0 / math.sqrt(q.shape[-1])
        scores = q @ k.transpose(-1, -2) * scale
        at = [
            torch.arange(size).view([-1 if i == axis else 1 for i in range(4)])
            for axis, size in enumerate(scores.shape)
        ]
        default = torch.get_default_dtype()
        torch.set_default_dtype(q.dtype)
        try:
            if space.get("score_mod"):
                scores = space["score_mod"](scores, *at)
            if space.get("mask_mod"):
                scores = scores.masked_fill(~space["mask_mod"](*at), -math.inf)
        finally:
            torch.set_default_dtype(default)
        return torch.nan_to_num(torch.softmax(scores, dim=-1)) @ v


def yardstick_of(golden: Sequence[Tensor], eager: Sequence[Tensor]) -> list[float] | None:
    """Return eager's largest error for each output, None where eager is no measure.

    That is at least half a unit in the last place of the golden's largest value, and 0 where
    equality is demanded.
    """
    yardstick = []
    for g, b in zip(golden, eager, strict=True):
        if not g.is_floating_point():
            if not torch.equal(g, b):
                return None
            yardstick.append(0.0)
            continue
        largest = float(g.abs().max()) if g.numel() else 0.0
        error = float((b.double() - g).abs().max()) if g.numel() else 0.0
        if not (math.isfinite(largest) and math.isfinite(error)) or error > 0.1 * largest:
            return None
        yardstick.append(max(error, largest * 2.0**-24))
    return yardstick


def outputs_of(result: Any) -> list[Tensor]:
    """Return the tensors of a forward's result."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _execute(source: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Run the file with its module constants replaced; what it lacks is added."""
    tree = ast.parse(source)
    tree.body = [single for node in tree.body for single in _unchained(node)]
    left = dict(settings)
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _set_constants(node, left)
    module = types.ModuleType("oracle_problem")
    vars(module).update(left)
    exec(compile(tree, "problem.py", "exec"), vars(module))
    return vars(module)


def _unchained(node: ast.stmt) -> list[ast.stmt]:
    """Return `a = b = 1` as two assignments."""
    if not isinstance(node, ast.Assign) or len(node.targets) == 1:
        return [node]
    return [
        ast.copy_location(ast.Assign(targets=[target], value=node.value), node)
        for target in node.targets
    ]


def _set_constants(node: ast.Assign, left: dict[str, Any]) -> None:
    target = node.targets[0]
    if isinstance(target, ast.Name) and target.id in left:
        node.value = ast.copy_location(ast.Constant(left.pop(target.id)), node.value)
    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        for i, name in enumerate(target.elts):
            if isinstance(name, ast.Name) and name.id in left:
                node.value.elts[i] = ast.copy_location(ast.Constant(left.pop(name.id)), node.value)
