"""The exception tree.

    HotloopError
    +- ConfigError             the user's input is wrong: one line, exit code 2
    |  +- ForeignRun           a run folder of another problem, another kind, or a newer version
    +- ProblemError            the reference or its inputs are broken; never the candidate's fault
    |  +- UnsupportedOp        an operation that cannot be traced or lowered; names it and its line
    +- ProviderError           a model call failed
    |  +- AuthError            the endpoint does not accept the key
    |  +- UnknownModel         the endpoint has no such model, or is no such endpoint
    |  +- RateLimited          too many calls; says when to come again
    |  +- QuotaExhausted       the account has no credit left
    |  +- ContextOverflow      the prompt does not fit the model's context
    |  +- RequestRejected      the endpoint does not accept the request as it is
    |  +- Refused              a filter blocked the prompt
    |  +- EndpointDown         unreachable, broken off, silent, or at fault itself
    |  +- BadReply             the answer is not what the protocol says
    |  +- ReplyTooLong         the answer is larger than anybody needs
    |  +- DeadlinePassed       the call's time is over
    |  +- Cancelled            the caller gave the call up
    |  +- NotRecorded          a recording holds no answer for this call
    |  +- SentTwice            a call was sent twice without an answer; not sent again
    +- Pending                 an answer from outside is awaited; exit code 4
    +- TurnGivenUp             the user stopped a run that waited for its turn on a GPU
    +- InfraError              the machine is at fault: retried, never scored, never shown
    |  +- DeviceLost           no GPU, or it stopped answering
    |  +- WorkerDied           a judge or zygote ended without an answer
    |  +- WorkerTimeout        a judge or zygote did not answer within its deadline
    |  +- SandboxUnavailable   the isolation asked for cannot be had here
    |  +- ToolMissing          a compiler or library that the job needs is not installed
    |  +- RunHeld              another process holds the run folder
    +- StoreError              the journal is damaged or cannot be written
    |  +- BlobDamaged          the file of one candidate is gone or is not what was stored

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


class AuthError(ProviderError):
    """The endpoint does not accept the key."""

    exit_code = 2


class UnknownModel(ProviderError):
    """The endpoint knows no such model, or the URL leads to no such endpoint."""

    exit_code = 2


class RateLimited(ProviderError):
    """The endpoint asks to wait."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """Seconds that the endpoint asked for; None where it did not say."""


class QuotaExhausted(ProviderError):
    """The account behind the key has no credit left; waiting does not help."""


class ContextOverflow(ProviderError):
    """The prompt and the answer's cap do not fit the model's context."""


class RequestRejected(ProviderError):
    """The endpoint does not accept the request as it is."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        """The parameter that the endpoint objects to, where it names one."""


class Refused(ProviderError):
    """A filter of the provider blocked the prompt: there is no answer."""


class EndpointDown(ProviderError):
    """The source of answers is unreachable, broke off, fell silent, or reports its own fault."""


class BadReply(ProviderError):
    """The endpoint answered something that is not the protocol it should speak."""


class ReplyTooLong(ProviderError):
    """The answer is larger than any kernel needs; it was cut off and thrown away."""


class DeadlinePassed(ProviderError):
    """No answer within the time that the call had."""


class Cancelled(ProviderError):
    """The caller gave the call up while it was under way."""


class NotRecorded(ProviderError):
    """The recording holds no answer for this call: it ends here."""


class SentTwice(ProviderError):
    """A call was sent twice and neither sending was answered or failed; it is given up."""


class Pending(HotloopError):
    """An answer from outside is awaited, and the caller did not want to wait for it."""

    exit_code = 4

    def __init__(
        self, message: str, *, waiting: tuple[str, ...] = (), notice: str = "", fault: str = ""
    ) -> None:
        super().__init__(message)
        self.waiting = waiting
        """The files to be answered."""
        self.notice = notice
        """What the user must know besides; empty where there is nothing."""
        self.fault = fault
        """What is wrong with the answer that is there, told each time; empty: none is there."""


class TurnGivenUp(HotloopError):
    """The user stopped the run while it waited for its turn on a GPU that others use too."""


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


class BlobDamaged(StoreError):
    """The file of one candidate is gone or is not what was stored; it may be written again."""


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
