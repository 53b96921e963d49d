"""The static rule on modules that are reached through others: `torch.os`, `vars(torch)["_C"]`.

A chain of attributes that begins at an import is held against the tables of banned names from each
of its parts on: `torch._ops.torch._C` is `torch._C`. What looks an attribute up by a name that the
text does not show (`getattr(torch, name)`, `vars(torch)`) is refused on modules alone, since no
kernel needs it there. A screen: what a parameter, a loop or a container hides is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.verify.static_finding import Finding
from hotloop.verify.static_names import (
    BANNED_ATTRIBUTES,
    BANNED_BARE,
    BANNED_CALLS,
    BANNED_MEMBERS,
    BANNED_MODULES,
    NOT_REACHED,
    REACHED,
)
from hotloop.verify.static_scope import GETTER, Scope, text_of

LANGUAGES = frozenset({"triton.language", "triton.experimental.gluon.language"})
"""Modules whose types are looked up by a name that is made: `getattr(tl, str(dtype)[6:])`."""
_COMPILED = "the compiler's kernels are the baseline; call a method of your own otherwise"
MEMORY = {name: BANNED_MEMBERS[name] for name in BANNED_MEMBERS if "_array_" in name}
"""What may not be defined: objects whose memory torch would take for a tensor's."""
_HIDDEN = "what a module holds is not looked up by a name that is made; write the name out"


def reason_against(name: str, *, imported: bool = True) -> str | None:
    """Return why a dotted name is banned, or None.

    Args:
        name: as `Scope.resolve` gives it.
        imported: whether its first part was imported, so that the others are a module's.
    """
    parts = name.split(".")
    for start in range(len(parts) if imported else 1):
        ends = range(start + 1, len(parts) + 1)
        whole = (BANNED_ATTRIBUTES.get(".".join(parts[start:end])) for end in ends)
        reason = next(filter(None, whole), None)
        if reason is not None:
            return reason
        is_own = start and ".".join(parts[start - 1 : start + 1]) in NOT_REACHED
        if start and parts[start] in REACHED and not is_own:
            return BANNED_MODULES.get(parts[start], "other modules are not reached through one")
    return None


def reached(node: ast.AST, scope: Scope) -> Iterator[Finding]:
    """Yield what reaches a banned module or name, on the node that does."""
    defined = getattr(node, "id" if isinstance(node, ast.Name) else "name", "")
    if isinstance(node, (ast.Name, ast.FunctionDef)) and defined in MEMORY:
        yield Finding("banned_name", f"`{defined}`: {MEMORY[defined]}", node.lineno)
    if isinstance(node, ast.Attribute):
        reason = BANNED_MEMBERS.get(node.attr)
        if reason:
            yield _finding(f".{node.attr}", reason, node)
        if node.attr == "__getattr__" and scope.is_imported(node.value):
            yield _finding(scope.resolve(node), _HIDDEN, node)
    if isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        name = scope.resolve(node)
        reason = reason_against(name, imported=scope.is_imported(node))
        reason = reason or BANNED_MEMBERS.get(name.rpartition(".")[2])
        if _compiles(node, name, scope):
            reason = _COMPILED
        if reason and name:
            yield _finding(name, reason, node)
    if isinstance(node, ast.Call) and scope.resolve(node.func) == GETTER:
        for given in node.args:
            text = text_of(given)
            reason = _HIDDEN if text is None else reason_against(f"?.{text}")
            if reason:
                yield _finding(f"{GETTER}({text or '...'})", reason, node)


def _compiles(node: ast.expr, name: str, scope: Scope) -> bool:
    """Whether this is torch's `compile`, or that of a module that is not imported: a layer's."""
    is_method = isinstance(node, ast.Attribute) and node.attr == "compile"
    is_set = isinstance(getattr(node, "ctx", None), ast.Store)
    if is_set or not (is_method or name.endswith(".compile")):
        return False
    return not scope.is_imported(node) or name.startswith("torch.")


def hidden_names(tree: ast.Module, scope: Scope) -> Iterator[Finding]:
    """Yield lookups in modules by names that the text does not show."""
    nodes = list(ast.walk(tree))
    by_name = {id(n.value) for n in nodes if isinstance(n, ast.Subscript)}
    for node in nodes:
        got, owner = scope.got(node), scope.listed(node)
        if got is not None and text_of(got[1]) is None:
            owner = got[0]
        elif owner is None or id(node) in by_name:  # by a name that is there to read
            continue
        name = scope.resolve(owner)
        if scope.is_imported(owner) and name not in LANGUAGES:
            yield Finding("banned_name", f"a name in `{name}`: {_HIDDEN}", _line(node))


def bare_names(tree: ast.Module) -> Iterator[Finding]:
    """Yield banned functions of Python's own that are called, or given another name."""
    bound = set(_bound_names(tree))
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        is_call = node.id in BANNED_CALLS and id(node) in called
        if is_call or (node.id in BANNED_CALLS | BANNED_BARE and node.id not in bound):
            text = f"`{node.id}{'()' if is_call else ''}` is not allowed in a kernel file"
            yield Finding("banned_name", text, node.lineno)


def _bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file gives a meaning of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def _line(node: ast.AST) -> int | None:
    return getattr(node, "lineno", None)


def _finding(what: str, reason: str, node: ast.expr) -> Finding:
    return Finding("banned_name", f"`{what}` is not allowed: {reason}", _line(node))
