"""Find kernels that tune themselves: honest, but paid for again by every verification.

They run as they are. Each process that checks such a kernel tries its configurations first; that is
no part of the kernel's time, but of the run's. Declared `TUNABLES` are swept once instead. Nothing
is rewritten into them: the tuner skips configurations that do not fit the GPU and chooses anew for
each `key`, which a space of constants cannot say.
"""

from __future__ import annotations

import ast

from hotloop.core.python_source import dotted
from hotloop.prompts.findings import Finding
from hotloop.prompts.programs import is_kernel


def autotuned(tree: ast.Module) -> list[Finding]:
    """Return a finding for each kernel with several configurations, or an unknown number."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not is_kernel(node):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and dotted(decorator.func).endswith("autotune"):
                count = _configurations(decorator)
                if count is None or count > 1:
                    found.append(Finding("autotune", decorator.lineno, _told(count)))
    return found


def _configurations(decorator: ast.Call) -> int | None:
    """Return how many are listed; None where that cannot be read."""
    keywords = {keyword.arg: keyword.value for keyword in decorator.keywords}
    listed = decorator.args[0] if decorator.args else keywords.get("configs")
    if not isinstance(listed, (ast.List, ast.Tuple)):
        return None
    return None if any(isinstance(e, ast.Starred) for e in listed.elts) else len(listed.elts)


def _told(count: int | None) -> str:
    number = "its" if count is None else f"its {count}"
    return (
        f"on a GPU `triton.autotune` tries {number} configurations again in every check: set-up "
        "time that this run pays for; write one configuration as module constants and list the "
        "other values in `TUNABLES`, which are swept once"
    )
