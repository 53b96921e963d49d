"""The command line: the app, and how errors become exit codes.

Exit codes: 0 done and a kernel passed; 1 it did not; 2 the user's input is wrong; 3 the machine is
at fault; 4 an answer from outside is awaited; 130 stopped by a second Ctrl-C. Errors are one line
on stderr; `--debug` adds the traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from hotloop import __version__
from hotloop.cli import (
    audit,
    bench,
    bundle,
    doctor,
    judge,
    mcp,
    optimize,
    prompt,
    record,
    report,
    selftest,
    serve,
    show,
    verify,
)
from hotloop.errors import HotloopError

INTERRUPTED = 130
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The parent of all complaints about arguments; typer has no public name for it."""

app = typer.Typer(
    name="hotloop",
    help="Turn a PyTorch reference into a verified, faster GPU kernel.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # "rich" hides "[default: 15m]" and "[@URL]": styles to it
    no_args_is_help=False,
)
app.command("optimize")(optimize.optimize)
app.command("verify")(verify.verify)
app.command("audit")(audit.audit)
app.command("show")(show.show)
app.command("prompt")(prompt.prompt)
app.command("bench")(bench.bench)
app.command("report")(report.report)
app.command("serve")(serve.serve)
app.command("record")(record.record)
app.command("bundle")(bundle.bundle)
app.command("judge")(judge.judge)
app.command("mcp")(mcp.mcp)
app.command("doctor")(doctor.doctor)
app.command("selftest")(selftest.selftest)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hotloop {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Turn a PyTorch reference into a verified, faster GPU kernel."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [a for a in args if a != "--debug"]
    try:
        code = app(args=args, prog_name="hotloop", standalone_mode=False)
    except HotloopError as error:
        return _fail(str(error), error.exit_code, debug)
    except _USAGE_ERROR as error:
        return _fail(f"{_complaint(error)} (hotloop --help lists the options)", 2, debug)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return 1
    except OSError as error:  # what hotloop reads and writes itself has its own errors by now
        _abandon_stdout()
        if error.filename is None:
            return _fail(f"cannot write the output: {error}; check where stdout goes", 3, debug)
        return _fail(f"{error.filename}: {error.strerror}; check that it can be used", 3, debug)
    if code == INTERRUPTED:  # typer makes this code of a Ctrl-C, without a word
        return _fail("stopped; the same command goes on from here", INTERRUPTED, debug)
    return code if isinstance(code, int) else 0


def _abandon_stdout() -> None:
    # What could not be written must not be tried again when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complaint(error: Exception) -> str:
    # Only this method names the option; str() has the bare complaint.
    format_message = getattr(error, "format_message", None)
    return str(format_message() if format_message else error)


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    print(f"hotloop: {' '.join(lines)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
