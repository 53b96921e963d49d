"""Run the problem's own code and attribute what goes wrong to it, with its line.

Whatever escapes from a problem file is a `ProblemError` of one line: the reference is trusted, but
it may be broken, and that must cost no token and blame no candidate.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from hotloop.core.problem import Problem
from hotloop.errors import HotloopError, ProblemError
from hotloop.worker.network_fault import network_hint


def source_filename(problem: Problem) -> str:
    """Return the file name that the problem's code runs under; tracebacks show it."""
    return f"{problem.name}.py"


@contextmanager
def user_code(problem: Problem, what: str) -> Iterator[None]:
    """Attribute whatever escapes the block to the problem, as one line with the file's line.

    `what` names the part that runs, for example `get_inputs()`.
    """
    try:
        yield
    except HotloopError:
        raise
    except (Exception, SystemExit) as exc:  # noqa: BLE001  user code may raise anything
        raise ProblemError(describe_failure(problem, what, exc)) from exc


def describe_failure(problem: Problem, what: str, exc: BaseException) -> str:
    """Return `name: what, line 12: ValueError: first line of the message`."""
    line = failing_line(problem, exc)
    where = f"{what}, line {line}" if line is not None else what
    message = next(iter(str(exc).strip().splitlines()), "")
    told = f"{problem.name}: {where}: {type(exc).__name__}" + (f": {message}" if message else "")
    return told + network_hint(exc)


def failing_line(problem: Problem, exc: BaseException) -> int | None:
    """Return the innermost line of the problem's file in the traceback; None if it has none."""
    if isinstance(exc, SyntaxError):
        return exc.lineno
    filename = source_filename(problem)
    frames = traceback.walk_tb(exc.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == filename]
    return lines[-1] if lines else None


def current_line(problem: Problem) -> int | None:
    """Return the line of the problem's file that is running now; None outside of it."""
    filename = source_filename(problem)
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
