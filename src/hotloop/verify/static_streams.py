"""Side streams: allowed where the text shows that the current stream waits for them.

    current = torch.cuda.current_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        ...
    current.wait_stream(side)

Both waits are asked for: work that nobody waits for is a cheat on every clock that looks at one
stream, and work that waits for nobody runs beside the call before, which a batch of calls would
take for speed. The judge's clock sees all streams and outputs are copied in the current stream's
order, so what this rule lets pass is judged like the rest (docs/decisions/011).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from hotloop.verify.static_finding import Finding
from hotloop.verify.static_scope import Scope

ENTER = "torch.cuda.stream"
MAKE = "torch.cuda.Stream"
JOIN = "wait_stream"
CURRENT = "torch.cuda.current_stream"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MESSAGE = (
    "`torch.cuda.stream(side)`: with `current = torch.cuda.current_stream()`, call "
    "`side.wait_stream(current)` before its `with` block, and `current.wait_stream(side)` after it "
    "in the block that it stands in"
)


def unjoined_streams(tree: ast.Module, scope: Scope) -> Iterator[Finding]:
    """Yield each use of a side stream that is not joined where everybody can see it."""
    waits = _Waits(tree, scope)
    joined = {
        id(call)
        for node in ast.walk(tree)
        for block in _blocks(node)
        for call in waits.joined(block)
    }
    makes_streams = False
    for node in ast.walk(tree):
        name = scope.resolve(node)
        makes_streams |= name == MAKE
        if name == ENTER and id(node) not in joined:
            yield Finding("unjoined_stream", _MESSAGE, getattr(node, "lineno", None))
    if makes_streams:
        yield from _entered_as_they_are(tree, scope)


def _entered_as_they_are(tree: ast.Module, scope: Scope) -> Iterator[Finding]:
    """Yield `with side:` and `with torch.cuda.Stream():`, which enter a stream too."""
    for node in ast.walk(tree):
        for item in node.items if isinstance(node, (ast.With, ast.AsyncWith)) else ():
            entered = item.context_expr
            if not isinstance(entered, ast.Call) or scope.resolve(entered.func) == MAKE:
                yield Finding("unjoined_stream", _MESSAGE, entered.lineno)


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


class _Waits:
    """Who waits for whom in a file."""

    def __init__(self, tree: ast.Module, scope: Scope) -> None:
        self._scope = scope
        self._current = _names_of_the_current_stream(tree, scope)
        self._forks: list[tuple[int, str]] = []
        """Line and stream of each `side.wait_stream(current)`."""
        for node in ast.walk(tree):
            call = _wait(node)
            if call is not None and self._is_current(call.args[0]):
                assert isinstance(call.func, ast.Attribute)
                self._forks.append((call.lineno, ast.dump(call.func.value)))

    def joined(self, block: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        """Yield the nodes that name `torch.cuda.stream` in joined `with` statements of a block."""
        for place, statement in enumerate(block):
            if not isinstance(statement, ast.With):
                continue
            for item in statement.items:
                call = item.context_expr
                if not isinstance(call, ast.Call) or self._scope.resolve(call.func) != ENTER:
                    continue
                is_plain = len(call.args) == 1 and not call.keywords
                if is_plain and self._is_joined(statement, block[place + 1 :], call.args[0]):
                    yield call.func

    def _is_joined(self, entered: ast.With, after: Sequence[ast.stmt], side: ast.expr) -> bool:
        name = ast.dump(side)
        has_forked = any(line < entered.lineno and name == of for line, of in self._forks)
        if not _is_steady(side) or not has_forked:
            return False
        for statement in (entered, *after):
            call = _wait(statement.value) if isinstance(statement, ast.Expr) else None
            if call is not None and ast.dump(call.args[0]) == name:
                assert isinstance(call.func, ast.Attribute)
                return self._is_current(call.func.value)
            if _leaves(statement) or _rebinds(statement, side):
                return False
        return False

    def _is_current(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._scope.resolve(node.func) == CURRENT and not node.args
        return isinstance(node, ast.Name) and node.id in self._current


def _names_of_the_current_stream(tree: ast.Module, scope: Scope) -> set[str]:
    """Return the names that stand for the current stream wherever they are bound."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            assert isinstance(node, ast.Assign)
            for name, value in _bindings(target, node.value):
                is_call = isinstance(value, ast.Call) and not value.args
                if is_call and scope.resolve(value.func) == CURRENT:  # type: ignore[union-attr]
                    found[name] += 1
    # However else a name is bound (a loop, `:=`, an argument), it may be something else then.
    bound = Counter(_bound_names(tree))
    inside = {n for node in ast.walk(tree) if _enters(node, scope) for n in _bound_names(node)}
    return {name for name, times in found.items() if bound[name] == times} - inside


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _enters(node: ast.AST, scope: Scope) -> bool:
    """Whether a statement runs its body on a side stream: there that one is the current one."""
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call) and scope.resolve(item.context_expr.func) == ENTER
        for item in node.items
    )


def _bindings(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        for place, part in enumerate(target.elts):
            yield from _bindings(part, values[place] if place < len(values) else None)


def _wait(node: ast.AST) -> ast.Call | None:
    """Return the node where it is a call of `wait_stream` with one argument."""
    is_wait = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == JOIN
        and len(node.args) == 1
    )
    return node if is_wait and isinstance(node, ast.Call) else None


def _is_steady(side: ast.expr) -> bool:
    """Whether an expression names the same stream each time: a name, `self.side`, `sides[0]`."""
    if isinstance(side, ast.Subscript):
        return isinstance(side.slice, ast.Constant) and _is_steady(side.value)
    return isinstance(side, ast.Name) or (
        isinstance(side, ast.Attribute) and _is_steady(side.value)
    )


def _leaves(statement: ast.AST, *, in_loop: bool = False) -> bool:
    """Whether a statement may go past what follows it in its block."""
    if isinstance(statement, _FUNCTIONS):
        return False
    if isinstance(statement, (ast.Return, ast.Raise, ast.Assert)):
        return True
    if isinstance(statement, (ast.Break, ast.Continue)):
        return not in_loop
    inside = in_loop or isinstance(statement, _LOOPS)
    return any(_leaves(child, in_loop=inside) for child in ast.iter_child_nodes(statement))


def _rebinds(statement: ast.stmt, side: ast.expr) -> bool:
    """Whether a statement gives the stream, or what it is a part of, another value."""
    parts = {_key(node) for node in ast.walk(side) if isinstance(node, ast.expr)}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.expr))
    return any(
        isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) and _key(node) in parts
        for node in stored
    )


def _key(node: ast.expr) -> str:
    return ast.unparse(node)
