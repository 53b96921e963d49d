"""`--precision NAME`: another precision policy than the problem's own.

It replaces that part of the policy and nothing else, also where the file states one: the option
wins, as `--set` does over the file's constants, and commands say so. The problem's hash covers its
policy, so it is another problem then.

Not here: 16-bit policies. They cast inputs and parameters, which a kernel must know of, so a file
states them.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.python_source import parse_python
from hotloop.errors import ConfigError
from hotloop.problems.native import stated_precision

AS_SHIPPED = "as_shipped"
CHOICES = (AS_SHIPPED, "strict", "tf32")
"""What may be chosen for every kind of problem."""


def with_precision(problem: Problem, precision: str | None) -> Problem:
    """Return the problem under another precision policy; None leaves its own.

    Raises:
        ConfigError: there is no such policy, or only a file can state it.
    """
    if precision is None:
        return problem
    if precision not in CHOICES:
        raise ConfigError(f"--precision: expected one of {', '.join(CHOICES)}, got {precision!r}")
    return replace(problem, policy=replace(problem.policy, precision=precision))


def asked_precision(problem: Problem) -> str | None:
    """Return what `--precision` must have been for this policy; None: the problem's own."""
    if problem.kind is not ProblemKind.NATIVE:
        return problem.policy.precision if problem.policy.precision != AS_SHIPPED else None
    return problem.policy.precision if replaced_precision(problem) is not None else None


def replaced_precision(problem: Problem) -> str | None:
    """Return the precision that the problem's file states where it is judged by another."""
    if problem.kind is not ProblemKind.NATIVE:
        return None
    stated = stated_precision(parse_python(problem.source), problem.name)
    return stated if stated != problem.policy.precision else None


def describe_precision(problem: Problem) -> str:
    """Return one line that says what `--precision` chose, and what it replaced."""
    stated = replaced_precision(problem)
    more = f"; the file states {stated}" if stated is not None else ""
    return f"precision: {problem.policy.precision}, by --precision{more}"
