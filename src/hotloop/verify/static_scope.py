"""Names of a Python file: what each stands for, followed through imports, aliases and `getattr`.

`import torch as t`, then `fast = t`, then `getattr(fast, "comp" + "ile")` is `torch.compile`. One
table serves the whole file: a name that means an imported thing anywhere means it everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

GETTER = "operator.attrgetter"
_FOLLOWED = frozenset({"getattr", "vars", "setattr", "delattr"})
"""Functions of Python's own that are known by other names, too."""


class Scope:
    """What the names of one module were imported as."""

    def __init__(self, tree: ast.Module) -> None:
        self._origins: dict[str, str] = {}
        self.has_star = False
        """Whether something was imported by `*`: then a bare name may be anything."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._origins.update(self._imported(node))
        bound = [pair for node in nodes for pair in _bindings(node)]
        for _ in range(3):  # an alias of an alias of an alias
            for name, value in bound:
                if self.is_imported(value) or self.resolve(value) in _FOLLOWED:
                    self._origins.setdefault(name, self.resolve(value))

    def resolve(self, node: ast.AST) -> str:
        """Return the dotted name that an expression stands for; empty where it is no name."""
        if isinstance(node, ast.NamedExpr):
            return self.resolve(node.value)
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            return f"{owner}.{node.attr}" if owner else node.attr
        got = self.got(node)
        owner = self.resolve(got[0]) if got is not None else ""
        name = text_of(got[1]) if got is not None else None
        return f"{owner}.{name}" if owner and name else ""

    def got(self, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
        """Return object and name where an attribute is looked up by its name; None elsewhere."""
        if isinstance(node, ast.Subscript):
            owner = self.listed(node.value)
            return None if owner is None else (owner, node.slice)
        if not isinstance(node, ast.Call) or not node.args:
            return None
        if self.calls(node.func, "getattr") and len(node.args) > 1:
            return node.args[0], node.args[1]
        if isinstance(node.func, ast.Call) and self.resolve(node.func.func) == GETTER:
            return node.args[0], (node.func.args or node.args)[0]
        return None

    def listed(self, node: ast.AST) -> ast.expr | None:
        """Return whose attributes an expression lists: `x` of `vars(x)` and of `x.__dict__`."""
        if isinstance(node, ast.Call) and self.calls(node.func, "vars") and node.args:
            return node.args[0]
        is_table = isinstance(node, ast.Attribute) and node.attr == "__dict__"
        return node.value if isinstance(node, ast.Attribute) and is_table else None

    def calls(self, called: ast.expr, name: str) -> bool:
        """Whether what is called is a function of Python's own, under whatever name."""
        return isinstance(called, (ast.Name, ast.NamedExpr)) and self.resolve(called) == name

    def is_imported(self, node: ast.AST) -> bool:
        """Whether an expression is an imported module, or something in one."""
        while not isinstance(node, ast.Name):
            if isinstance(node, (ast.Attribute, ast.NamedExpr)):
                node = node.value
            elif (got := self.got(node)) is not None and self.resolve(node):
                node = got[0]
            else:
                return False
        return self._origins.get(node.id, "") not in {"", *_FOLLOWED}

    def _imported(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                self.has_star |= alias.name == "*"
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string literal, or of literals put together; None otherwise.

    They may be put together by `+`, by `join`, or in an f-string.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _together("", (node.left, node.right))
    if isinstance(node, ast.JoinedStr):
        return _together("", node.values)
    if isinstance(node, ast.FormattedValue) and node.format_spec is None:
        return text_of(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        between, parts = text_of(node.func.value), node.args[0]
        if node.func.attr == "join" and isinstance(parts, (ast.Tuple, ast.List)):
            return None if between is None else _together(between, parts.elts)
    return None


def _together(between: str, parts: Sequence[ast.expr]) -> str | None:
    texts = [text_of(part) for part in parts]
    known = [text for text in texts if text is not None]
    return between.join(known) if len(known) == len(texts) else None


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a statement or `:=` binds, with its value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _bound(node.target, node.value)


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for part, given in zip(target.elts, value.elts, strict=False):
            yield from _bound(part, given)
