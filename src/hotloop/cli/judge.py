"""`hotloop judge`: judge a bundle on this machine, with all its GPUs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options
from hotloop.cli.output import Output, check_file
from hotloop.cli.use_text import use_lines, use_record
from hotloop.cli.wording import plain
from hotloop.core.command_line import quoted
from hotloop.core.units import parse_duration_s
from hotloop.errors import ConfigError, Pending
from hotloop.verify import find_device
from hotloop.verify.bundle import read_bundle
from hotloop.verify.bundle_board import Judged
from hotloop.verify.bundle_judge import JudgeOptions, judge_bundle
from hotloop.verify.devices import gpu_names
from hotloop.verify.isolation_choice import choose_tier

_LINE_CHARACTERS = 300


def judge(
    bundle: Annotated[Path, typer.Option(metavar="FILE", help="What `hotloop bundle` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The verdict file. [default: BUNDLE.verdicts]"),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Stop after 45s, 9m, 1h; the rest stays pending.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(help="How many GPUs (4), or which (0,1). [default: all]")
    ] = None,
    device: options.Device = "auto",
    min_isolation: options.MinIsolation = None,
    log: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep what the judges say on stderr there.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Judge a bundle's candidates and write the verdicts into a file."""
    output = Output(as_json=json)
    limit_s = _seconds(budget)
    wanted = read_bundle(bundle)
    where = find_device(device)
    tier = min_isolation or api.DEFAULT_ISOLATION
    choose_tier(tier)  # before a file is made
    target = out if out is not None else bundle.with_name(f"{bundle.name}.verdicts")
    if target.resolve() == bundle.resolve():
        raise ConfigError(f"--out {target}: it is the bundle itself; name another file")
    check_file(target, like=f"{bundle.name}.verdicts")
    if log is not None:
        _make_folder(log)
    chosen = JudgeOptions(
        device=where,
        gpus=seats(where, gpus),
        min_isolation=tier,
        budget_s=limit_s,
        log_folder=log,
    )
    judges = f"{len(chosen.gpus)} GPU(s)" if where == "cuda" else "cpu"
    output.say(f"{len(wanted.items)} to judge of {len(wanted.problems)} problem(s) on {judges}")
    judged = judge_bundle(
        wanted, target, chosen, lambda line: output.say(plain(line, limit=_LINE_CHARACTERS))
    )
    text = "\n".join([*use_lines(judged.use, device=where), _closing(judged, target)])
    output.result(_record(judged, target), text)
    raise typer.Exit(Pending.exit_code if judged.pending else 0)


def seats(device: str, gpus: str | None) -> tuple[str | None, ...]:
    """Return for each judge the GPU that it gets, as `CUDA_VISIBLE_DEVICES` takes it.

    Raises:
        ConfigError: `gpus` is neither a number nor a list of GPUs that are there.
    """
    if device == "cpu":
        if gpus is not None:
            raise ConfigError("--gpus: there are none on --device cpu; leave it out")
        return (None,)
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [n for n in told.split(",") if n] if told else [str(i) for i in range(len(gpu_names()))]
    if gpus is None:
        return tuple(names)
    if "," in gpus:
        chosen = [name.strip() for name in gpus.split(",") if name.strip()]
        missing = [name for name in chosen if name not in names]
        if missing or not chosen:
            raise ConfigError(f"--gpus {gpus}: expected some of {','.join(names)}")
        return tuple(dict.fromkeys(chosen))
    if not gpus.isdecimal() or not 1 <= int(gpus) <= len(names):
        raise ConfigError(f"--gpus {gpus}: expected 1 to {len(names)}, or a list like 0,1")
    return tuple(names[: int(gpus)])


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    try:
        return parse_duration_s(budget)
    except ValueError as exc:
        raise ConfigError(f"--budget: {exc}") from exc


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"--log {folder}: expected a folder, got: {exc.strerror}") from exc


def _record(judged: Judged, target: Path) -> dict[str, object]:
    statuses = [verdict.status.value for verdict in judged.verdicts.verdicts]
    return {
        "out": str(target),
        "items": judged.items,
        "answered": judged.answered,
        "pending": judged.pending,
        "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
        "errors": list(judged.verdicts.errors),
        "use": use_record(judged.use),
    }


def _closing(judged: Judged, target: Path) -> str:
    statuses = [verdict.status.value for verdict in judged.verdicts.verdicts]
    told = ", ".join(f"{statuses.count(s)} {s}" for s in sorted(set(statuses))) or "no verdict"
    line = f"{judged.answered} of {judged.items} answered ({told})"
    if judged.verdicts.errors:
        line += f", {len(judged.verdicts.errors)} not judged because of an error"
    if judged.pending:
        line += f", {judged.pending} stay pending"
    option = quoted(["--verdicts", target])
    return f"{line}; {target}: take it in with the command of the run or suite and {option}"
