"""Whether a Python source builds CUDA C++ as an extension, and whether its forward uses that.

A name is enough for the first, so for the second names are followed, from `forward` to what is
defined under the names in it, and so on: functions, classes, attributes and module variables alike.
That finds too many ways rather than too few: a builder that nothing leads to is dead text.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from hotloop.core.python_source import dotted

BUILDER = "load_inline"
MODEL = "ModelNew"
_BUILT = "<extension>"
"""Stands among names for the place that builds it."""
_SPECIAL = frozenset({"forward", "backward", "setup_context", "prepare"})
_INDIRECT = frozenset({"children", "modules", "named_children", "named_modules", "_modules"})
"""Lead to submodules without their names."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REGISTERED = "TORCH_LIBRARY"
"""In C++: what it makes is found under `torch.ops`."""


def builds_extension(tree: ast.AST) -> bool:
    """Whether anything in a source names torch's builder of extensions, or calls `load`."""
    return _BUILT in _names(tree)


def uses_extension(tree: ast.Module) -> bool:
    """Whether a source builds an extension that its `forward` leads to.

    A source without a `forward` is a fragment: there the builder's name is enough.
    """
    if not builds_extension(tree):
        return False
    starts = list(_forwards(tree))
    if not starts:
        return True
    defined = _defined(tree)
    seen = {name for forward in starts for name in _names(forward)}
    pending = list(seen)
    while pending:
        new = defined.get(pending.pop(), set()) - seen
        seen |= new
        pending += new
    is_registered = "ops" in seen and any(_REGISTERED in text for text in _texts(tree))
    return _BUILT in seen or is_registered or bool(seen & _INDIRECT)


def _forwards(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what `forward` is in the model and its bases, or anywhere where that has none."""
    classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    pending, own = [MODEL], {}
    while pending:
        name = pending.pop()
        if name in classes and name not in own:
            own[name] = classes[name]
            pending += [dotted(base) for base in classes[name].bases]
    found = [n for c in own.values() for n in ast.walk(c) if _is_forward(n)]
    yield from found or [n for n in ast.walk(tree) if _is_forward(n)]


def _is_forward(node: ast.AST) -> bool:
    if isinstance(node, _FUNCTIONS):
        return node.name in ("forward", "__call__")
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(dotted(target).rpartition(".")[2] == "forward" for target in targets)


def _defined(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names that each name leads to."""
    leads: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            leads[node.name] |= _names(node)
        elif isinstance(node, ast.ClassDef):
            leads[node.name] |= _class_names(node)
        elif isinstance(node, ast.Call):
            given = _names(*node.args, *(keyword.value for keyword in node.keywords))
            for name in _filled(node):
                leads[name] |= given
        else:
            for target, value in _assigned(node):
                leads[_last(target)] |= _names(value)
    return leads


def _class_names(node: ast.ClassDef) -> set[str]:
    """Return what using a class may run; its other methods are found under names of their own."""
    run = [n for n in node.body if not isinstance(n, _FUNCTIONS) or _is_special(n.name)]
    return _names(*run, *node.bases, *node.decorator_list)


def _is_special(name: str) -> bool:
    return name in _SPECIAL or (name.startswith("__") and name.endswith("__"))


def _filled(call: ast.Call) -> Iterator[str]:
    """Yield what a call may put its arguments into: `made.append(x)`, `setattr(self, "made", x)`.

    A module is not filled: `self.run(x)` says nothing of `self`.
    """
    if isinstance(call.func, ast.Attribute) and _last(call.func.value) != "self":
        yield _last(call.func.value)
    for given in call.args:
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            yield given.value


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of a statement with what it is made of."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            yield from ((part, node.value) for part in parts)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _last(target: ast.expr) -> str:
    """Return the name that a target is found under again: `ext` of `self.ext` and of `ext[0]`."""
    while isinstance(target, (ast.Subscript, ast.Starred)):
        target = target.value
    return dotted(target).rpartition(".")[2]


def _names(*nodes: ast.AST) -> set[str]:
    """Return the names of variables and attributes, and the texts that may stand for some."""
    found: set[str] = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, (ast.Name, ast.Attribute)):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Call) and _is_load(dotted(node.func)):
            found.add(_BUILT)
    return found | {_BUILT} if BUILDER in found else found


def _is_load(call: str) -> bool:
    """Whether a call builds an extension from files (`tl.load` does not)."""
    return call == "load" or call.endswith("cpp_extension.load")


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
