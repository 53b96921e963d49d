"""Rules: each rewrites one node of a kernel file in one way, and gives a mutant.

A rule's function gets a node and its site and yields texts: an expression in place of an
expression, statements in place of a statement (an empty text deletes it).
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.mutation.scope import KERNEL, Site, sites

Rewrite = Callable[[ast.AST, Site], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of fault."""

    name: str
    group: str
    """Class of rules that the score is given by."""
    nodes: tuple[type[ast.AST], ...]
    roles: frozenset[str]
    rewrite: Rewrite


@dataclass(frozen=True, slots=True)
class Mutant:
    """One faulty kernel."""

    rule: str
    group: str
    source: str

    @property
    def digest(self) -> str:
        """Twelve hex digits of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]


class RuleBook:
    """Rules by name, in the order in which they were added."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}

    def add(
        self, name: str, group: str, *nodes: type[ast.AST], roles: frozenset[str] = KERNEL
    ) -> Callable[[Rewrite], Rewrite]:
        """Return a decorator that adds a rule.

        Raises:
            ValueError: there is one of that name.
        """

        def register(rewrite: Rewrite) -> Rewrite:
            if name in self.rules:
                raise ValueError(f"expected a new rule's name, got {name!r} again")
            self.rules[name] = Rule(name, group, nodes, roles, rewrite)
            return rewrite

        return register


BOOK = RuleBook()


@lru_cache(maxsize=256)
def canonical(source: str) -> str:
    """Return the source as the rewriting writes it: without comments, in one style."""
    return _joined(*_parts(ast.parse(source)))


def _apply(
    rule: Rule, tree: ast.Module, places: Sequence[Site], parts: tuple[list[str], list[bool]]
) -> Iterator[str]:
    texts, apart = parts
    for site in places:
        if site.role not in rule.roles or not isinstance(site.node, rule.nodes):
            continue
        top = site.path[0][1]
        assert top is not None
        for text in rule.rewrite(site.node, site):
            changed = _replaced(tree.body[top], site, text)
            yield _joined([*texts[:top], changed, *texts[top + 1 :]], apart)


def _parts(tree: ast.Module) -> tuple[list[str], list[bool]]:
    """Return each statement's text, and whether an empty line goes before it.

    A mutant differs in one of them: to write that one alone saves most of the time.
    """
    apart = [isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in tree.body]
    # in a module of its own the first one keeps the form of a docstring
    alone = [ast.Module(body=[node], type_ignores=[]) for node in tree.body[:1]]
    return [ast.unparse(node) for node in (*alone, *tree.body[1:])], apart


def _joined(texts: Sequence[str], apart: Sequence[bool]) -> str:
    lines = ("\n" + t if blank else t for t, blank in zip(texts, apart, strict=True))
    return "\n".join(lines) + "\n"


def mutants(
    source: str, rules: Sequence[Rule], *, per_rule: int | None = None, seed: int = 0
) -> list[Mutant]:
    """Return the distinct mutants of a kernel file, at most `per_rule` of each rule.

    Which ones is drawn by the seed; without a limit all of them come, in the order of the file.
    """
    tree = ast.parse(source)
    places, parts = list(sites(tree)), _parts(tree)
    seen = {_joined(*parts)}
    found: list[Mutant] = []
    for rule in rules:
        fresh = []
        for text in _apply(rule, tree, places, parts):
            if text not in seen:
                seen.add(text)
                fresh.append(Mutant(rule.name, rule.group, text))
        found += drawn(fresh, rule.name, per_rule, seed)
    return found


def drawn(fresh: list[Mutant], name: str, per_rule: int | None, seed: int) -> list[Mutant]:
    """Return at most `per_rule` of a rule's mutants, chosen by the seed, in their order."""
    if per_rule is None or len(fresh) <= per_rule:
        return fresh
    picked = random.Random(f"{seed} {name}").sample(range(len(fresh)), per_rule)
    return [fresh[i] for i in sorted(picked)]


def difference(source: str, mutant: str, language: str = "triton") -> str:
    """Return the changed lines, old ones with `-` and new ones with `+`."""
    original = canonical(source) if language == "triton" else source
    lines = difflib.unified_diff(original.splitlines(), mutant.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _replaced(top: ast.stmt, site: Site, text: str) -> str:
    """Return a statement of the file with one node in it replaced; the tree stays as it is."""
    field, index = site.path[-1]
    if isinstance(site.node, ast.stmt):
        body = getattr(site.parent, field)
        kept = list(body)
        body[index : (index or 0) + 1] = ast.parse(text or "pass").body
        source = ast.unparse(top)
        body[:] = kept
    else:
        _put(site.parent, field, index, ast.parse(f"({text})", mode="eval").body)
        source = ast.unparse(top)
        _put(site.parent, field, index, site.node)
    return source


def _put(holder: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(holder, field, node)
    else:
        getattr(holder, field)[index] = node
