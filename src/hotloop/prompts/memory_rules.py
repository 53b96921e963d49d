"""Rules on how a Triton kernel reads and writes memory: masks, `other=`, serial loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.core.python_source import dotted
from hotloop.prompts.findings import Finding
from hotloop.prompts.kernel_syntax import Kernel, Values, calls, evaluate, is_call, is_tl, keyword

REDUCTIONS = (
    "sum", "max", "min", "dot", "argmax", "argmin", "reduce", "cumsum", "cumprod", "xor_sum",
    "associative_scan", "dot_scaled", "softmax",
)  # fmt: skip
SERIAL_STEPS = 64
"""A loop of fewer single elements is no weakness."""


def unmasked(kernel: Kernel) -> Iterator[Finding]:
    """Yield accesses without a mask whose block does not divide its size."""
    for call in calls(kernel, "load", "store"):
        is_load = is_call(call, "load")
        if keyword(call, "mask", 1 if is_load else 2) is not None or not is_tl(call):
            continue
        if keyword(call, "boundary_check") is not None or not call.args:
            continue
        pointer = call.args[0]
        if any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in kernel.sources(pointer)
        ):
            continue  # offsets that wrap round stay inside
        for block, values in kernel.blocks(pointer).items():
            size = _uneven(kernel, block, values)
            if size is not None:
                name, value, step = size
                verb = "load" if is_load else "store"
                text = (
                    f"this {verb} has no mask, but {name} = {value} is no multiple of {block} "
                    f"= {step}: the last block passes the end."
                )
                yield Finding("no_mask", call.lineno, text)
                break


def _uneven(kernel: Kernel, block: str, steps: Values) -> tuple[str, int, int] | None:
    """Return a size that goes with the block and is no multiple of it, with both numbers."""
    for size, values in sorted(kernel.sizes_of(block).items()):
        for value in sorted(values):
            step = next((s for s in sorted(steps) if s > 0 and value % s), None)
            if step is not None:
                return size, value, step
    return None


def unfilled(kernel: Kernel) -> Iterator[Finding]:
    """Yield masked loads without `other=` whose values are reduced."""
    bare: dict[str, ast.Call] = {}
    for name, expressions in kernel.defined_by.items():
        found = [_unfilled(e) for e in expressions if _holds_load(e)]
        if found and found[0] is not None and None not in found:  # a name may be used again
            bare[name] = found[0]
    reported: set[int] = set()
    for reduction in calls(kernel, *REDUCTIONS):
        if not is_tl(reduction):
            continue
        for call in _reaching(kernel, reduction, bare):
            if call.lineno not in reported:
                reported.add(call.lineno)
                text = (
                    f"this masked load has no `other=`, and its undefined elements reach "
                    f"`{dotted(reduction.func)}` in line {reduction.lineno}."
                )
                yield Finding("no_other", call.lineno, text)


def _unfilled(expression: ast.expr) -> ast.Call | None:
    """Return the masked load without `other=` that an assigned expression is, casts aside."""
    node: ast.AST = expression
    while (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_call(node, "to")
    ):
        node = node.func.value
    if not (isinstance(node, ast.Call) and is_call(node, "load") and is_tl(node)):
        return None
    has_mask = keyword(node, "mask", 1) is not None
    return node if has_mask and keyword(node, "other", 2) is None else None


def _reaching(kernel: Kernel, reduction: ast.Call, bare: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """Yield the unfilled loads whose values flow into a reduction without a `where` between."""
    seen: set[str] = set()
    pending: list[ast.AST] = list(reduction.args[:2])
    while pending:
        node = pending.pop()
        if is_call(node, "where", "load"):
            call = _unfilled(node) if isinstance(node, ast.expr) else None
            if call is not None:
                yield call
            continue
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if node.id in bare:
                yield bare[node.id]
            pending += [e for e in kernel.defined_by.get(node.id, []) if not _holds_load(e)]
        pending += list(ast.iter_child_nodes(node))


def _holds_load(expression: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and is_call(n, "load") for n in ast.walk(expression))


def serial_loops(kernel: Kernel) -> Iterator[Finding]:
    """Yield long loops that load one element a step."""
    for loop in ast.walk(kernel.function):
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
            continue
        call = loop.iter
        if not is_call(call, "range") or len(call.args) > 2:
            continue
        steps = evaluate(call.args[-1], kernel.names)
        if steps and max(steps) <= SERIAL_STEPS:
            continue
        inside = [n for part in loop.body for n in ast.walk(part)]
        loads = [n for n in inside if isinstance(n, ast.Call) and is_call(n, "load") and is_tl(n)]
        index = dotted(loop.target)
        single = [n for n in loads if n.args and not kernel.blocks(n.args[0])]
        if loads and len(single) == len(loads) and any(_uses(kernel, n, index) for n in single):
            text = (
                f"this loop over `{ast.unparse(call.args[-1])}` loads one element a step: load "
                "a block with tl.arange and reduce it instead."
            )
            yield Finding("serial_loop", loop.lineno, text)


def _uses(kernel: Kernel, call: ast.Call, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in kernel.sources(call.args[0]))
