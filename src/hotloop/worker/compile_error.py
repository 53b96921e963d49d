"""The first error of a Triton compilation, with the candidate's line that it is about."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITCallable

from hotloop.worker.fake_launch import FailedCompile

MAX_MESSAGE_CHARS = 2000

_ASSEMBLER_ERROR = re.compile(r"^\S+ [^,\n]*, line (\d+); error\s*:\s*(.*)$", re.MULTILINE)


def describe_compile_error(failed: FailedCompile, path: Path) -> dict[str, Any]:
    """Return a refusal of the compiler as plain values.

    Besides `kind`, `type`, `message` and `kernel`: `line` (in the candidate's file, from 1),
    `column` (from 1) and `excerpt` (the source line and a caret below it), where the compiler says;
    the message then has all three.
    """
    described: dict[str, Any] = {
        "kind": "compile_error",
        **describe_refusal(failed.error, path),
        "kernel": failed.name,
        "constexprs": failed.constexprs,
    }
    if "excerpt" not in described and failed.diagnostics:
        shown = _first_diagnostic(failed.diagnostics) or described["message"]
        described["message"] = shown.replace(f"{path.parent}{os.sep}", "")
    return described


def describe_refusal(error: BaseException, path: Path) -> dict[str, Any]:
    """Return `type` and `message` of what the compiler raised, and the place in `path` it names."""
    innermost = _innermost(error)
    message = _message(innermost)[:MAX_MESSAGE_CHARS]
    if isinstance(innermost, CompilationError):
        position = _position(innermost, path)
    else:
        position = _first_use(innermost, path)
    return {
        "type": type(innermost).__name__,
        "message": _with_position(message, position, path),
        **position,
    }


def describe_out_of_resources(error: OutOfResources, kernel: str) -> dict[str, Any]:
    """Return the refusal of a kernel that asks a block for more than sm_90 has."""
    shared = error.name == "shared memory"
    unit = "bytes of " if shared else ""
    return {
        "kind": "out_of_shared_memory" if shared else "out_of_resources",
        "type": type(error).__name__,
        "message": (
            f"kernel {kernel} needs {error.required} {unit}{error.name} per "
            f"block, sm_90 has {error.limit}; use smaller blocks or fewer stages"
        ),
        "kernel": kernel,
        "needed_bytes": int(error.required),
        "available_bytes": int(error.limit),
    }


def _innermost(error: BaseException) -> BaseException:
    """Return the deepest compilation error: a caller's error wraps that of the function called."""
    deepest = error
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
        if isinstance(error, CompilationError):
            deepest = error
    return deepest


def _message(error: BaseException) -> str:
    if isinstance(error, PTXASError):
        return _assembler_errors(str(error)) or "the assembler failed without naming an error"
    if not isinstance(error, CompilationError):
        return str(error)
    if error.error_message:
        return str(error.error_message)
    cause = error.__cause__
    return f"{type(cause).__name__}: {cause}" if cause is not None else str(error)


def _assembler_errors(log: str) -> str:
    """Return the errors of an assembler's log without the names of its temporary files."""
    found = _ASSEMBLER_ERROR.findall(log)
    return "\n".join(f"PTX line {line}: {text.strip()}" for line, text in found)


def _first_diagnostic(text: str) -> str:
    """Return the first line that MLIR or LLVM marked as an error, and the one after it."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if "error:" in line:
            return "\n".join(lines[i : i + 2])[:MAX_MESSAGE_CHARS]
    return ""


def _with_position(message: str, position: dict[str, Any], path: Path) -> str:
    if "excerpt" not in position:
        return message
    place = f"{path.name}:{position['line']}" if "line" in position else path.name
    return f"{place}: {message}\n{position['excerpt']}"


def _position(error: CompilationError, path: Path) -> dict[str, Any]:
    line, column = getattr(error.node, "lineno", None), getattr(error.node, "col_offset", None)
    if error.src is None or line is None or column is None:
        return {}
    lines = error.src.split("\n")
    if not 0 < line <= len(lines):
        return {}
    text = lines[line - 1]
    position: dict[str, Any] = {"column": column + 1, "excerpt": f"{text}\n{' ' * column}^"}
    first = _first_line(error.src, path)
    if first is not None:
        position["line"] = first + line - 1
    return position


def _first_use(error: BaseException, path: Path) -> dict[str, Any]:
    """Return where a file first uses the attribute that a module lacks.

    Triton looks names up before it compiles, to hash what a kernel uses; that error has no place.
    """
    if not isinstance(error, AttributeError) or not isinstance(error.obj, ModuleType):
        return {}
    use = re.compile(rf"\.\s*{re.escape(str(error.name))}\b")
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if found := use.search(text):
            column = found.start() + 1
            excerpt = f"{text}\n{' ' * (column - 1)}^"
            return {"line": number, "column": column, "excerpt": excerpt}
    return {}


def _first_line(source: str, path: Path) -> int | None:
    """Return the line of the file at which the jitted function with this source begins."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) != os.fspath(path):
            continue
        for value in vars(module).values():
            function = value
            while not isinstance(function, JITCallable) and hasattr(function, "fn"):
                function = function.fn  # under autotuner and heuristics
            if isinstance(function, JITCallable) and function.src == source:
                decorators = next(
                    i for i, line in enumerate(function.raw_src) if line.lstrip().startswith("def ")
                )
                return int(function.starting_line_number) + decorators
    return None
