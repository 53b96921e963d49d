"""What a suite's folder says, as the records of a report. Reads, takes no lock, writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hotloop import __version__
from hotloop.cli.report_problem import ReadProblem, read_problem
from hotloop.errors import ForeignRun
from hotloop.plan import BUILTIN
from hotloop.report import display
from hotloop.report.page import CPU, Fact, Page
from hotloop.suite.command import bench_command, not_recorded, short_names
from hotloop.suite.figures import figures_of
from hotloop.suite.folder import SUITE_FILE, SuiteRecord, read_suite
from hotloop.suite.recorded import recorded_run

WRITTEN_BY = f"hotloop {__version__}"
ENVIRONMENT = {
    "GPU": "gpu",
    "Driver": "driver",
    "CUDA": "cuda",
    "torch": "torch",
    "triton": "triton",
    "Python": "python",
}
"""What the judges said of their machines, by what the report calls it."""
OF_A_GPU = frozenset({"gpu", "driver", "cuda"})


def suite_page(folder: Path) -> Page:
    """Return the report of a suite.

    Raises:
        ForeignRun: there is none in the folder, a newer hotloop wrote it, or it is damaged.
        StoreError: it cannot be read.
    """
    record = read_suite(folder)
    try:
        asked, command = tuple(_asked(record)), bench_command(record, folder)
    except (ValueError, TypeError, AttributeError) as exc:
        raise ForeignRun(
            f"{folder / SUITE_FILE} is damaged: its options or limits are not those of a suite "
            f"({display.one_line(exc)}); restore it from a copy"
        ) from exc
    read = [
        read_problem(recorded_run(folder, record, member), member, record.troubles.get(member.name))
        for member in record.problems
    ]
    read.sort(key=lambda p: (p.row.column, p.row.run.level, p.row.run.problem_id))
    return Page(
        title=f"{record.suite}: {len(record.problems)} problems",
        facts=(*asked, *machine_facts(read)),
        command=command,
        command_note=not_recorded(record),
        figures=figures_of([p.row for p in read]),
        problems=tuple(p.page for p in read),
        written_by=WRITTEN_BY,
    )


def _asked(record: SuiteRecord) -> Iterable[Fact]:
    options = record.options
    levels = Counter(member.level for member in record.problems)
    told = ", ".join(f"{many} of level {level}" for level, many in sorted(levels.items()))
    yield Fact("Suite", f"{record.suite}, {told or 'no problems'}")
    yield from generator_facts(options)
    yield Fact("Budget of a problem", budget_words(record.limits))


def generator_facts(options: Mapping[str, Any]) -> Iterable[Fact]:
    """Yield who wrote the kernels, how the search went, and on what device."""
    if options.get("generator") == BUILTIN:
        yield Fact("Generator", "builtin: human-written templates and tuning, no model")
    else:
        yield Fact("Generator", f"the model {display.one_line(options.get('model'), limit=300)}")
    words = f"{options.get('strategy')}, writes {options.get('language')}"
    words += f", sees {options['sees']}" if options.get("sees") else ""
    words += ", shown verified kernels of other problems" if options.get("examples") else ""
    yield Fact("Strategy", display.one_line(f"{words}, seed {options.get('seed')}"))
    if apart := short_names(options.get("held_out") or ()):
        yield Fact("Held out", display.one_line(apart, limit=300))
    yield Fact("Device", display.one_line(options.get("device")))


def budget_words(limits: Mapping[str, Any]) -> str:
    """Return the limits of one run in words."""
    wall_s, usd = limits.get("wall_s"), limits.get("max_usd")
    words = [display.seconds(wall_s)] if wall_s is not None else []
    for name in ("candidates", "calls", "tokens"):
        most = limits.get(f"max_{name}")
        words += [f"at most {display.count(most)} {name}"] if most is not None else []
    words += [f"at most {display.dollars(usd)}"] if usd is not None else []
    return ", ".join(words) or "no limit"


def machine_facts(read: Sequence[ReadProblem]) -> Iterable[Fact]:
    """Yield where the kernels were judged, by what clock, and when."""
    infos = [p.page.info for p in read if p.page.info is not None]
    finals = [v for p in read for v in p.page.finals.values()]
    seen = [info.environment for info in infos] + [v.environment for v in finals]
    on_cpu = {p.page.device for p in read} == {CPU}
    yield from _environment(seen, without_gpu=on_cpu)
    tiers = (v.isolation for v in finals) if finals else (e.get("isolation") for e in seen)
    yield Fact("Isolation tier", _distinct(tiers))
    performed = [v.performance for v in finals if v.performance is not None]
    if on_cpu:
        yield Fact("Timer", "none: nothing is timed on a CPU")
    elif not performed:
        yield Fact("Timer", f"{display.NOT_MEASURED}: no kernel has passed the final tier")
    else:
        yield Fact("Timer", _distinct(p.timer for p in performed))
        yield Fact("Mode of the final tier", _distinct(v.mode for v in finals if v.passed))
    first = min((p.first_s for p in read if p.first_s is not None), default=None)
    last = max((p.last_s for p in read if p.last_s is not None), default=None)
    if first is not None and last is not None:
        yield Fact("Run", f"{_date(first)} to {_date(last)}")


def _environment(seen: Sequence[Mapping[str, Any]], *, without_gpu: bool) -> Iterable[Fact]:
    if without_gpu:
        yield Fact("GPU", "none: judged on a CPU")
    for label, key in ENVIRONMENT.items():
        if not (without_gpu and key in OF_A_GPU):
            yield Fact(label, _distinct(e.get(key) for e in seen))


def _distinct(values: Iterable[Any]) -> str:
    """Return the different values, the most frequent first."""
    known = Counter(display.one_line(v, limit=80) for v in values if v is not None)
    return ", ".join(value for value, _ in known.most_common()) or display.UNKNOWN


def _date(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
