"""The exception tree.

    HotloopError
    +- ConfigError             the user's input is wrong: one line, exit code 2
    |  +- ForeignRun           a run folder of another problem, another kind, or a newer version
    +- ProblemError            the reference or its inputs are broken; never the candidate's fault
    |  +- UnsupportedOp        an operation that cannot be traced or lowered; names it and its line
    +- ProviderError           a model call failed
    +- InfraError              the machine is at fault: retried, never scored, never shown
    |  +- DeviceLost           no GPU, or it stopped answering
    |  +- WorkerDied           a judge or zygote ended without an answer
    |  +- WorkerTimeout        a judge or zygote did not answer within its deadline
    |  +- SandboxUnavailable   the isolation asked for cannot be had here
    |  +- ToolMissing          a compiler or library that the job needs is not installed
    |  +- RunHeld              another process holds the run folder
    +- StoreError              the journal is damaged or cannot be written

A bad candidate is data (a `Verdict`); a bad machine is an exception. Every message says what was
expected, what came, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class HotloopError(Exception):
    """The root of everything that hotloop raises on purpose."""

    exit_code: int = 3


class ConfigError(HotloopError):
    """The user's input is wrong: an option, a file, a name, a missing key."""

    exit_code = 2


class ForeignRun(ConfigError):
    """The output folder belongs to another problem, or a newer hotloop wrote it."""


class ProblemError(HotloopError):
    """The problem's reference or inputs are broken: nothing can be verified against it."""

    exit_code = 2


class UnsupportedOp(ProblemError):
    """An operation cannot be traced or lowered; the message names it and its line."""


class ProviderError(HotloopError):
    """A model call failed in a way that is not the candidate's fault."""


class InfraError(HotloopError):
    """The machine is at fault: retry on a fresh worker, then stop; never a verdict."""


class DeviceLost(InfraError):
    """There is no GPU where one is needed, or it stopped answering."""


class WorkerDied(InfraError):
    """A trusted worker process ended without an answer."""


class WorkerTimeout(InfraError):
    """A trusted worker process did not answer within its deadline."""


class SandboxUnavailable(InfraError):
    """The isolation tier asked for cannot be had on this machine."""


class ToolMissing(InfraError):
    """A compiler or library that the job needs is not installed."""


class RunHeld(InfraError):
    """Another process holds the run folder's lock."""


class StoreError(HotloopError):
    """The journal is damaged, read-only, or the disk is full."""


@contextmanager
def boundary(error: type[HotloopError], what: str) -> Iterator[None]:
    """Attribute whatever foreign exception escapes the block to `error`.

    Exceptions of hotloop's own tree pass unchanged: they already name their cause.
    """
    try:
        yield
    except HotloopError:
        raise
    except Exception as exc:  # noqa: BLE001  the one place where foreign errors get an owner
        raise error(f"{what}: {type(exc).__name__}: {exc}") from exc
