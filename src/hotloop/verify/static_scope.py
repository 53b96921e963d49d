"""Names of a Python file: what each stands for, followed through imports, aliases and `getattr`.

`import torch as t`, then `fast = t`, then `getattr(fast, "comp" + "ile")` is `torch.compile`. One
table serves the whole file: a name that means an imported thing anywhere means it everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.core.python_source import dotted


class Scope:
    """What the names of one module were imported as."""

    def __init__(self, tree: ast.Module) -> None:
        self._origins: dict[str, str] = {}
        self.has_star = False
        """Whether something was imported by `*`: then a bare name may be anything."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._origins.update(self._imported(node))
        for _ in range(3):  # an alias of an alias of an alias
            for node in nodes:
                if isinstance(node, ast.Assign) and self.is_imported(node.value):
                    origin = self.resolve(node.value)
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            self._origins.setdefault(target.id, origin)

    def resolve(self, node: ast.AST) -> str:
        """Return the dotted name that an expression stands for; empty where it is no name."""
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            return f"{owner}.{node.attr}" if owner else node.attr
        if isinstance(node, ast.Call) and dotted(node.func) == "getattr" and len(node.args) > 1:
            name = text_of(node.args[1])
            owner = self.resolve(node.args[0])
            return f"{owner}.{name}" if owner and name else ""
        return ""

    def is_imported(self, node: ast.AST) -> bool:
        """Whether an expression is an imported module, or something in one."""
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                node = node.value
            elif isinstance(node, ast.Call) and node.args and self.resolve(node):
                node = node.args[0]
            else:
                return False
        return node.id in self._origins

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
    """Return the text of a string literal, or of literals that are added; None otherwise."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return left + right if left is not None and right is not None else None
    return None
