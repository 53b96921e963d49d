"""Prompts: a request in plain language that carries its own reference.

The reference is Python in the text: a function with the signature of a `score_mod` or `mask_mod`,
or `Model` with `get_inputs`. Sizes and dtype are read from the text where it states them. The
user's words stay as they are in `Problem.prompt`; the source holds the code alone, on the lines it
has in the prompt wherever there is room, so that messages name the user's own lines.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.python_source import parse_python
from hotloop.errors import ConfigError
from hotloop.problems import kernelbench
from hotloop.problems.attention import attention_problem
from hotloop.problems.constants import Constant
from hotloop.problems.prompt_code import Statement, find_code, needed_statements, render
from hotloop.problems.prompt_sizes import stated_dtype, stated_sizes
from hotloop.problems.settings import check_settings
from hotloop.problems.tracing_rules import modification_kind

DEFAULTS: Mapping[str, Mapping[str, Constant]] = {
    "cuda": {"B": 4, "H": 16, "S": 4096, "D": 128, "dtype": "bfloat16"},
    "cpu": {"B": 1, "H": 2, "S": 128, "D": 64, "dtype": "bfloat16"},
}
"""Sizes by device for what the text leaves open."""


class _Modifications(NamedTuple):
    """Names of the functions in the text that modify scores and masks."""

    score_mod: str | None
    mask_mod: str | None


def prompt_problem(
    text: str, name: str, *, device: str, settings: Mapping[str, Constant]
) -> Problem:
    """Return the problem that a prompt states.

    Raises:
        ConfigError: the text holds no reference, more than one, or contradicting sizes.
    """
    code = find_code(text, name)
    defined = {n for statement in code for n in statement.binds}
    if "Model" in defined:
        return _model_problem(text, name, code, settings)
    found = _modifications(code, name)
    if found.score_mod is None and found.mask_mod is None:
        nodes = [statement.node for statement in code]
        others = [n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        has_no = f"has {', '.join(others[:4])} but no" if others else "has no"
        raise ConfigError(
            f"{name}: the prompt {has_no} reference, and nothing can be verified without one: "
            "add a function score_mod(score, b, h, q_idx, kv_idx) or "
            "mask_mod(b, h, q_idx, kv_idx), or `class Model` with get_inputs()"
        )
    sizes = {**DEFAULTS["cpu" if device == "cpu" else "cuda"]}
    sizes |= stated_sizes(text, name, skip=settings) | stated_dtype(text, name, skip=settings)
    stated = ("Hkv", "Skv", "normalize", "scale", "page_size")
    wanted = {n for n in (*found, "get_buffers", *sizes, *stated) if n}
    header = ["import torch", *(f"{n} = {v!r}" for n, v in sizes.items())]
    aliases = [f"{role} = {n}" for role, n in found._asdict().items() if n and n != role]
    source = render(needed_statements(code, wanted), header=header, footer=aliases)
    return attention_problem(source, name, device=device, settings=settings, prompt=text)


def _model_problem(
    text: str, name: str, code: list[Statement], settings: Mapping[str, Constant]
) -> Problem:
    wanted = {"Model", "get_inputs", "get_init_inputs"}
    chosen = needed_statements(code, wanted)
    if not any("get_inputs" in statement.binds for statement in chosen):
        raise ConfigError(
            f"{name}: the prompt has `class Model` but no `get_inputs()`; nothing can be verified "
            "without inputs"
        )
    source = render(chosen, header=["import torch", "import torch.nn as nn"])
    check_settings(settings, parse_python(source))
    return Problem(
        name=name,
        kind=ProblemKind.KERNELBENCH,
        source=source,
        settings=dict(settings),
        policy=kernelbench.POLICY,
        prompt=text,
    )


def _modifications(code: list[Statement], name: str) -> _Modifications:
    """Pick the score_mod and the mask_mod among the functions of the text."""
    kinds: dict[str, str] = {}
    called: set[str] = set()
    for statement in code:
        node = statement.node
        if isinstance(node, ast.FunctionDef) and (kind := modification_kind(node)) is not None:
            kinds[node.name] = kind
            called |= statement.reads - {node.name}
        elif isinstance(node, ast.Assign):  # for example mask_mod = and_masks(...)
            kinds |= {k: k for k in ("score_mod", "mask_mod") if k in statement.binds}
    candidates = {n: k for n, k in kinds.items() if n == k or n not in called}
    return _Modifications(
        *(
            _only(kind, [n for n, k in candidates.items() if k == kind], name)
            for kind in _Modifications._fields
        )
    )


def _only(kind: str, names: list[str], where: str) -> str | None:
    if kind in names or not names:
        return kind if names else None
    if len(names) > 1:
        raise ConfigError(
            f"{where}: expected one {kind}, the prompt has {', '.join(names)}; call the one that "
            f"is meant `{kind}`"
        )
    return names[0]
