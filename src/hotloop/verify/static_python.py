"""The static rules for Python, on the syntax tree with names followed to what they stand for."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from hotloop.core.language import CUDA, GLUON, TRITON
from hotloop.core.problem import Policy
from hotloop.core.python_source import Unparsable, dotted, parse_python
from hotloop.verify.static_cuda import check_cuda, check_identifiers, is_cpp
from hotloop.verify.static_finding import Finding
from hotloop.verify.static_launches import (
    gluon_functions,
    guarded_launches,
    kernel_functions,
    outside_kernels,
    unused_extension,
    unused_kernels,
)
from hotloop.verify.static_names import BANNED_MEMBERS, BANNED_MODULES, LIBRARY_CALLS, SETTINGS
from hotloop.verify.static_reach import bare_names, hidden_names, reached, reason_against
from hotloop.verify.static_scope import Scope, text_of
from hotloop.verify.static_streams import unjoined_streams

MODEL = "ModelNew"
REFERENCE = "Model"
"""The reference's class: a copy of it in the candidate's file is no base either."""
BASES = frozenset({
    "torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module", "object",
    "abc.ABC", "typing.Generic",
})  # fmt: skip
"""What a `ModelNew`, and bases of its own, may derive from."""
_PATCHERS = frozenset({"setattr", "delattr"})
_TENSORS = frozenset({"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def check_python(text: str, policy: Policy, language: str = TRITON.name) -> Iterator[Finding]:
    """Yield the broken rules of a Python source; none where it does not parse.

    Args:
        text: the source.
        policy: the problem's.
        language: that the candidate says it is in: a `gluon` one has a Gluon kernel, a `cuda` one
            an extension that its forward uses.
    """
    try:
        tree = parse_python(text)
    except Unparsable as exc:
        yield Finding("unreadable", str(exc), 1)
        return
    except SyntaxError:
        return
    yield from check_identifiers(_without_comments(text))
    scope = Scope(tree)
    kernels = kernel_functions(tree, scope)
    for node in ast.walk(tree):
        yield from _imports(node)
        yield from reached(node, scope)
        yield from _patches(node, scope)
        yield from _texts(node)
        yield from _subclasses(node, scope)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from guarded_launches(node, kernels, scope)
    yield from bare_names(tree)
    yield from hidden_names(tree, scope)
    yield from unjoined_streams(tree, scope)
    yield from _model(tree, scope)
    yield from unused_kernels(tree, kernels)
    if language == GLUON.name:
        yield from unused_kernels(tree, kernels, own=gluon_functions(tree, scope))
    if language == CUDA.name:
        yield from unused_extension(tree)
    if policy.library_calls == "none":
        yield from _library_calls(tree, kernels, scope)


def library_calls(text: str) -> Iterator[Finding]:
    """Yield a Python source's library calls, whatever the policy; none where it does not parse."""
    try:
        tree = parse_python(text)
    except (Unparsable, SyntaxError):
        return
    scope = Scope(tree)
    yield from _library_calls(tree, kernel_functions(tree, scope), scope)


def _without_comments(text: str) -> str:
    """Take out Python's comments, and literals of C++, which `_texts` looks at without theirs.

    A text that cannot be cut into tokens is looked at whole.
    """
    lines = io.StringIO(text).readlines()  # as the tokeniser counts them
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    for token in reversed(tokens):  # so that what is before stays where it is
        if token.type == tokenize.COMMENT or _is_cpp_literal(token):
            (first, start), (last, end) = token.start, token.end
            if "".join(lines[first - 1 : last])[start:][: len(token.string)] != token.string:
                return text
            after = lines[last - 1][end:]
            lines[first - 1] = lines[first - 1][:start] + (after if first == last else "\n")
            lines[first:last] = ["\n"] * (last - first - 1) + [after] * (last > first)
    return "".join(lines)


def _is_cpp_literal(token: tokenize.TokenInfo) -> bool:
    if token.type != tokenize.STRING:
        return False
    try:
        value = ast.literal_eval(token.string)
    except (ValueError, SyntaxError):  # one with fields
        return False
    return isinstance(value, str) and is_cpp(value)


def _imports(node: ast.AST) -> Iterator[Finding]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or "."] if node.level == 0 else ["."]
        names += [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        first, last = name.split(".")[0], name.rpartition(".")[2]
        reason = BANNED_MODULES.get(first) or reason_against(name) or BANNED_MEMBERS.get(last)
        if reason:
            line = getattr(node, "lineno", None)
            yield Finding("banned_import", f"`import {name}` is not allowed: {reason}", line)


def _patches(node: ast.AST, scope: Scope) -> Iterator[Finding]:
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets = [node.target]
    elif isinstance(node, ast.Call) and scope.resolve(node.func) in _PATCHERS and node.args:
        targets = [ast.Attribute(node.args[0], "?", ast.Store())]
    for target in targets:
        owner = _owner(target, scope)
        if owner is None or not scope.is_imported(owner):
            continue
        name = scope.resolve(owner)
        if not name.startswith(SETTINGS):
            text = f"attributes of `{name}` are not the candidate's to change"
            yield Finding("patching", text, getattr(node, "lineno", None))


def _owner(target: ast.expr, scope: Scope) -> ast.expr | None:
    """Return the object whose attribute a target sets, also through `vars` and `__dict__`."""
    if isinstance(target, ast.Attribute):
        return target.value
    return scope.listed(target.value) if isinstance(target, ast.Subscript) else None


def _texts(node: ast.AST) -> Iterator[Finding]:
    """Look into literals that hold C++, also where they are put together by `+`."""
    text = text_of(node)
    if text is None or not is_cpp(text):
        return
    for finding in check_cuda(text):
        line = getattr(node, "lineno", 1) + (finding.line or 1) - 1
        yield Finding(finding.rule, finding.message, line)


def _subclasses(node: ast.AST, scope: Scope) -> Iterator[Finding]:
    if isinstance(node, ast.ClassDef):
        if any(scope.resolve(base) in _TENSORS for base in node.bases):
            text = f"`class {node.name}`: no subclass of a tensor; outputs are plain tensors"
            yield Finding("subclass", text, node.lineno)
    elif isinstance(node, ast.Call) and dotted(node.func) == "type" and len(node.args) > 1:
        text = "no class is made by `type(...)`: it may be a tensor's; write a class or a dataclass"
        yield Finding("subclass", text, node.lineno)


def _model(tree: ast.Module, scope: Scope) -> Iterator[Finding]:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    classes = {n.name: n for n in found}
    if not any(isinstance(n, ast.ClassDef) and n.name == MODEL for n in tree.body):
        yield Finding("no_kernel", "expected a class `ModelNew(torch.nn.Module)`, found none")
        return
    names = [n.name for n in found]
    seen: dict[str, None] = {}
    pending = [MODEL]
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen[name] = None
        if names.count(name) > 1:  # a base is whichever stood there when the class was made
            text = f"`class {name}` is there twice; give each class a name of its own"
            yield Finding("inheritance", text, classes[name].lineno)
        for base in classes[name].bases:
            if isinstance(base, ast.Name) and base.id in classes and base.id != REFERENCE:
                pending.append(base.id)
            elif not _is_module(base, scope):
                text = f"`{name}({dotted(base)})`: derive from torch.nn.Module alone"
                yield Finding("inheritance", text, classes[name].lineno)
    for name in seen:
        for node in ast.walk(classes[name]):
            if isinstance(node, (ast.Try, ast.TryStar)) and node.handlers:
                yield Finding(
                    "try_except",
                    f"no `try` in {name}: a kernel that fails must fail, not fall back; what may "
                    "fail for other reasons goes outside of the class",
                    node.lineno,
                )


def _is_module(base: ast.expr, scope: Scope) -> bool:
    name = scope.resolve(base.value if isinstance(base, ast.Subscript) else base)
    return name in BASES or (scope.has_star and name == "Module")


def _own_functions(tree: ast.Module, scope: Scope) -> set[str]:
    """Return how functions and methods are called that are the file's own under these names."""
    own, stored = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own.add(node.name)
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            stored.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    if scope.has_star:
        return set()
    return {call for name in own - stored for call in (name, f"self.{name}")}


def _library_calls(tree: ast.Module, kernels: set[str], scope: Scope) -> Iterator[Finding]:
    own = _own_functions(tree, scope)
    for node in outside_kernels(tree, kernels):
        name = ""
        if isinstance(node, ast.Call):
            whole = scope.resolve(node.func) or dotted(node.func)
            name = "" if whole in own else whole.split(".")[-1]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            name = "@"
        elif isinstance(node, ast.ImportFrom):
            name = next((a.name for a in node.names if a.name in LIBRARY_CALLS), "")
        if name == "@" or name in LIBRARY_CALLS:
            yield Finding(
                "library_call",
                f"`{name}`: this problem allows no library call in place of the kernel",
                getattr(node, "lineno", None),
            )
