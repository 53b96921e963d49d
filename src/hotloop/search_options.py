"""The options of `hotloop.optimize` and `hotloop.verify`, as the library takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from hotloop.core.candidate import Candidate


class ProblemOptions(TypedDict, total=False):
    """What changes the problem; every option may be left out or None."""

    settings: Mapping[str, int | float | str] | None
    """Module-level constants of the problem file to replace."""
    data: str | Path | None
    """The KernelBench data set, for a problem named `kernelbench/LEVEL/ID`."""
    precision: str | None
    """`as_shipped`, `strict` or `tf32`: the precision policy, in place of the problem's own."""


class SearchOptions(ProblemOptions, total=False):
    """What changes the search; every option may be left out or None. Defaults: `hotloop.config`."""

    budget: str | float | None
    """Seconds, or text like `45s`, `15m`, `1h30m`; set-up is not counted."""
    device: str | None
    """`auto`, `cuda` or `cpu`. On `cpu` kernels are checked and compiled, never timed."""
    out: str | Path | None
    """The run's folder; by default `runs/NAME-HASH`, the same for the same arguments."""
    model: str | None
    """`builtin` (default), `PRESET:NAME[@URL]`, `dir:PATH` or `replay:FILE`: who writes kernels."""
    sees: str | None
    """`nothing`, `code`, `execution`, `performance` or `memory` (default): what a model is shown of
    earlier attempts."""
    language: str | None
    """`triton` (default) or `cuda`: what a model is asked to write."""
    start: str | Path | Candidate | None
    """A kernel to begin from: verified first, then improved."""
    start_only: bool | None
    """Verify `start`, at the final tier where there is one, and search no further: no model is
    asked, so `model` only says who wrote it."""
    max_candidates: int | None
    """Ends the search earlier, as do the limits below."""
    max_calls: int | None
    """Model calls that write a candidate."""
    max_tokens: int | None
    """Prompts and answers, reasoning included."""
    max_usd: float | None
    """Dollars; by default 5 where a model costs money."""
    judge: str | None
    """`local` (default), `ssh://[USER@]HOST[:PORT][/PATH/TO/PYTHON]`, or `bundle`: kernels are
    verified elsewhere, by files."""
    examples: Sequence[str | Path] | None
    """Folders of runs or suites whose verified kernels a model may be shown: the best one of the
    most alike other problem, in prompts for a new design."""
    verdicts: str | Path | None
    """What `hotloop judge` wrote for a bundle of this run."""
    close: bool | None
    """End the search with what is known: nothing is written, verified or awaited any more but the
    final check of the best. The same call without it goes on with the search."""
    no_wait: bool | None
    """End when only answers from outside are missing; the same call goes on."""
    strategy: str | None
    """A name in the entry points `hotloop.strategies`, or `pkg.mod:Attr`."""
    seed: int | None
    """Of the strategy."""
    min_isolation: str | None
    """`T0`, `T1` or `T2`: the cage that candidates run in."""
    parallel: int | None
    """Model calls at a time (4); with the built-in generator, builds beside a verification (2)."""
