"""What this machine can and cannot do for hotloop: one function a check.

Nothing here imports torch or touches CUDA in this process: a broken driver can hang or kill whoever
asks it, so those questions go to a child with a deadline. A check never raises for what it finds;
what it finds is the answer, with the way to mend it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.gpu_reading import GpuReading
from hotloop.core.gpu_sharing import MIN_FREE_BYTES, describe_room, describe_sharing
from hotloop.core.units import GIB
from hotloop.llm.presets import presets
from hotloop.sandbox.disposable import ask_process
from hotloop.sandbox.nvml import NoReading, read_gpus

_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "beegfs", "gpfs", "ceph", "9p", "fuse.")
_TORCH_QUESTION = """
import json, torch
answer = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpus": []}
if torch.cuda.is_available():
    answer["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
try:
    import triton
    answer["triton"] = triton.__version__
except ImportError as exc:
    answer["triton"] = None
print(json.dumps(answer))
"""
_ISOLATION_QUESTION = """
import json, os, tempfile
from hotloop import sandbox
found = sandbox.probe()
answer = {**found.to_json(), "open": {}}
with tempfile.TemporaryDirectory(prefix="hotloop-doctor-") as folder:
    os.chmod(folder, 0o711)  # the user of the cage passes through
    place = folder + "/attacked"
    for tier in ("T1", "T2"):
        if tier <= found.best_tier:
            cages = sandbox.candidate_cage(tier, place, gpu=None), sandbox.lane_cage(tier, place)
            answer["open"][tier] = sandbox.breaches(*cages)
print(json.dumps(answer))
"""
TORCH_DEADLINE_S = 90.0
"""A cold import of torch from a slow disk has been seen to take most of a minute."""
TOOL_DEADLINE_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding about this machine."""

    name: str
    state: str
    """`ok`; `limited`: something works less well or not at all; `missing`: the core job fails."""
    found: str
    mend: str | None = None
    """What to do about it; None when there is nothing to do."""


def ask(command: Sequence[str], deadline_s: float) -> tuple[str | None, str]:
    """Run a disposable child; return its stdout (None when it failed) and a reason.

    The child is killed at the deadline and neither its output nor its end is awaited any longer.
    """
    answer = ask_process(command, deadline_s, extra=os.environ)
    return answer.text, answer.reason


def python() -> Check:
    """Name the interpreter; the package does not install on one that is too old."""
    found = f"{sys.version.split()[0]} at {sys.executable}"
    return Check(name="python", state="ok", found=found)


def torch_and_triton() -> tuple[Check, ...]:
    """Ask a child process for torch, its CUDA, triton, and the GPUs that torch sees."""
    text, reason = ask([sys.executable, "-c", _TORCH_QUESTION], TORCH_DEADLINE_S)
    if text is None:
        mend = "install torch into this environment: pip install torch"
        return (Check(name="torch", state="missing", found=reason, mend=mend),)
    answer = json.loads(text.strip().splitlines()[-1])
    build = f"CUDA {answer['cuda']}" if answer["cuda"] else "CPU build"
    gpus = answer["gpus"]
    torch = Check(name="torch", state="ok", found=f"{answer['torch']}, {build}, {len(gpus)} GPU(s)")
    if answer["triton"]:
        return torch, Check(name="triton", state="ok", found=answer["triton"])
    mend = "pip install triton: without it no Triton kernel can be built"
    return torch, Check(name="triton", state="missing", found="not installed", mend=mend)


def gpu(found: tuple[GpuReading, ...] | NoReading | None = None) -> tuple[Check, ...]:
    """Ask NVML, in a child with a deadline, for GPUs, driver, and who uses each."""
    found = read_gpus() if found is None else found
    if isinstance(found, tuple) and found:
        named = (f"{g.name}, {g.driver}, {g.total_bytes / GIB:.0f} GiB" for g in found)
        listed = Check(name="gpu", state="ok", found="; ".join(named))
        return listed, *(_gpu_use(index, gpu) for index, gpu in enumerate(found))
    mend = (
        "kernels are checked in Triton's interpreter (--device cpu) and nothing is timed; "
        "for times, use a machine with an NVIDIA GPU and its driver"
    )
    if isinstance(found, NoReading) and found.is_silent:
        mend = (
            "NVML hangs, so the driver is in a bad state that only the machine's operator can "
            "mend; until then --device cpu"
        )
    reason = found.reason if isinstance(found, NoReading) else "the driver lists no GPU"
    return (Check(name="gpu", state="limited", found=reason, mend=mend),)


def _gpu_use(index: int, gpu: GpuReading) -> Check:
    shared, room = describe_sharing(gpu), describe_room(gpu)
    name = f"gpu {index} use"
    if shared is None:
        return Check(name=name, state="ok", found=f"nobody; {room}")
    mend = "times may be too long beside them: end them, or choose by CUDA_VISIBLE_DEVICES"
    if gpu.free_bytes < MIN_FREE_BYTES:
        mend = (
            f"hotloop needs {MIN_FREE_BYTES / GIB:.0f} GiB and more here and would refuse: end "
            "them, or choose another GPU by CUDA_VISIBLE_DEVICES"
        )
    return Check(name=name, state="limited", found=f"{shared}; {room}", mend=mend)


def nvcc() -> Check:
    """Look for the CUDA compiler."""
    roots = [os.environ.get(n) for n in ("CUDA_HOME", "CUDA_PATH")]
    places = [f"{r}/bin/nvcc" for r in (*roots, "/usr/local/cuda") if r]
    path = shutil.which("nvcc") or next((p for p in places if os.access(p, os.X_OK)), None)
    if path is None:
        mend = "only needed for CUDA C++ candidates; Triton kernels do without"
        return Check(name="nvcc", state="limited", found="not found", mend=mend)
    text, reason = ask([path, "--version"], TOOL_DEADLINE_S)
    release = [line for line in (text or "").splitlines() if "release" in line]
    return Check(name="nvcc", state="ok", found=release[0].strip() if release else reason or path)


def distribution(name: str, purpose: str) -> Check:
    """Look for an optional package by its distribution's name, without importing it."""
    try:
        return Check(name=name, state="ok", found=importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        mend = f"pip install 'hotloop[gpu]': {purpose}"
        return Check(name=name, state="limited", found="not installed", mend=mend)


def model_keys(environ: Mapping[str, str]) -> Check:
    """List the model presets whose key variable is set; by name, never by value."""
    wants = {name: p.key for name, p in presets().items() if not p.key_optional}
    ready = [f"{name} ({key})" for name, key in wants.items() if environ.get(key, "").strip()]
    free = ", ".join(name for name, p in presets().items() if p.key_optional)
    found = f"set: {', '.join(ready)}" if ready else f"none set of {', '.join(wants.values())}"
    return Check(name="model keys", state="ok", found=f"{found}; none needed: {free}")


def sqlite() -> Check:
    """Check the SQLite that Python was built with."""
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 35, 0):
        mend = "use a Python with SQLite 3.35 or newer"
        return Check(name="sqlite", state="missing", found=found, mend=mend)
    return Check(name="sqlite", state="ok", found=found)


def disk(folder: Path) -> Check:
    """Check free space where runs are kept; builds and journals need a few hundred MB."""
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free in {folder}"
    if free < 2 * GIB:
        mend = "free some space, or give --out a folder on another disk"
        return Check(name="disk", state="limited", found=found, mend=mend)
    return Check(name="disk", state="ok", found=found)


def writable(folder: Path) -> Check:
    """Try to write where runs are kept: permission bits do not tell for root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check(name="write", state="ok", found=f"{folder} can be written")
    except OSError as exc:
        mend = "start hotloop in a folder of your own, or give --out one"
        return Check(name="write", state="limited", found=str(exc), mend=mend)


def file_system(folder: Path, mounts: str | None = None) -> Check:
    """Check that runs lie on a local disk; `mounts` is the text of /proc/self/mountinfo."""
    kind = _file_system_of(folder.resolve(), mounts)
    found = f"{folder} is on {kind}"
    if kind.startswith(_NETWORK_FILE_SYSTEMS):
        mend = "give --out a folder on a local disk: SQLite's journal is unsafe over a network"
        return Check(name="file system", state="limited", found=found, mend=mend)
    return Check(name="file system", state="ok", found=found)


def _file_system_of(folder: Path, mounts: str | None) -> str:
    if mounts is None:
        source = Path("/proc/self/mountinfo")
        mounts = source.read_text(encoding="utf-8") if source.exists() else ""
    best, kind = -1, "unknown"
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator:
            continue
        point = Path(left.split()[4].replace("\\040", " "))
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def isolation(answer: Mapping[str, Any] | None = None) -> tuple[Check, ...]:
    """Try, in a child, every tier of the cage that untrusted kernels run in, and attack it.

    Args:
        answer: what the probe found, with `open`: by tier, the attacks that got through. None asks.
    """
    if answer is None:
        text, reason = ask([sys.executable, "-c", _ISOLATION_QUESTION], TOOL_DEADLINE_S)
        if text is None:
            mend = "runs are refused until this is mended: --min-isolation T0 is for your own code"
            return (Check(name="isolation", state="missing", found=reason, mend=mend),)
        answer = json.loads(text)
    tier, gaps = answer["best_tier"], list(answer["missing"])
    landlock = f"Landlock ABI {answer['landlock_abi']}" if answer["landlock_abi"] else "no Landlock"
    seccomp = "seccomp" if answer["seccomp"] else "no seccomp"
    if tier == "T0":
        gaps.append("until then runs are refused: --min-isolation T0 is for your own code")
    cage = Check(
        name="isolation",
        state="missing" if tier == "T0" else "ok",
        found=f"{tier} ({landlock}, {seccomp}, kernel {answer['kernel']})",
        mend="; ".join(gaps) or None,
    )
    namespaces = Check(name="user namespaces", state="ok", found="allowed")
    if not answer["user_namespaces"]:
        mend = "sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces over 0: "
        mend += "for T2 without root"
        namespaces = Check(name="user namespaces", state="limited", found="refused", mend=mend)
    return cage, namespaces, *_attacks(answer["open"])


def _attacks(got_through: Mapping[str, Sequence[str]]) -> tuple[Check, ...]:
    if not got_through:
        return ()
    if worked := [f"{name} at {tier}" for tier, names in got_through.items() for name in names]:
        mend = "no run starts at that tier: `hotloop selftest` says more; please report it "
        mend += "(SECURITY.md)"
        state = "missing" if got_through.get("T1") else "limited"
        return (Check(name="attacks", state=state, found=", ".join(worked), mend=mend),)
    return (Check(name="attacks", state="ok", found=f"refused at {', '.join(got_through)}"),)


def readable_by_others(paths: Sequence[Path] | None = None) -> Check:
    """Check that an unprivileged user can read this Python: the cage runs candidates as one."""
    places = paths or (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1])
    closed = [p for place in places for p in (place, *place.resolve().parents) if _is_closed(p)]
    if not closed:
        return Check(name="readable", state="ok", found="another user can read this Python")
    seen = ", ".join(sorted({str(p) for p in closed}))
    mend = (
        f"chmod o+x {seen} (or install Python, the environment and hotloop elsewhere), or start "
        "hotloop as an ordinary user"
    )
    state = "limited" if os.geteuid() == 0 else "ok"
    found = f"other users may not enter {seen}"
    return Check(
        name="readable", state=state, found=found, mend=mend if state == "limited" else None
    )


def _is_closed(folder: Path) -> bool:
    return folder.is_dir() and not folder.stat().st_mode & 0o001
