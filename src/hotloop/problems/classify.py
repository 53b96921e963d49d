"""Tell what kind of problem a file states, from its name and syntax tree; nothing is run.

A `.txt` or `.md` file is a prompt. A Python file is a KernelBench problem when it has `Model`, a
native one when it also states workloads, a policy, tolerances or gradients, and an attention
problem when it has a `score_mod` or `mask_mod`, or attention sizes and neither (plain attention).
"""

from __future__ import annotations

import ast
from enum import StrEnum
from pathlib import Path

from hotloop.core import python_source
from hotloop.errors import ConfigError
from hotloop.problems.constants import bound_names

NATIVE_NAMES = frozenset({"workloads", "policy", "tolerances", "grad"})
"""Top-level names that a native file may have and a KernelBench file has not."""

ATTENTION_SIZES = ("B", "H", "S", "D")
"""The sizes that an attention file must state."""


class FileKind(StrEnum):
    """What a problem file is."""

    KERNELBENCH = "kernelbench"
    NATIVE = "native"
    ATTENTION = "attention"
    PROMPT = "prompt"


def classify(path: Path) -> FileKind:
    """Return the kind of the problem file at `path`.

    Raises:
        ConfigError: the suffix is unknown, it is no Python, or it states no problem.
    """
    if path.suffix in (".txt", ".md"):
        return FileKind.PROMPT
    if path.suffix != ".py":
        got = repr(path.suffix) if path.suffix else "none"
        raise ConfigError(f"{path}: expected a file ending in .py, .txt or .md, got {got}")
    return classify_tree(parse_python(read_text(path), path.name), path.name)


def classify_tree(tree: ast.Module, name: str) -> FileKind:
    """Return the kind of a parsed Python problem file called `name`.

    Raises:
        ConfigError: it states no problem; the message says what each kind needs.
    """
    names = set(bound_names(tree))
    if "Model" in names:
        return FileKind.NATIVE if names & NATIVE_NAMES else FileKind.KERNELBENCH
    if names & {"score_mod", "mask_mod"} or names.issuperset(ATTENTION_SIZES):
        return FileKind.ATTENTION
    raise ConfigError(
        f"{name}: expected a problem and found none: either `class Model`, `get_inputs()` and "
        "`get_init_inputs()`, or `score_mod`/`mask_mod` with the sizes B, H, S, D"
    )


def read_text(path: Path) -> str:
    """Return the text of a problem file.

    Raises:
        ConfigError: it is missing, a folder, or no UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: expected UTF-8 text: {exc.reason} at {exc.start}") from exc


def parse_python(text: str, name: str) -> ast.Module:
    """Return the syntax tree of `text`.

    Raises:
        ConfigError: it is no Python; the message has the line.
    """
    try:
        return python_source.parse_python(text)
    except python_source.Unparsable as exc:
        raise ConfigError(f"{name}: no valid Python: {exc}") from exc
    except SyntaxError as exc:
        raise ConfigError(f"{name} line {exc.lineno}: no valid Python: {exc.msg}") from exc
