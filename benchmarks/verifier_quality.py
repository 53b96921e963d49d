"""Merge what was measured of the verifier into one file, and write its numbers into the page.

    make verifier-quality                          benchmarks/results/verifier_quality.json, page
    python -m benchmarks.verifier_quality --check  exit 1 when file or page is not what it would be

Each figure keeps the name of the file that it comes from, with its machine, versions and commit. A
file that is not there is named as missing; nothing stands in for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.readme import with_section
from benchmarks.results_file import RESULTS, ROOT, Row, write_results
from benchmarks.verifier_quality_page import BEGIN, END, section
from benchmarks.verifier_quality_targets import TARGETS, kept

NAME = "verifier_quality.json"
PAGE = ROOT / "docs" / "verifier.md"
CPU = "_cpu.json"
ENVIRONMENT = ("gpu", "driver", "cuda", "torch", "triton", "python", "isolation", "device")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of results file."""

    name: str
    pattern: str
    """Of its name; that of a GPU stands for any model of GPU."""
    command: str
    """That makes it."""
    on_gpu: bool | None = None
    """Where two kinds share a pattern: whether the name is not that of the CPU's file."""

    @property
    def example(self) -> str:
        """Return a name of such a file, to say that there is none."""
        return self.pattern.replace("*", "cpu" if self.on_gpu is False else "GPU")

    def files(self, folder: Path) -> list[Path]:
        """Return the files of this kind that are there."""
        found = sorted(folder.glob(self.pattern))
        return [p for p in found if self.on_gpu is None or p.name.endswith(CPU) != self.on_gpu]


KINDS = (
    Kind("attacks_cpu", "attacks_*.json", 'make bench-attacks ARGS="--device cpu"', False),
    Kind("attacks_gpu", "attacks_*.json", "make bench-attacks", True),
    Kind("honest", "honest_*.json", "make bench-honest"),
    Kind("mutation_cpu", "verifier_quality_*.json", "make bench-mutation", False),
    Kind("mutation_gpu", "verifier_quality_*.json", "make bench-mutation-gpu", True),
    Kind("audit", "audit_*.json", "make bench-audit"),
    Kind("timing", "timing_*.json", "make bench-timing"),
    Kind("final_cost", "final_cost_*.json", "make bench-final"),
    Kind("throughput", "verify_throughput_*.json", "make bench-verify"),
    Kind("cage", "isolation*.json", "make bench-isolation"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results files")
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args(argv)
    path: Path = args.results / NAME
    try:
        rows = merged(args.results)
        summary = summarise(rows)
        old = args.page.read_text(encoding="utf-8")
        new = with_section(old, section(rows, summary), BEGIN, END)
    except (OSError, ValueError) as exc:
        print(f"verifier_quality: {exc}", file=sys.stderr)
        return 2
    if args.check:
        stale = new != old or not is_written(path, rows, summary)
        print("not up to date: make verifier-quality" if stale else "up to date")
        return 1 if stale else 0
    write_results(path, command="make verifier-quality", environment={}, rows=rows, summary=summary)
    args.page.write_text(new, encoding="utf-8")
    print(table(summary))
    return 0


def merged(folder: Path) -> list[Row]:
    """Return a row for each results file, and one for each kind of which there is none.

    Raises:
        ValueError: a file is not a results file of its kind.
    """
    return [row for kind in KINDS for row in _rows(kind, folder)]


def _rows(kind: Kind, folder: Path) -> Iterator[Row]:
    files = kind.files(folder)
    if not files:
        yield {"kind": kind.name, "file": None, "missing": kind.example, "made_by": kind.command}
    for path in files:
        try:
            yield _row(kind, path, json.loads(path.read_text(encoding="utf-8")))
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as exc:
            raise ValueError(
                f"expected {path.name} to be a results file of `{kind.command}`, got "
                f"{type(exc).__name__}: {exc}; make it again or take it away"
            ) from None


def _row(kind: Kind, path: Path, record: Mapping[str, Any]) -> Row:
    summary = record["summary"]
    targets = []
    for target in TARGETS[kind.name]:
        value = target.read(summary)
        targets.append(
            {
                "name": target.name, "what": target.what, "rule": target.rule, "unit": target.unit,
                "limit": target.limit, "value": value, "met": target.met(value),
            }
        )  # fmt: skip
    machine = record["environment"]
    return {
        "kind": kind.name,
        "file": path.name,
        "command": record["command"],
        "commit": record["commit"],
        "date": record["date"],
        "environment": {name: machine[name] for name in ENVIRONMENT if name in machine},
        "figures": kept(kind.name, summary),
        "targets": targets,
    }


def summarise(rows: Sequence[Row]) -> Row:
    """Return all targets with the file of each, what is missing, and how many are met."""
    targets = [
        {**target, "file": row["file"], "kind": row["kind"]}
        for row in rows
        for target in row.get("targets", ())
    ]
    return {
        "targets": targets,
        "met": sum(target["met"] is True for target in targets),
        "missed": [f"{t['file']}: {t['what']}" for t in targets if t["met"] is False],
        "not_measured": [f"{t['file']}: {t['what']}" for t in targets if t["met"] is None],
        "missing": {row["missing"]: row["made_by"] for row in rows if row["file"] is None},
    }


def is_written(path: Path, rows: Sequence[Row], summary: Row) -> bool:
    """Whether the merged file holds just these rows and this summary."""
    if not path.exists():
        return False
    record = json.loads(path.read_text(encoding="utf-8"))
    wanted = json.loads(json.dumps({"rows": list(rows), "summary": summary}))
    return all(record[name] == wanted[name] for name in wanted)


def table(summary: Row) -> str:
    """Return how many targets are met, and a line for each that is not and each missing file."""
    lines = [f"{summary['met']} of {len(summary['targets'])} targets met"]
    lines += [f"missed: {text}" for text in summary["missed"]]
    lines += [f"not measured: {text}" for text in summary["not_measured"]]
    lines += [f"missing: {name} ({command})" for name, command in summary["missing"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
