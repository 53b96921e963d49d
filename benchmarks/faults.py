"""Three ways to spoil a correct kernel, so that early failures can be timed on every problem.

Each returns the source with one change: an import that the static rules refuse, a name that the
compiler does not know, or an output that is off.
"""

from __future__ import annotations

import ast
from collections.abc import Callable


def refused(source: str) -> str:
    """Return the source with an import that no kernel needs.

    Raises:
        ValueError: it does not import torch.
    """
    marker = "import torch\n"
    if marker not in source:
        raise ValueError("expected a line `import torch`")
    return source.replace(marker, f"import ctypes\n\n{marker}", 1)


def uncompilable(source: str) -> str:
    """Return the source with a store of a name that does not exist."""
    return _change_output(source, lambda value: "no_such_value")


def wrong(source: str) -> str:
    """Return the source with a store of twice the value and one more."""
    return _change_output(source, lambda value: f"({value}) * 2 + 1")


FAULTS: dict[str, Callable[[str], str]] = {
    "static": refused,
    "compile": uncompilable,
    "wrong": wrong,
}


def _change_output(source: str, change: Callable[[str], str]) -> str:
    """Replace the value of the `tl.store(pointers, value, ...)` that writes the output.

    That is the one with pointers called `out...`, else the last one of the file; without any, as in
    Gluon, the last `shared.store(value)`, which the copy engine takes out.

    Raises:
        ValueError: there is none.
    """
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    stores = [c for c in calls if ast.unparse(c.func) in ("tl.store", "gl.store")]
    named = [c for c in stores if ast.unparse(c.args[0]).startswith("out")]
    shared = [
        c
        for c in calls
        if isinstance(c.func, ast.Attribute) and c.func.attr == "store" and len(c.args) == 1
    ]
    found = named or stores or shared
    if not found:
        raise ValueError("expected a `tl.store` or a `shared.store` in the source")
    value = max(found, key=lambda node: node.lineno).args[-1 if found is shared else 1]
    text = ast.get_source_segment(source, value)
    if text is None:
        raise ValueError("expected a source that its own syntax tree can be found in")
    lines = source.splitlines(keepends=True)
    start = sum(map(len, lines[: value.lineno - 1])) + value.col_offset
    return source[:start] + change(text) + source[start + len(text) :]
