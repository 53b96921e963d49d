"""Read a piece of Python as a kernel program: what it defines, and whether it is whole.

By syntax tree only: nothing is imported or run, and nothing raises on bad input. Code that does not
parse is still recognised by its class line, because the compiler's message about it is worth more
than a refusal here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.core import language
from hotloop.core.extension import BUILDER, uses_extension
from hotloop.core.python_source import dotted, parse_python

MAX_SOURCE_CHARS = 400_000
"""Longer code is not parsed: no kernel file is that long, and parsing takes time and stack."""
MAX_OPEN_BRACKETS = 200
"""Of one kind, unbalanced, in one line: the parser recurses on each."""

GLUON_MODULE = "triton.experimental.gluon"
ALIAS_DEPTH = 3
"""An alias of an alias of an alias is followed, and no further."""

_MODEL_LINE = re.compile(r"^class ModelNew\b", re.MULTILINE)
_DEEP = re.compile(rf"[-+~(\[{{]{{{MAX_OPEN_BRACKETS},}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one piece of Python holds."""

    text: str
    parses: bool
    has_model: bool
    """Whether it defines `class ModelNew`."""
    has_forward: bool
    """Whether a method `forward` of `ModelNew` returns something."""
    has_kernel: bool
    """Whether a function is decorated as a kernel, or CUDA source is built inline."""
    is_cuda: bool
    """Whether it builds CUDA source inline, for its forward to use."""
    is_gluon: bool = False
    """Whether one of its kernels is a Gluon kernel."""

    @property
    def language(self) -> str:
        """The language of its kernels; Triton where there are none, or none that tell."""
        found = language.CUDA if self.is_cuda else language.TRITON
        return (language.GLUON if self.is_gluon and not self.is_cuda else found).name

    @property
    def is_whole(self) -> bool:
        """Whether it can stand as a candidate of its own."""
        return self.parses and self.has_model and self.has_forward and self.has_kernel


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree, or None where there is none."""
    if len(text) > MAX_SOURCE_CHARS or _DEEP.search(text):
        return None
    try:
        return parse_python(text)
    except SyntaxError:
        return None


def error_line(text: str) -> int | None:
    """Return the line (from 1) at which the text stops being Python; None where it is Python."""
    try:
        parse_python(text)
    except SyntaxError as exc:
        return exc.lineno or 1
    return None


def read_program(text: str) -> Program:
    """Describe a piece of Python."""
    tree = parse(text)
    if tree is None:
        return Program(
            text=text,
            parses=False,
            has_model=_MODEL_LINE.search(text) is not None,
            has_forward="def forward" in text,
            has_kernel=".jit" in text or "load_inline" in text,
            is_cuda="load_inline" in text,
            is_gluon="gluon.jit" in text,
        )
    model = next(
        (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None
    )
    names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    builds = BUILDER in names
    is_gluon = bool(gluon_kernels(tree))
    return Program(
        text=text,
        parses=True,
        has_model=model is not None,
        has_forward=model is not None and _returns(model),
        has_kernel=builds or is_gluon or any(is_kernel(n) for n in ast.walk(tree)),
        is_cuda=builds and uses_extension(tree),
        is_gluon=is_gluon,
    )


def gluon_kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions that Gluon's `jit` makes kernels, under whatever name it goes here."""
    origins = _origins(tree)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    called = {
        arg.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_gluon_jit(_origin(node.func, origins))
        for arg in node.args
        if isinstance(arg, ast.Name)
    }
    return [
        function
        for function in functions
        if function.name in called
        or any(_is_gluon_jit(_origin(d, origins)) for d in function.decorator_list)
    ]


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return what names were imported as, also through `name = other` and `name = module.other`."""
    origins: dict[str, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            if isinstance(node, ast.ImportFrom):
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif alias.asname:
                origins[alias.asname] = alias.name
    for _ in range(ALIAS_DEPTH):
        for node in nodes:
            if isinstance(node, ast.Assign) and (origin := _origin(node.value, origins)):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        origins.setdefault(target.id, origin)
    return origins


def _origin(node: ast.expr, origins: Mapping[str, str]) -> str:
    """Return the dotted name that an expression, or what it calls, was imported as."""
    first, _, rest = _decorator(node).partition(".")
    return f"{origins.get(first, first)}.{rest}".rstrip(".")


def _is_gluon_jit(origin: str) -> bool:
    return origin.startswith(f"{GLUON_MODULE}.") and origin.endswith((".jit", ".GluonJITFunction"))


def _decorator(node: ast.expr) -> str:
    return dotted(node.func if isinstance(node, ast.Call) else node)


def is_kernel(node: ast.AST) -> bool:
    """Whether a node is a function decorated with `jit`, as Triton's and Gluon's kernels are."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(_decorator(d).endswith("jit") for d in node.decorator_list)


def _returns(model: ast.ClassDef) -> bool:
    """Whether `forward` can return; a model that takes it from its own base counts."""
    for node in model.body:
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
    return any(dotted(base).split(".")[-1] != "Module" for base in model.bases)
