"""Options that several commands share, with one wording each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotloop.problems import parse_settings

Problem = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help="A problem file, or kernelbench/LEVEL/ID with --data."),
]
Device = Annotated[str, typer.Option(help="auto, cuda or cpu. On cpu nothing is timed.")]
Data = Annotated[
    Path | None,
    typer.Option(envvar="HOTLOOP_KERNELBENCH", help="The KernelBench data set."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V,...", help="Replace constants of the problem file."),
]
MinIsolation = Annotated[
    str | None,
    typer.Option(help="T0, T1 or T2: the cage of candidates; see SECURITY.md. [default: T1]"),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, text on stderr.")]


def settings_of(given: list[str] | None) -> dict[str, int | float | str]:
    """Return the settings of all `--set` options together.

    Raises:
        ConfigError: one is no K=V, or a name is set twice.
    """
    return parse_settings(",".join(given or []))
