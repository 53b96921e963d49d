"""Native files: a KernelBench file plus `workloads`, `policy` and `tolerances`.

These are literals, so the coordinator reads them from the syntax tree without running the file:

    workloads = [{"M": 1000}, {"M": 37, "role": "held_out", "name": "odd"}]
    policy = {"precision": "strict", "languages": ["triton"]}
    tolerances = {"atol": 1e-5, "rtol": 1e-4}

A workload replaces module constants; its role is `boundary` unless stated. Tolerances are checked
beside the harness's own rules, so they only tighten.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hotloop.core.problem import Policy, Role, Workload
from hotloop.errors import ConfigError
from hotloop.problems.constants import assignments, bound_names

_POLICY_CHOICES = {
    "precision": ("as_shipped", "strict", "tf32", "bf16", "fp16"),
    "library_calls": ("anchored", "none"),
    "shape_scope": ("nominal", "generic"),
}
_NOMINAL = Workload(name="nominal", role=Role.NOMINAL)


def read_policy(tree: ast.Module, name: str) -> Policy:
    """Return the file's policy; `generic` shapes are the default where it lists workloads.

    Raises:
        ConfigError: `policy` is no literal dict, or has an unknown key or value.
    """
    line, stated = _literal(tree, "policy", dict, name)
    chosen: dict[str, Any] = {}
    if "workloads" in bound_names(tree):
        chosen["shape_scope"] = "generic"
    for key, value in (stated or {}).items():
        where = f"{name} line {line}: policy"
        if key == "languages":
            if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
                raise ConfigError(f"{where}: expected a list of languages, got {value!r}")
            chosen[key] = tuple(value)
        elif key not in _POLICY_CHOICES:
            known = ", ".join(("languages", *_POLICY_CHOICES))
            raise ConfigError(f"{where}: unknown key {key!r} (known: {known})")
        elif value not in _POLICY_CHOICES[key]:
            choices = ", ".join(_POLICY_CHOICES[key])
            raise ConfigError(f"{where}: {key} is one of {choices}, got {value!r}")
        else:
            chosen[key] = value
    return Policy(**chosen)


def stated_precision(tree: ast.Module, name: str) -> str | None:
    """Return the precision that the file's policy names; None where it names none.

    Raises:
        ConfigError: `policy` is no literal dict.
    """
    _, stated = _literal(tree, "policy", dict, name)
    found = (stated or {}).get("precision")
    return None if found is None else str(found)


def read_workloads(tree: ast.Module, name: str) -> tuple[Workload, ...]:
    """Return the file's workloads, the nominal one first.

    Raises:
        ConfigError: `workloads` is no literal list of dicts, or one sets an unknown constant.
    """
    line, stated = _literal(tree, "workloads", list, name)
    where = f"{name} line {line}: workloads"
    known = {constant for constant, _, _ in assignments(tree)}
    workloads = [_workload(i, item, known, where) for i, item in enumerate(stated or ())]
    nominal = [w for w in workloads if w.role is Role.NOMINAL]
    if len(nominal) > 1:
        raise ConfigError(f"{where}: one workload may be nominal, got {len(nominal)}")
    names = [w.name for w in workloads]
    if len(set(names)) < len(names):
        raise ConfigError(f"{where}: names must differ, got {names}")
    return (*(nominal or [_NOMINAL]), *(w for w in workloads if w.role is not Role.NOMINAL))


def _workload(index: int, item: Any, known: set[str], where: str) -> Workload:
    if not isinstance(item, dict):
        raise ConfigError(f"{where}: expected a dict of constants, got {item!r}")
    settings = {k: v for k, v in item.items() if k not in ("role", "name")}
    role = item.get("role", Role.BOUNDARY)
    if role not in list(Role):
        raise ConfigError(f"{where}: role is one of {', '.join(Role)}, got {role!r}")
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"{where}: the file has no constant {key!r}")
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ConfigError(f"{where}: {key} must be a number or text, got {value!r}")
    default = "nominal" if role == Role.NOMINAL else f"{role}/{index}"
    return Workload(name=str(item.get("name", default)), role=Role(role), settings=settings)


def read_tolerances(tree: ast.Module, name: str) -> Mapping[str, float]:
    """Return `atol` and `rtol` as stated; empty when the file states none.

    Raises:
        ConfigError: a key is unknown or a value is not a number of 0 or more.
    """
    line, stated = _literal(tree, "tolerances", dict, name)
    for key, value in (stated or {}).items():
        where = f"{name} line {line}: tolerances"
        if key not in ("atol", "rtol"):
            raise ConfigError(f"{where}: unknown key {key!r} (known: atol, rtol)")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise ConfigError(f"{where}: {key} must be a number of 0 or more, got {value!r}")
    return {key: float(value) for key, value in (stated or {}).items()}


def refuse_gradients(tree: ast.Module, name: str) -> None:
    """Refuse a file that asks for gradients to be checked.

    Raises:
        ConfigError: the file binds `grad`.
    """
    line = bound_names(tree).get("grad")
    if line is not None:
        raise ConfigError(
            f"{name} line {line}: backward passes are not in this version; remove `grad`"
        )


def _literal(tree: ast.Module, key: str, kind: type, name: str) -> tuple[int, Any]:
    """Return the line and value of the literal assigned to `key`; (0, None) when there is none."""
    for constant, expression, line in assignments(tree):
        if constant != key:
            continue
        try:
            value = ast.literal_eval(expression) if expression is not None else None
        except ValueError as exc:
            raise ConfigError(
                f"{name} line {line}: {key} must be a literal {kind.__name__}: it is read without "
                "running the file"
            ) from exc
        if not isinstance(value, kind):
            raise ConfigError(f"{name} line {line}: {key} must be a {kind.__name__}, got {value!r}")
        return line, value
    return 0, None
