"""Dependencies point one way, and heavy packages are imported where they belong."""

import ast
import functools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "hotloop"
LEAVES = ("llm", "prompts", "search", "verify", "problems", "store", "templates", "sandbox")
EVERYTHING = {
    *LEAVES, "core", "errors", "registry", "config", "engine", "report", "api", "testing",
    "retrieval", "selftest", "capture", "warm",
}  # fmt: skip
WIRING = {"plan", "plan_checks", "wiring", "search_options", "kernel_file"}
"""What `api` is made of: these see every layer."""
MAY_SEE = {
    "core": set(),
    "errors": set(),
    "registry": {"errors"},
    "config": {"core", "errors", "registry"},
    **{leaf: {"core", "errors", "registry"} for leaf in LEAVES},
    "sandbox": {"core", "errors", "hotloop"},
    "verify": {"core", "errors", "registry", "sandbox"},
    "worker": {"core", "errors", "sandbox"},
    "selftest": {"core", "errors", "sandbox", "hotloop"},
    "engine": {"core", "errors"},
    "report": {"core", "errors"},
    "testing": {"core", "errors", "registry"},
    "retrieval": {"core", "errors", "prompts", "store"},
    "capture": {"core", "errors", "problems"},
    "warm": {"core", "errors", "sandbox", "verify", "hotloop"},
    **{part: EVERYTHING - {"api"} | WIRING for part in WIRING},
    "api": EVERYTHING | WIRING,
    "suite": EVERYTHING | WIRING,
    "agent": EVERYTHING | WIRING | {"hotloop"},
    "dashboard": EVERYTHING - {"api"} | {"suite", "hotloop"},
    "cli": EVERYTHING | WIRING | {"suite", "agent", "dashboard", "hotloop"},
    "__main__": {"cli"},
    "notebook": {"cli", "core", "errors"},
    "hotloop": {"api", "core", "errors"},
}
"""What each layer may import besides itself; `hotloop` is the package's own __init__."""

STANDARD_LIBRARY_ONLY = {"core", "errors", "registry", "sandbox", "selftest"}
GPU_PACKAGES = {"torch", "triton", "cuda", "cupti", "pynvml", "numpy"}
NOT_IN_THE_WORKER = {"pydantic", "optuna", "rich", "typer", "jinja2"}


def files():
    return sorted(ROOT.rglob("*.py"))


def layer_of(path):
    relative = path.relative_to(ROOT)
    if len(relative.parts) > 1:
        return relative.parts[0]
    return "hotloop" if relative.stem == "__init__" else relative.stem


@functools.cache
def imports_of(path):
    """Return (top-level package, layer of hotloop or None, line) for each import in the file."""
    return list(read_imports(path))


def read_imports(path):
    package = ("hotloop", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            plain = node.module == "hotloop"
            names = [f"hotloop.{a.name}" if plain else node.module for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            names = [".".join((*base, node.module or node.names[0].name))]
        else:
            continue
        for name in names:
            parts = name.split(".")
            is_ours = parts[0] == "hotloop"
            layer = (parts[1] if len(parts) > 1 else "hotloop") if is_ours else None
            if is_ours and layer not in MAY_SEE:
                layer = "hotloop"  # a name of the package itself, as in `from hotloop import x`
            yield parts[0], layer, node.lineno


def findings(check):
    return [
        f"{path.relative_to(ROOT)}:{line}: {problem}"
        for path in files()
        for package, layer, line in imports_of(path)
        if (problem := check(layer_of(path), package, layer))
    ]


def test_every_layer_has_a_rule():
    assert {layer_of(path) for path in files()} <= set(MAY_SEE)


def test_dependencies_point_one_way():
    def check(own, _package, layer):
        if layer is None or layer == own or layer in MAY_SEE[own]:
            return None
        return f"{own} may not import hotloop.{layer}"

    assert findings(check) == []


def test_gpu_packages_are_imported_by_the_worker_only():
    def check(own, package, _layer):
        if package in GPU_PACKAGES and own != "worker":
            return f"{package} belongs under worker/"
        return None

    assert findings(check) == []


def test_the_inner_layers_use_the_standard_library_only():
    def check(own, package, layer):
        if own not in STANDARD_LIBRARY_ONLY or layer is not None:
            return None
        return None if package in sys.stdlib_module_names else f"{own} may not import {package}"

    assert findings(check) == []


def test_the_worker_does_without_the_coordinators_packages():
    def check(own, package, _layer):
        if own == "worker" and package in NOT_IN_THE_WORKER:
            return f"the worker may not import {package}"
        return None

    assert findings(check) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import torch", ("torch", None)),
        ("from hotloop.store import sqlite", ("hotloop", "store")),
        ("from hotloop import errors", ("hotloop", "errors")),
        ("from . import loop", ("hotloop", "engine")),
        ("from ..store.reader import x", ("hotloop", "store")),
    ],
)
def test_the_rule_sees_every_form_of_import(monkeypatch, tmp_path, line, expected):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "engine").mkdir()
    file = tmp_path / "engine" / "x.py"
    file.write_text(line)
    assert [(p, layer) for p, layer, _ in imports_of(file)] == [expected]
