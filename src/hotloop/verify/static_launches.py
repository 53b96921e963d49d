"""Which functions of a Python source are Triton kernels, and whether the source uses one.

A kernel may be launched under another name, from a table, through an argument, by `.run`: text does
not tell. So whoever refers to a kernel outside of kernels may launch it, and whether one does the
work is found out when it runs (`worker/conduct.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.core.python_source import dotted
from hotloop.verify.static_finding import Finding
from hotloop.verify.static_scope import Scope

_SUPPRESSORS = frozenset({"contextlib.suppress"})
_JITS = frozenset({"jit", "JITFunction"})
_LAUNCHERS = frozenset({"run", "warmup"})


def kernel_functions(tree: ast.Module, scope: Scope) -> set[str]:
    """Return the names of the functions that `triton.jit` decorates or is called with."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    kernels = {
        name
        for name, function in functions.items()
        if any(_is_jit(decorator, scope) for decorator in function.decorator_list)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_jit(node.func, scope):
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            kernels |= {arg.id for arg in given if isinstance(arg, ast.Name)} & set(functions)
    return kernels


def outside_kernels(tree: ast.Module, kernels: set[str]) -> Iterator[ast.AST]:
    """Yield the nodes that are not part of a kernel."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def unused_kernels(tree: ast.Module, kernels: set[str]) -> Iterator[Finding]:
    """Refuse a source without a kernel, or one that never names its kernels."""
    if any(_is_extension(dotted(n.func)) for n in ast.walk(tree) if isinstance(n, ast.Call)):
        return  # its kernels are in CUDA C++
    if not kernels:
        yield Finding("no_kernel", "expected at least one `@triton.jit` kernel, found none")
        return
    named = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in outside_kernels(tree, kernels)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    }
    if not kernels & named:
        yield Finding(
            "no_kernel", "no `@triton.jit` kernel is launched; expected `kernel[grid](...)`"
        )


def guarded_launches(function: ast.AST, kernels: set[str], scope: Scope) -> Iterator[Finding]:
    """Refuse a handler around a launch: a kernel that fails must fail."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Try, ast.TryStar)) and node.handlers:
            guarded: list[ast.stmt] = node.body
        elif isinstance(node, ast.With) and any(
            scope.resolve(getattr(i.context_expr, "func", i.context_expr)) in _SUPPRESSORS
            for i in node.items
        ):
            guarded = node.body
        else:
            continue
        if any(_may_launch(n, kernels) for statement in guarded for n in ast.walk(statement)):
            text = "no handler around a launch: a kernel that fails must fail, not fall back"
            yield Finding("try_except", text, node.lineno)


def _may_launch(node: ast.AST, kernels: set[str]) -> bool:
    """Whether this is a call `something[grid](...)`, or `kernel.run(...)`."""
    if not kernels or not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Subscript):
        return True
    return isinstance(node.func, ast.Attribute) and node.func.attr in _LAUNCHERS


def _is_extension(call: str) -> bool:
    """Whether a call builds CUDA C++ (`tl.load` does not)."""
    return call == "load" or call.endswith(("load_inline", "cpp_extension.load"))


def _is_jit(node: ast.expr, scope: Scope) -> bool:
    """Whether this is `triton.jit` in whatever words, or a call of it with options."""
    while isinstance(node, ast.Call):
        node = node.func
    return scope.resolve(node).rpartition(".")[2] in _JITS
