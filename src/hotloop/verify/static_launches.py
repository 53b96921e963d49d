"""Which functions of a Python source are Triton or Gluon kernels, and whether it uses one.

A kernel may be launched under another name, from a table, through an argument, by `.run`: text does
not tell. So whoever refers to a kernel outside of kernels may launch it. Which ones are launched,
and in which dialect, is seen when the forward is followed (`worker/dialect.py`); whether one does
the work is found out when it runs (`worker/conduct.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.core.extension import builds_extension, uses_extension
from hotloop.verify.static_finding import Finding
from hotloop.verify.static_scope import Scope

_SUPPRESSORS = frozenset({"contextlib.suppress"})
_JITS = frozenset({"jit", "JITFunction", "GluonJITFunction"})
_GLUON = "triton.experimental.gluon."
_LAUNCHERS = frozenset({"run", "warmup"})


def kernel_functions(tree: ast.Module, scope: Scope) -> set[str]:
    """Return the names of the functions that a `jit` decorates or is called with."""
    return {name for name, jit in _jitted(tree, scope) if jit.rpartition(".")[2] in _JITS}


def gluon_functions(tree: ast.Module, scope: Scope) -> set[str]:
    """Return the names of the kernels whose `jit` is Gluon's."""
    kernels = kernel_functions(tree, scope)
    return {name for name, jit in _jitted(tree, scope) if jit.startswith(_GLUON)} & kernels


def outside_kernels(tree: ast.Module, kernels: set[str]) -> Iterator[ast.AST]:
    """Yield the nodes that are not part of a kernel."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def unused_kernels(
    tree: ast.Module, kernels: set[str], *, own: set[str] | None = None
) -> Iterator[Finding]:
    """Refuse a source without a kernel, or one that never names its kernels.

    Args:
        tree: the source.
        kernels: names of all its kernels.
        own: those that are in Gluon, where the source is to have one of them; None where any do.
    """
    if own is None and uses_extension(tree):
        return  # its kernels are in CUDA C++
    wanted, jit = (kernels, "@triton.jit") if own is None else (own, "@gluon.jit")
    if not wanted and own is None and builds_extension(tree):
        yield from unused_extension(tree)
    elif not wanted:
        yield Finding("no_kernel", f"expected at least one `{jit}` kernel, found none")
    named = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in outside_kernels(tree, kernels)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    }
    if wanted and not wanted & named:
        text = f"no `{jit}` kernel is launched; expected `kernel[grid](...)`"
        yield Finding("no_kernel", text)


def unused_extension(tree: ast.Module) -> Iterator[Finding]:
    """Refuse a source that is said to be in CUDA C++ and whose forward calls none of it."""
    if not uses_extension(tree):
        text = "forward calls nothing of an extension that `load_inline` builds"
        yield Finding("no_kernel", text)


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


def _jitted(tree: ast.Module, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield each function with what decorates it, or is called with it, as it was imported."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for function in functions:
        for decorator in function.decorator_list:
            yield function.name, _called(decorator, scope)
    names = {function.name for function in functions}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            for name in names & {arg.id for arg in given if isinstance(arg, ast.Name)}:
                yield name, _called(node.func, scope)


def _called(node: ast.expr, scope: Scope) -> str:
    """Return the name of `triton.jit` in whatever words, or of what is called with options."""
    while isinstance(node, ast.Call):
        node = node.func
    return scope.resolve(node)
