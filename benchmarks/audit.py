"""Audit the problems of KernelBench: which of them let a fake pass, and which values catch it.

    make bench-audit                                    all 200 problems, all GPUs
    python -m benchmarks.audit --problems kernelbench/1/19,kernelbench/2/80
    python -m benchmarks.audit --docs                   docs/audit.md from the results file

The data set is the one that HOTLOOP_KERNELBENCH names. One child a GPU audits one problem after the
other; one that takes too long is killed with its problem, and another child goes on. Rows that the
results file holds of the same commit are kept: a benchmark that was cut goes on with the same
command.

`--device cpu` tries a few problems at small sizes; it writes only where `--out` says.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.audit_child import DATA_VARIABLE
from benchmarks.audit_table import document, summarise, table
from benchmarks.gpu_pool import gpu_slug, run_jobs, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from hotloop.errors import ConfigError, DeviceLost
from hotloop.problems import list_kernelbench

PROBLEM_LIMIT_S = 45.0
DOCUMENT = ROOT / "docs" / "audit.md"
SMALL: Mapping[str, Mapping[str, int]] = {
    "kernelbench/1/1": {"N": 128},
    "kernelbench/1/19": {"batch_size": 16, "dim": 1000},
    "kernelbench/1/51": {"batch_size": 4, "dim1": 60, "dim2": 70},
    "kernelbench/2/17": {
        "batch_size": 2, "in_channels": 4, "out_channels": 6, "height": 20, "width": 22,
    },
    "kernelbench/2/23": {"batch_size": 4, "D": 8, "H": 8, "W": 8},
    "kernelbench/2/66": {"batch_size": 16, "in_features": 64, "out_features": 64},
    "kernelbench/2/80": {"batch_size": 16, "in_features": 64, "out_features": 64},
    "kernelbench/2/83": {"batch_size": 2, "depth": 8, "height": 8, "width": 8},
}  # fmt: skip
"""Sizes for a machine without a GPU."""


def main(argv: Sequence[str] | None = None) -> int:
    """Audit what is missing; return 0 when every problem asked for has a row."""
    args = _parse(argv)
    try:
        if args.docs:
            return _write_document(args.out or _default_path(args.device))
        wanted = _wanted(args)
        path = args.out or (_default_path("cuda") if args.device == "cuda" else None)
        gpus = visible_gpus(args.gpus) if args.device == "cuda" else [""] * (args.gpus or 1)
    except (ConfigError, DeviceLost) as exc:
        print(f"audit: {exc}", file=sys.stderr)
        return 2
    benchmark = Benchmark(args.device, path, limit_s=args.limit)
    rows = benchmark.run(wanted, gpus, seconds=args.seconds)
    print(table(rows))
    missing = [name for name in wanted if not any(_is_done(r, name) for r in rows)]
    if missing:
        told = ", ".join(missing[:5])
        print(f"audit: {len(missing)} without a result, among them {told}; run again")
    return 1 if missing else 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="", help="with commas; by default all")
    parser.add_argument("--seconds", type=float, default=None, help="wall clock for all of it")
    parser.add_argument("--limit", type=float, default=PROBLEM_LIMIT_S, help="seconds a problem")
    parser.add_argument("--gpus", type=int, default=None, help="how many; by default all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/audit_GPU.json")
    parser.add_argument("--docs", action="store_true", help="write docs/audit.md, audit nothing")
    return parser.parse_args(argv)


def _default_path(device: str) -> Path:
    if device == "cuda":
        try:
            return RESULTS / f"audit_{gpu_slug()}.json"
        except (DeviceLost, IndexError):
            pass
    return RESULTS / "audit_h200.json"


def _wanted(args: argparse.Namespace) -> list[str]:
    """Return the names of the problems asked for.

    Raises:
        ConfigError: there is no data set, or it has no such problem.
    """
    data = os.environ.get(DATA_VARIABLE)
    if not data:
        raise ConfigError(f"expected {DATA_VARIABLE} to name the data set, it is not set")
    known = [entry.name for entry in list_kernelbench(data)]
    if args.device == "cpu":
        known = [name for name in known if name in SMALL]
    asked = [name for name in args.problems.split(",") if name]
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise ConfigError(f"expected problems of {known[0]} to {known[-1]}, got {unknown}")
    return asked or known


def _is_done(row: Row, name: str) -> bool:
    return bool(row["key"] == name and row["error"] is None)


class Child:
    """A process that audits; started again where it ended or was killed."""

    def __init__(self, device: str, gpu: str) -> None:
        self._device = device
        self._env = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu} if gpu else dict(os.environ)
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: Mapping[str, object], limit_s: float) -> Row:
        """Return the row of one problem; an `error` says what kept it from being audited."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            return {"error": "the child ended before it was asked"}
        line = self._line(process, time.monotonic() + limit_s)
        if line is None:
            code = process.poll()
            self.close()
            how = f"not done within {limit_s:.0f} s" if code is None else f"ended with {code}"
            return {"error": how}
        row: Row = json.loads(line)
        if row["error"] is not None:
            self.close()
        return row

    def close(self) -> None:
        """End the process and what it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: it and its children
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.audit_child", self._device],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=self._env, cwd=ROOT, start_new_session=True, bufsize=0,
            )  # fmt: skip
        return self._process

    @staticmethod
    def _line(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
        assert process.stdout is not None
        told = b""
        while not told.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return None
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                process.wait()
                return None
            told += piece
        return told


class Benchmark:
    """The rows so far, in one results file or in memory."""

    def __init__(self, device: str, path: Path | None, *, limit_s: float) -> None:
        self._device = device
        self._path = path
        self._limit_s = limit_s
        kept = rows_of(path, commit()) if path is not None else []
        self._rows = {row["key"]: row for row in kept}
        self._lock = threading.Lock()
        self._children: dict[str, Child] = {}

    def run(
        self, wanted: Sequence[str], gpus: Sequence[str], *, seconds: float | None
    ) -> list[Row]:
        """Audit what is missing and return all rows that were asked for."""
        end = time.monotonic() + (seconds if seconds is not None else float("inf"))
        missing = [name for name in wanted if name not in self._rows]
        slots = [f"{i}:{gpu}" for i, gpu in enumerate(gpus)]
        self._children = {s: Child(self._device, s.partition(":")[2]) for s in slots}
        try:
            run_jobs(missing, slots, self._audit, start_until=end)
        finally:
            for child in self._children.values():
                child.close()
        return [self._rows[name] for name in wanted if name in self._rows]

    def _audit(self, name: str, slot: str) -> None:
        start = time.monotonic()
        question = {"problem": name, "settings": SMALL[name] if self._device == "cpu" else {}}
        row = self._children[slot].ask(question, self._limit_s)
        row = {"problem": name, "rankable": None, "refused": None} | row
        _, level, number = name.split("/")
        row |= {"key": name, "level": int(level), "problem_id": int(number)}
        told = row["error"] or row.get("refused") or ("ranked" if row["rankable"] else "not ranked")
        with self._lock:
            self._rows[name] = row
            self._write()
            print(f"{name}: {told} ({time.monotonic() - start:.1f} s)", file=sys.stderr, flush=True)

    def _write(self) -> None:
        if self._path is None:
            return
        rows = sorted(self._rows.values(), key=lambda row: (row["level"], row["problem_id"]))
        known = [row["environment"] for row in rows if row.get("environment")]
        write_results(
            self._path,
            command="make bench-audit",
            environment=known[0] if known else {},
            rows=rows,
            summary=summarise(rows),
        )


def _write_document(path: Path) -> int:
    if not path.exists():
        raise ConfigError(f"expected results at {path}, there are none; run `make bench-audit`")
    record = json.loads(path.read_text(encoding="utf-8"))
    DOCUMENT.write_text(document(record, path.name), encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
