"""Side streams: allowed where the text shows that the current stream waits for them.

    side.wait_stream(current)
    with torch.cuda.stream(side):
        ...
    current.wait_stream(side)

Work that nobody waits for is a cheat on every clock that looks at one stream. The judge's clock
sees all streams and outputs are copied in the current stream's order, so what this rule lets pass
is judged like the rest (docs/decisions/011).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hotloop.verify.static_finding import Finding
from hotloop.verify.static_scope import Scope

ENTER = "torch.cuda.stream"
MAKE = "torch.cuda.Stream"
JOIN = "wait_stream"
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_MESSAGE = (
    "`torch.cuda.stream(side)`: after its `with` block, and in the block that it stands in, the "
    "current stream has to wait: `torch.cuda.current_stream().wait_stream(side)`"
)


def unjoined_streams(tree: ast.Module, scope: Scope) -> Iterator[Finding]:
    """Yield each use of a side stream that is not joined where everybody can see it."""
    joined = {
        id(call)
        for node in ast.walk(tree)
        for block in _blocks(node)
        for call in _joined(block, scope)
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


def _joined(block: Sequence[ast.stmt], scope: Scope) -> Iterator[ast.AST]:
    """Yield the nodes that name `torch.cuda.stream` in joined `with` statements of a block."""
    for place, statement in enumerate(block):
        if not isinstance(statement, ast.With):
            continue
        for item in statement.items:
            call = item.context_expr
            if not isinstance(call, ast.Call) or scope.resolve(call.func) != ENTER:
                continue
            is_plain = len(call.args) == 1 and not call.keywords
            if is_plain and _waits(statement, block[place + 1 :], call.args[0]):
                yield call.func


def _waits(entered: ast.With, after: Sequence[ast.stmt], side: ast.expr) -> bool:
    """Whether what follows waits for `side`, and is reached."""
    if not isinstance(side, (ast.Name, ast.Attribute)) or _leaves(entered):
        return False
    for statement in after:
        call = statement.value if isinstance(statement, ast.Expr) else None
        is_join = (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == JOIN
            and [ast.dump(arg) for arg in call.args] == [ast.dump(side)]
        )
        if is_join:
            return True
        if _leaves(statement) or _names(side) & _bound(statement):
            return False
    return False


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(node, _LEAVES) for node in ast.walk(statement))


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives another value."""
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
