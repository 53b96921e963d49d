"""Loops: where they start, stop and how far they step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import Site
from benchmarks.mutation.writing import text

RANGES = ("range", "tl.range", "tl.static_range")


def _loop(node: ast.AST) -> tuple[str, str, str, str, str] | None:
    """Return function, start, stop, step and further arguments of a range."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in RANGES:
        return None
    args = [text(a) for a in node.args]
    start, stop, step = {1: ["0", *args, "1"], 2: [*args, "1"], 3: args}[len(args)]
    rest = "".join(f", {ast.unparse(k)}" for k in node.keywords)
    return ast.unparse(node.func), start, stop, step, rest


@BOOK.add("loop_starts_late", "loops", ast.Call)
def loop_starts_late(node: ast.AST, site: Site) -> Iterator[str]:
    """Skip the first step."""
    if found := _loop(node):
        function, start, stop, step, rest = found
        yield f"{function}({start} + {step}, {stop}, {step}{rest})"


@BOOK.add("loop_stops_early", "loops", ast.Call)
def loop_stops_early(node: ast.AST, site: Site) -> Iterator[str]:
    """Skip the last step."""
    if found := _loop(node):
        function, start, stop, step, rest = found
        yield f"{function}({start}, {stop} - {step}, {step}{rest})"


@BOOK.add("loop_rounds_down", "loops", ast.Call)
def loop_rounds_down(node: ast.AST, site: Site) -> Iterator[str]:
    """Skip the last step where it is not a whole one."""
    if (found := _loop(node)) and found[3] != "1":
        function, start, stop, step, rest = found
        yield f"{function}({start}, {stop} // {step} * {step}, {step}{rest})"


@BOOK.add("loop_once", "loops", ast.Call)
def loop_once(node: ast.AST, site: Site) -> Iterator[str]:
    """Take the first step only."""
    if found := _loop(node):
        function, start, _, step, rest = found
        yield f"{function}({start}, {start} + {step}, {step}{rest})"


@BOOK.add("loop_step_doubled", "loops", ast.Call)
def loop_step_doubled(node: ast.AST, site: Site) -> Iterator[str]:
    """Skip every second step."""
    if found := _loop(node):
        function, start, stop, step, rest = found
        yield f"{function}({start}, {stop}, 2 * {step}{rest})"


@BOOK.add("loop_step_halved", "loops", ast.Call)
def loop_step_halved(node: ast.AST, site: Site) -> Iterator[str]:
    """Let steps overlap by half."""
    if (found := _loop(node)) and found[3] != "1":
        function, start, stop, step, rest = found
        yield f"{function}({start}, {stop}, {step} // 2{rest})"


@BOOK.add("loop_runs_on", "loops", ast.Call)
def loop_runs_on(node: ast.AST, site: Site) -> Iterator[str]:
    """Take one step too many."""
    if found := _loop(node):
        function, start, stop, step, rest = found
        yield f"{function}({start}, {stop} + {step}, {step}{rest})"
