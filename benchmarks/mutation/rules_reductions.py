"""Reductions: identities, axes, accumulators, and what online softmax carries from tile to tile."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import VALUE, Site, language_call, names_in
from benchmarks.mutation.writing import argument, renamed, replaced, text

AT_VALUES = frozenset({VALUE})
REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "xor_sum")


def _is_infinity(node: ast.AST) -> bool:
    return ast.unparse(node) in ("float('-inf')", "float('inf')", "-float('inf')")


@BOOK.add("identity_zero", "identities", ast.Call)
def identity_zero(node: ast.AST, site: Site) -> Iterator[str]:
    """Start a maximum, or fill a masked score, with zero."""
    holder = site.parent
    if _is_infinity(node) and not isinstance(holder, (ast.keyword, ast.Compare)):
        yield "0.0"


@BOOK.add("identity_finite", "identities", ast.Call)
def identity_finite(node: ast.AST, site: Site) -> Iterator[str]:
    """Start a maximum, or fill a masked score, with a number that values may go beyond."""
    if _is_infinity(node) and not isinstance(site.parent, (ast.keyword, ast.Compare)):
        yield "-10.0" if "-" in ast.unparse(node) else "10.0"


@BOOK.add("accumulator_start", "identities", ast.Call)
def accumulator_start(node: ast.AST, site: Site) -> Iterator[str]:
    """Start a sum with one."""
    if isinstance(node, ast.Call) and language_call(node) == "zeros" and node.args:
        dtype = argument(node, 1, "dtype")
        yield f"tl.full({text(node.args[0])}, 1, {text(dtype) if dtype else 'tl.float32'})"


@BOOK.add("scalar_start", "identities", ast.Assign)
def scalar_start(node: ast.AST, site: Site) -> Iterator[str]:
    """Start a scalar sum or product with the other's identity."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        swapped = {0.0: "1.0", 1.0: "0.0"}
        if type(node.value.value) is float and node.value.value in swapped:
            yield f"{ast.unparse(node.targets[0])} = {swapped[node.value.value]}"


@BOOK.add("accumulator_overwritten", "accumulators", ast.AugAssign)
def accumulator_overwritten(node: ast.AST, site: Site) -> Iterator[str]:
    """Keep the last tile only."""
    if isinstance(node, ast.AugAssign) and site.loop:
        yield f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"


@BOOK.add("accumulator_sign", "accumulators", ast.AugAssign)
def accumulator_sign(node: ast.AST, site: Site) -> Iterator[str]:
    """Subtract instead of adding."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield f"{ast.unparse(node.target)} -= {ast.unparse(node.value)}"


@BOOK.add("accumulation_twice", "accumulators", ast.AugAssign)
def accumulation_twice(node: ast.AST, site: Site) -> Iterator[str]:
    """Add a tile twice."""
    if isinstance(node, ast.AugAssign):
        yield f"{ast.unparse(node)}\n{ast.unparse(node)}"


@BOOK.add("statement_deleted", "accumulators", ast.Assign, ast.AugAssign)
def statement_deleted(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out an update of a name that has a value already."""
    if isinstance(node, ast.AugAssign):
        yield ""
    elif isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0])
        again = [n for n in ast.walk(site.function) if isinstance(n, (ast.Assign, ast.AugAssign))]
        before = [n for n in again if n.lineno < node.lineno and target in names_in(n)]
        if before and isinstance(node.targets[0], ast.Name):
            yield ""


@BOOK.add("updated_too_early", "accumulators", ast.Assign, ast.AugAssign)
def updated_too_early(node: ast.AST, site: Site) -> Iterator[str]:
    """Update a name before it is read: the new maximum for the old one."""
    body = getattr(site.parent, site.path[-1][0], None)
    at = site.path[-1][1]
    if not isinstance(body, list) or at is None or not site.loop:
        return
    assert isinstance(node, (ast.Assign, ast.AugAssign))
    written = names_in(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    for later in body[at + 1 : at + 4]:
        if isinstance(later, ast.Assign) and isinstance(later.targets[0], ast.Name):
            needs = set(names_in(later.value))
            if later.targets[0].id in names_in(node.value) and not needs & set(written):
                yield f"{ast.unparse(later)}\n{ast.unparse(node)}"


@BOOK.add("rescale_dropped", "accumulators", ast.BinOp)
def rescale_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave out the factor that carries an accumulator over to a new maximum."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and site.loop):
        return
    statement = next((p for p in reversed(site.parents) if isinstance(p, ast.stmt)), None)
    written = names_in(statement.targets[0]) if isinstance(statement, ast.Assign) else []
    if isinstance(node.left, ast.Name) and node.left.id in written:
        yield node.left.id


@BOOK.add("axis_swapped", "axes", ast.Call)
def axis_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Reduce along the other dimension."""
    if isinstance(node, ast.Call) and language_call(node) in REDUCTIONS:
        axis = argument(node, 1, "axis")
        if isinstance(axis, ast.Constant) and axis.value in (0, 1):
            yield replaced(node, 1, "axis", str(1 - axis.value))


@BOOK.add("reduction_swapped", "axes", ast.Call)
def reduction_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Take another reduction: minimum for maximum, maximum for sum."""
    others = {
        "max": ("min", "sum"), "min": ("max",), "sum": ("max",),
        "argmax": ("argmin",), "argmin": ("argmax",), "cumsum": ("cumprod",),
        "maximum": ("minimum",), "minimum": ("maximum",),
    }  # fmt: skip
    if isinstance(node, ast.Call):
        for other in others.get(language_call(node) or "", ()):
            yield renamed(node, f"tl.{other}")


@BOOK.add("scan_reversed", "axes", ast.Call)
def scan_reversed(node: ast.AST, site: Site) -> Iterator[str]:
    """Run a scan from the other end."""
    if isinstance(node, ast.Call) and language_call(node) in ("cumsum", "cumprod"):
        if argument(node, 2, "reverse") is None:
            yield f"{ast.unparse(node)[:-1]}, reverse=True)"
        else:
            yield f"tl.{language_call(node)}({text(node.args[0])}, 0)"


@BOOK.add("scan_exclusive", "axes", ast.Call)
def scan_exclusive(node: ast.AST, site: Site) -> Iterator[str]:
    """Leave an element out of its own running sum."""
    if isinstance(node, ast.Call) and language_call(node) == "cumsum":
        yield f"({ast.unparse(node)} - {text(node.args[0])})"


@BOOK.add("dot_accumulator_dropped", "products", ast.Call)
def dot_accumulator_dropped(node: ast.AST, site: Site) -> Iterator[str]:
    """Keep the last tile's product only."""
    if isinstance(node, ast.Call) and language_call(node) == "dot" and len(node.args) == 3:
        args = [ast.unparse(a) for a in node.args[:2]] + [ast.unparse(k) for k in node.keywords]
        yield f"tl.dot({', '.join(args)})"


@BOOK.add("dot_operands_swapped", "products", ast.Call)
def dot_operands_swapped(node: ast.AST, site: Site) -> Iterator[str]:
    """Multiply in the other order."""
    if isinstance(node, ast.Call) and language_call(node) == "dot":
        args = [ast.unparse(a) for a in node.args]
        rest = args[2:] + [ast.unparse(k) for k in node.keywords]
        yield f"tl.dot({', '.join([args[1], args[0], *rest])})"


@BOOK.add("dot_transposed", "products", ast.Call)
def dot_transposed(node: ast.AST, site: Site) -> Iterator[str]:
    """Transpose an operand."""
    if isinstance(node, ast.Call) and language_call(node) == "dot":
        for position in (0, 1):
            operand = text(node.args[position])
            turned = operand[:-2] if operand.endswith(".T") else f"tl.trans({operand})"
            yield replaced(node, position, "", turned)
