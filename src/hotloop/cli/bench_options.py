"""Options that only `bench` has; see `options.py` for those that it shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MAX_RUNS_PER_GPU = 16

SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help="kernelbench.")]
Levels = Annotated[str | None, typer.Option(help="Levels of the data set. [default: 1,2]")]
Problems = Annotated[
    str | None,
    typer.Option(help="Numbers in each level (1-20,33), or 1/19,2/40. [default: all]"),
]
Gpus = Annotated[str | None, typer.Option(help="How many GPUs (4), or which (0,1). [default: all]")]
RunsPerGpu = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_RUNS_PER_GPU,
        help="Runs at a time on each GPU, or on the CPU: one verifies while the models of the "
        "others think. [default: 3 with a model on GPUs, else 1]",
    ),
]
SharedBudget = Annotated[
    bool,
    typer.Option(
        "--shared-budget",
        help="Give the time that problems leave over to those with the most to gain.",
    ),
]
RetrySkipped = Annotated[
    bool, typer.Option("--retry-skipped", help="Try problems again that could not be loaded.")
]
ProblemBudget = Annotated[
    str | None, typer.Option(help="Wall clock of each problem: 45s, 15m. [default: 15m]")
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="KERNEL|SUITE",
        help="A kernel's file, or a suite's folder: each problem begins from its best verified "
        "kernel there.",
    ),
]
StartOnly = Annotated[
    bool,
    typer.Option(
        "--start-only", help="Verify the kernels of --start to the end, and search no further."
    ),
]
HeldOut = Annotated[
    str | None,
    typer.Option(help="Problems, named as above: no example crosses between them and the others."),
]
FullFinal = Annotated[
    bool,
    typer.Option(
        "--full-final",
        help="The full final tier: with sanitizers, other shapes and twice the rounds.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="The suite's folder; an existing suite goes on.")]
