"""Three ways to spoil a correct kernel, so that early failures can be timed on every problem.

Each returns the source with one change: an import that the static rules refuse, a name that the
compiler does not know, or an output that is off.
"""

from __future__ import annotations

import ast
from collections.abc import Callable


def refused(source: str) -> str:
    """Return the source with an import that no kernel needs."""
    marker = "import torch\n"
    if marker not in source:
        raise ValueError("expected a line `import torch`")
    return source.replace(marker, f"import ctypes\n\n{marker}", 1)


def uncompilable(source: str) -> str:
    """Return the source with a store of a name that does not exist."""
    return _change_last_store(source, lambda value: "no_such_value")


def wrong(source: str) -> str:
    """Return the source with a store of twice the value and one more."""
    return _change_last_store(source, lambda value: f"({value}) * 2 + 1")


FAULTS: dict[str, Callable[[str], str]] = {
    "static": refused, "compile": uncompilable, "wrong": wrong,
}  # fmt: skip


def _change_last_store(source: str, change: Callable[[str], str]) -> str:
    """Replace the value of the last `tl.store(pointers, value, ...)`.

    Raises:
        ValueError: there is none.
    """
    stores = [
        node for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.store"
    ]  # fmt: skip
    if not stores:
        raise ValueError("expected a `tl.store` in the source")
    value = max(stores, key=lambda node: node.lineno).args[1]
    text = ast.get_source_segment(source, value)
    assert text is not None and value.end_lineno is not None and value.end_col_offset is not None
    lines = source.splitlines(keepends=True)
    start = sum(map(len, lines[: value.lineno - 1])) + value.col_offset
    return source[:start] + change(text) + source[start + len(text) :]
