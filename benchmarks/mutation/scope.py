"""Where in a kernel file an expression stands: address, mask, value, or the host's code.

Names are followed backwards: what a pointer or a mask is computed from is itself of that role. A
name that serves both is an address, for a mask only repeats what the address says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

ADDRESS, MASK, VALUE, HOST = "address", "mask", "value", "host"
KERNEL = frozenset({ADDRESS, MASK, VALUE})
_MEMORY = {"load": (0, 1), "store": (0, 2), "atomic_add": (0, 2), "atomic_max": (0, 2)}
"""Position of the pointer and of the mask in a call."""


@dataclass(frozen=True, slots=True)
class Site:
    """One node of a kernel file and what surrounds it."""

    node: ast.AST
    path: tuple[tuple[str, int | None], ...]
    """Field and index from the module down to the node."""
    parents: tuple[ast.AST, ...]
    """From the module down to the node's own parent."""
    role: str
    function: ast.FunctionDef

    @property
    def parent(self) -> ast.AST:
        """The node that holds this one."""
        return self.parents[-1]

    @property
    def loop(self) -> ast.For | None:
        """The innermost loop around the node."""
        loops = [p for p in self.parents if isinstance(p, ast.For)]
        return loops[-1] if loops else None

    def size_names(self) -> list[str]:
        """Return the function's parameters that are plain sizes or strides, in order."""
        names = [a.arg for a in self.function.args.args if a.annotation is None]
        return [n for n in names if not n.endswith(("ptr", "_in")) and "eps" not in n]

    def block_names(self) -> list[str]:
        """Return the function's compile-time parameters that are block sizes."""
        names = [a.arg for a in self.function.args.args if a.annotation is not None]
        return [n for n in names if "BLOCK" in n]


def memory_call(node: ast.AST) -> str | None:
    """Return `load`, `store` or the like for a call of `tl.load` and its kin."""
    name = language_call(node)
    return name if name in _MEMORY else None


def language_call(node: ast.AST) -> str | None:
    """Return F for a call `tl.F(...)` or `libdevice.F(...)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    holder = node.func.value
    if isinstance(holder, ast.Name) and holder.id in ("tl", "libdevice"):
        return node.func.attr
    return None


def sites(tree: ast.Module) -> Iterator[Site]:
    """Yield the nodes that a rule may rewrite: bodies of kernels and of the host's methods."""
    for function, path, parents in _functions(tree):
        is_kernel = any("jit" in ast.unparse(d) for d in function.decorator_list)
        if not is_kernel and not isinstance(parents[-1], ast.ClassDef):
            continue
        roles = _name_roles(function) if is_kernel else {}
        for i, statement in enumerate(function.body):
            if i == 0 and _is_text(statement):
                continue
            start = (*path, ("body", i))
            role = VALUE if is_kernel else HOST
            yield from _below(statement, start, (*parents, function), role, function, roles)


def _functions(
    tree: ast.Module,
) -> Iterator[tuple[ast.FunctionDef, tuple[tuple[str, int | None], ...], tuple[ast.AST, ...]]]:
    for i, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef):
            yield node, (("body", i),), (tree,)
        elif isinstance(node, ast.ClassDef):
            for k, inner in enumerate(node.body):
                if isinstance(inner, ast.FunctionDef):
                    yield inner, (("body", i), ("body", k)), (tree, node)


def _below(
    node: ast.AST,
    path: tuple[tuple[str, int | None], ...],
    parents: tuple[ast.AST, ...],
    role: str,
    function: ast.FunctionDef,
    roles: dict[str, str],
) -> Iterator[Site]:
    if roles and isinstance(node, (ast.Assign, ast.AugAssign)):
        role = _assigned_role(node, roles)
    yield Site(node, path, parents, role, function)
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for i, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, ast.expr_context):
                continue
            inner = role
            call = memory_call(node) if role != HOST else None
            if call and field == "args":
                pointer, mask = _MEMORY[call]
                inner = {pointer: ADDRESS, mask: MASK}.get(i, VALUE)
            elif call and isinstance(child, ast.keyword):
                inner = MASK if child.arg == "mask" else VALUE
            at = (field, i if isinstance(value, list) else None)
            yield from _below(child, (*path, at), (*parents, node), inner, function, roles)


def _assigned_role(node: ast.Assign | ast.AugAssign, roles: dict[str, str]) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    found = {roles.get(name, VALUE) for target in targets for name in names_in(target)}
    for role in (ADDRESS, MASK):
        if role in found:
            return role
    return VALUE


def _name_roles(function: ast.FunctionDef) -> dict[str, str]:
    """Return the role of each local name that an address or a mask is computed from."""
    roles: dict[str, str] = {"": VALUE}  # never empty: this marks a kernel
    for role, position in ((MASK, 1), (ADDRESS, 0)):
        names: set[str] = set()
        for node in ast.walk(function):
            call = memory_call(node)
            if call is None:
                continue
            assert isinstance(node, ast.Call)
            at = _MEMORY[call][position]
            used = [a for a in node.args[at : at + 1]]
            used += [k.value for k in node.keywords if position == 1 and k.arg == "mask"]
            names.update(name for u in used for name in names_in(u))
        roles.update(dict.fromkeys(_sources(function, names), role))
    return roles


def _sources(function: ast.FunctionDef, names: set[str]) -> set[str]:
    """Return the names and all that they are computed from, but for values out of memory."""
    while True:
        more = set(names)
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                loads = any(memory_call(n) for n in ast.walk(node.value))
                if not loads and any(n in names for t in targets for n in names_in(t)):
                    more.update(names_in(node.value))
        if more == names:
            return names
        names = more


def names_in(node: ast.AST) -> list[str]:
    """Return the plain names in an expression."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
