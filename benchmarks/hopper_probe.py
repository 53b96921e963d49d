"""Try the Hopper attention family on a GPU, beside its rivals, in a minute or two.

    python benchmarks/hopper_probe.py                       full, causal and soft-cap, D 64 and 128
    python benchmarks/hopper_probe.py --cases causal-128    one case; --points 8: more schedules
    python benchmarks/hopper_probe.py --list                what would be run; needs no GPU

For finding out what is wrong or slow, not for publishing: each generated source is checked against
float64 attention, run many times for equal results, and timed, next to the portable family's first
schedules, cuDNN and compiled FlexAttention. Each has a process of its own, which is killed with a
hung kernel after 10 s; they compile side by side and have the GPU one at a time. Two tiny problems
come first, and where a kernel hangs, others of its head size are not tried. Sources and logs stay
in `--folder` with a JSON of all results.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from hotloop.core.graph import Arg, AttentionSpec, Graph, Node  # noqa: E402  from the checkout
from hotloop.core.space import Point  # noqa: E402
from hotloop.templates.attention.family import AttentionFamily  # noqa: E402
from hotloop.templates.hopper.family import HopperFamily  # noqa: E402

CHILD = Path(__file__).with_name("hopper_probe_child.py")
GPU_LIMIT_S = 10.0
"""From when a process has the GPU until it is killed."""
LIMIT_S = 150.0
"""Of a process before it has the GPU: importing, compiling, waiting for it."""
KILL_LIMIT_S = 15.0
"""How long a killed process may take to end; the driver may hold it."""
SIDE_BY_SIDE = 8
TINY = (("full", 256), ("causal", 512))
"""Variants and lengths of the first jobs, one head each."""
VARIANTS = ("full", "causal", "softcap")
SOFTCAP = 20.0
TAIL = 2000
"""Characters of a log that are kept."""
ROW = 160
"""Characters of a printed row: all of them stay under 8 K."""


@dataclass(eq=False)
class Job:
    """One process: a source to measure, or a rival."""

    case: str
    name: str
    request: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    began_s: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)


def _node(name: str, op: str, args: Sequence[str | float], dtype: str) -> Node:
    given = tuple(Arg(node=a) if isinstance(a, str) else Arg(value=a) for a in args)
    return Node(name=name, op=op, args=given, dtype=dtype)


def make_spec(variant: str, D: int, S: int, B: int, H: int) -> AttentionSpec:
    """Return the problem, with the graphs that tracing would give."""
    score = mask = None
    if variant == "causal":
        leaves = [_node(n, n, (), "int32") for n in ("index_q", "index_kv")]
        seen = _node("ge", "ge", ("index_q", "index_kv"), "bool")
        mask = Graph(nodes=(*leaves, seen), outputs=("ge",))
    elif variant == "softcap":
        nodes = (
            _node("score", "score", (), "float32"),
            _node("div", "div", ("score", SOFTCAP), "float32"),
            _node("tanh", "tanh", ("div",), "float32"),
            _node("mul", "mul", ("tanh", SOFTCAP), "float32"),
        )
        score = Graph(nodes=nodes, outputs=("mul",))
    return AttentionSpec(
        B=B,
        H=H,
        Hkv=H,
        S=S,
        Skv=S,
        D=D,
        dtype="bfloat16",
        scale=D**-0.5,
        score_mod=score,
        mask_mod=mask,
    )


def make_jobs(options: argparse.Namespace, folder: Path) -> Iterator[Job]:
    """Yield what is to be measured, the most interesting first."""
    cases = [c.rsplit("-", 1) for c in options.cases.split(",")]
    later: list[Job] = []
    yield from _tiny_jobs(int(cases[0][1]), folder)
    for variant, head_size in cases:
        spec = make_spec(variant, int(head_size), options.S, options.B, options.H)
        case = f"{variant}-{head_size}"
        sizes = _sizes(spec, variant)
        families = (("hopper", HopperFamily(spec), options.points), ("portable", None, 2))
        for name, hopper, count in families:
            family = hopper or AttentionFamily(spec)
            for number, point in enumerate(_points(family)[:count]):
                path = folder / f"{case}-{name}-{number}.py"
                path.write_text(family.render(point).text(), encoding="utf-8")
                request = {**sizes, "source": str(path)}
                job = Job(case, f"{name} {_short(point)}", request)
                if number == 0:
                    yield job
                else:
                    later.append(job)
        rivals = ["flex"] if variant == "softcap" else ["cudnn", "flex"]
        yield from (Job(case, rival, {**sizes, "rival": rival}) for rival in rivals)
    yield from later


def _sizes(spec: AttentionSpec, variant: str) -> dict[str, Any]:
    return {"B": spec.B, "H": spec.H, "S": spec.S, "D": spec.D, "variant": variant}


def _tiny_jobs(D: int, folder: Path) -> Iterator[Job]:
    """Yield jobs that show at once whether anything works."""
    for variant, S in TINY:
        spec = make_spec(variant, D, S, 1, 1)
        family = HopperFamily(spec)
        path = folder / f"tiny-{variant}-{D}.py"
        path.write_text(family.render(family.space().starts[0]).text(), encoding="utf-8")
        yield Job(
            f"{variant}-{D}", f"hopper tiny S={S}", {**_sizes(spec, variant), "source": str(path)}
        )


def _points(family: HopperFamily | AttentionFamily) -> list[Point]:
    """Return the starts, after the first those that do without a loop over query tiles."""
    first, *others = family.space().starts
    return [first, *sorted(others, key=lambda point: bool(point.get("persistent", True)))]


def _short(point: Point) -> str:
    return " ".join(f"{k}={v}" for k, v in point.items())


@dataclass(frozen=True)
class Runner:
    """How jobs are run."""

    folder: Path
    seconds: float
    """Nothing begins after that."""
    child: Path = CHILD
    gpu_limit_s: float = GPU_LIMIT_S
    limit_s: float = LIMIT_S


def run(jobs: Sequence[Job], runner: Runner) -> None:
    """Run all jobs, some side by side; print each as it ends."""
    start, waiting = time.monotonic(), list(jobs)
    running: list[Job] = []
    while waiting or running:
        while waiting and len(running) < SIDE_BY_SIDE and time.monotonic() - start < runner.seconds:
            running.append(_begin(waiting.pop(0), runner, len(waiting)))
        if not running:
            break
        for job in list(running):
            if job in running and _is_over(job, runner):
                running.remove(job)
                print(line(job), flush=True)
                if job.result["status"] == "hung":
                    _give_up_like(job, running, waiting)
        time.sleep(0.05)
    for job in waiting:
        job.result = {"status": "not run", "message": f"the {runner.seconds:.0f} s were over"}


def _give_up_like(hung: Job, running: list[Job], waiting: list[Job]) -> None:
    """Take away the Hopper jobs of the head size of one that hung."""
    size = hung.request.get("D")
    if not _is_hopper(hung):
        return
    for jobs in (running, waiting):
        for job in [j for j in jobs if _is_hopper(j) and j.request.get("D") == size]:
            if job.process is not None:
                _kill(job.process)
            jobs.remove(job)
            job.result = {"status": "skipped", "message": f"{hung.name} hung with D {size}"}
            print(line(job), flush=True)


def _is_hopper(job: Job) -> bool:
    return job.name.startswith("hopper")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it started; go on if the driver does not let it end."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=KILL_LIMIT_S)


def _begin(job: Job, runner: Runner, number: int) -> Job:
    files = {"lock": "gpu.lock", "marker": f"{number}.marker", "log": f"{number}.log"}
    job.request |= {name: str(runner.folder / file) for name, file in files.items()}
    command = [sys.executable, str(runner.child), json.dumps(job.request)]
    with Path(job.request["log"]).open("w") as log:
        job.process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=runner.folder
        )
    job.began_s = time.monotonic()
    return job


def _is_over(job: Job, runner: Runner) -> bool:
    """Take in the result of a process that ended, or kill one that is late."""
    assert job.process is not None
    marker = Path(job.request["marker"])
    on_gpu_s = time.time() - marker.stat().st_mtime if marker.exists() else 0.0
    is_hung = on_gpu_s > runner.gpu_limit_s
    is_slow = not marker.exists() and time.monotonic() - job.began_s > runner.limit_s
    is_late = is_hung or is_slow
    if job.process.poll() is None and not is_late:
        return False
    is_late = job.process.poll() is None
    _kill(job.process)
    said = Path(job.request["log"]).read_text(errors="replace").strip()
    last = said.splitlines()[-1:] or [""]
    if is_late:
        status = "hung" if is_hung else "slow to compile"
        job.result = {"status": status, "message": said[-TAIL:]}
    elif last[0].startswith("{"):
        job.result = json.loads(last[0])
    else:
        job.result = {"status": "failed", "message": said[-TAIL:]}
    return True


def line(job: Job) -> str:
    """Return one row of the table."""
    found = job.result
    if "ms" not in found:
        message = str(found.get("message", "")).strip().splitlines()[-1:] or [""]
        return f"{job.case:12} {found['status']:>15}  {job.name}  {message[0]}"[:ROW]
    compiled = f"{found['registers']} regs {found['spills']} spills" if "registers" in found else ""
    row = (
        f"{job.case:12} {found['status']:>8} {found['ms']:8.4f} ms {found['tflops']:5.0f} TFLOP/s "
        f"err {found['error']:.1e}  {compiled:20}  {job.name}"
    )
    return row[:ROW]


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = ",".join(f"{v}-{d}" for d in (128, 64) for v in VARIANTS)
    parser.add_argument("--cases", default=every, help="variant-D, separated by commas")
    parser.add_argument("--points", type=int, default=4, help="schedules of the Hopper family")
    parser.add_argument("--B", type=int, default=4)
    parser.add_argument("--H", type=int, default=16)
    parser.add_argument("--S", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=240.0, help="begin nothing after that")
    parser.add_argument("--folder", type=Path, default=Path("hopper_probe"))
    parser.add_argument("--list", action="store_true", help="write the sources and stop")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for marker in folder.glob("*.marker"):
        marker.unlink()
    jobs = list(make_jobs(options, folder))
    if options.list:
        for job in jobs:
            print(f"{job.case:12} {job.name}")
        return 0
    if shutil.which("nvidia-smi") is None:
        print("expected a Hopper GPU, found none; --list needs none", file=sys.stderr)
        return 2
    # Once from disk, before many do it side by side.
    subprocess.run([sys.executable, "-c", "import torch, triton"], check=False)
    run(jobs, Runner(folder, options.seconds))
    left = sum(job.result["status"] == "not run" for job in jobs)
    print(f"{len(jobs)} jobs, {left} not run; all in {folder / 'results.json'}")
    rows = [{"case": j.case, "name": j.name, **j.request, **j.result} for j in jobs]
    (folder / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
