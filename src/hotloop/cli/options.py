"""Options that several commands share, with one wording each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hotloop.errors import ConfigError
from hotloop.problems import is_kernelbench_name, parse_settings

DATA_VARIABLE = "HOTLOOP_KERNELBENCH"
Problem = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help="A problem file, or kernelbench/LEVEL/ID with --data."),
]
Device = Annotated[str, typer.Option(help="auto, cuda or cpu. On cpu nothing is timed.")]
Data = Annotated[
    Path | None,
    typer.Option(envvar=DATA_VARIABLE, help="The KernelBench data set."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V,...", help="Replace constants of the problem file."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="as_shipped, strict or tf32: by which kernels and baselines are judged. [default: the "
        "problem's own; KernelBench: as_shipped]",
    ),
]
MinIsolation = Annotated[
    str | None,
    typer.Option(help="T0, T1 or T2: the cage of candidates; see SECURITY.md. [default: T1]"),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Who writes kernels: builtin, PRESET:NAME[@URL], dir:PATH or replay:FILE. "
        "[default: builtin]",
    ),
]
Start = Annotated[
    Path | None, typer.Option(metavar="KERNEL", help="A .py or .cu file to begin from.")
]
Language = Annotated[
    str | None, typer.Option(help="triton, gluon or cuda: what a model writes. [default: triton]")
]
Judge = Annotated[
    str | None,
    typer.Option(help="Where kernels are verified: local, ssh://HOST or bundle. [default: local]"),
]
Budget = Annotated[
    str | None,
    typer.Option(help="Wall clock: 45s, 15m, 1h30m; a bare number is seconds. [default: 15m]"),
]
MaxCandidates = Annotated[int | None, typer.Option(help="Stop after so many.")]
MaxCalls = Annotated[int | None, typer.Option(help="Stop after so many model calls.")]
MaxTokens = Annotated[
    int | None, typer.Option(help="Stop after so many tokens, prompts and reasoning included.")
]
MaxUsd = Annotated[
    float | None, typer.Option(help="Stop after so many dollars. [default: 5 where it costs]")
]
Strategy = Annotated[
    str | None,
    typer.Option(
        help="With a model: hybrid, refine, sample; builtin: tune, random. [default: hybrid, tune]"
    ),
]
Sees = Annotated[
    str | None,
    typer.Option(
        help="What a model is shown of earlier attempts: nothing, code, execution, performance, "
        "memory; each has those before it. [default: memory]"
    ),
]
Seed = Annotated[int | None, typer.Option(help="Of the strategy. [default: 0]")]
Parallel = Annotated[
    int | None,
    typer.Option(help="Model calls at a time; builtin: builds. [default: 4; builtin: 2]"),
]
Examples = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER",
        help="Runs or suites whose verified kernels a model may be shown, as examples; repeatable.",
    ),
]
Close = Annotated[
    bool,
    typer.Option("--close", help="End the search with what is known; only the final check is due."),
]
NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="End with code 4 when only answers from outside are missing."),
]
Verdicts = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Take in what `hotloop judge` wrote for this run."),
]
Out = Annotated[Path | None, typer.Option(help="The run's folder; an existing run goes on.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, text on stderr.")]


def settings_of(given: list[str] | None) -> dict[str, int | float | str]:
    """Return the settings of all `--set` options together.

    Raises:
        ConfigError: one is no K=V, or a name is set twice.
    """
    return parse_settings(",".join(given or []))


def data_of(problem: str, data: Path | None) -> Path | None:
    """Return the data set that a problem is read from; a file is read from none.

    Raises:
        ConfigError: `--data` names one for a problem that is a file.
    """
    if is_kernelbench_name(problem) or not Path(problem).is_file():
        return data
    if is_given(data):
        raise ConfigError(
            f"--data: {problem} is a file and is read from no data set; drop --data, or name a "
            "problem of the set: kernelbench/LEVEL/ID"
        )
    return None


def is_given(data: Path | None) -> bool:
    """Whether a data set was named on the command line: the environment's is for all commands."""
    told = os.environ.get(DATA_VARIABLE)
    return data is not None and (not told or data != Path(told))
