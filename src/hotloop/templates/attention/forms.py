"""Integer forms in q and kv: affine, or the smallest or largest of several forms.

`clamp(q, 3, 60) - kv` is affine but for its ends. Minimum and maximum distribute over sums, so that
such an expression becomes nested minima and maxima of affine forms, and a comparison of it a
conjunction or disjunction of affine comparisons. None stands for a form that is not known: beside
it, the other parts of a minimum or maximum still say something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hotloop.core.graph import Arg, Node
from hotloop.templates.analysis import PROGRAM_AXES, ScalarGraph
from hotloop.templates.attention.span import Affine

MAX_LEAVES = 16
"""Forms of more affine parts are not looked at: their regions would be long, not tight."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The smallest or largest of several forms."""

    largest: bool
    parts: tuple[Form, ...]


Form = Affine | Fold | None


def plus(a: Form, b: Form) -> Form:
    """Return a + b."""
    if isinstance(a, Fold):
        return Fold(a.largest, tuple(plus(part, b) for part in a.parts))
    if isinstance(b, Fold):
        return Fold(b.largest, tuple(plus(a, part) for part in b.parts))
    return None if a is None or b is None else a.plus(b)


def times(form: Form, factor: int) -> Form:
    """Return factor * form."""
    if not isinstance(form, Fold):
        return None if form is None else form.times(factor)
    largest = form.largest if factor >= 0 else not form.largest
    return Fold(largest, tuple(times(part, factor) for part in form.parts))


def leaves(form: Form) -> int:
    """Return how many affine forms it is made of."""
    return sum(leaves(part) for part in form.parts) if isinstance(form, Fold) else 1


class FormReader:
    """Reads the forms of a mask's integer expressions."""

    def __init__(self, mask: ScalarGraph) -> None:
        self._mask = mask

    def form(self, arg: Arg) -> Form:
        """Return the form of an argument; None where it has none."""
        number = self._mask.constant(arg)
        if number is not None:
            is_whole = math.isfinite(number) and float(number).is_integer()
            return Affine(constant=int(number)) if is_whole else None
        if arg.node is None:
            return None
        node = self._mask.node[arg.node]
        if node.op == "index_q":
            return Affine(query=1)
        if node.op == "index_kv":
            return Affine(key=1)
        combined = self._operation(node)
        if combined is not None:
            return combined if leaves(combined) <= MAX_LEAVES else None
        if self._mask.axes[node.name] <= PROGRAM_AXES and node.dtype.startswith(("int", "uint")):
            return Affine(scalars=((1, node.name),))
        return None

    def _operation(self, node: Node) -> Form:
        if node.op == "cast":
            exact = node.dtype in ("int32", "int64", "float32", "float64")
            return self.form(node.args[0]) if exact else None
        if node.op == "clamp":
            return self._clamp(node)
        if node.op not in ("add", "sub", "mul", "neg", "abs", "minimum", "maximum"):
            return None
        forms = [self.form(arg) for arg in node.args]
        first, last = forms[0], forms[-1]
        match node.op:
            case "neg":
                return times(first, -1)
            case "abs":
                return Fold(True, (first, times(first, -1)))
            case "minimum" | "maximum":
                return Fold(node.op == "maximum", (first, last))
            case "mul":
                return _product(first, last)
        return plus(first, last if node.op == "add" else times(last, -1))

    def _clamp(self, node: Node) -> Form:
        """Return min(max(x, low), high), either end of which may be absent."""
        result = self.form(node.args[0])
        for position, largest in ((1, True), (2, False)):
            end = node.args[position] if position < len(node.args) else Arg()
            if end.node is not None or end.value is not None:
                result = Fold(largest, (result, self.form(end)))
        return result


def _product(a: Form, b: Form) -> Form:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Affine) and one == Affine(constant=one.constant):
            return times(other, one.constant)
    return None
