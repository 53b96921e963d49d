"""Where untrusted children live: their folders, cages and zygotes.

One folder a candidate, below a temporary root that only the judge may list. On `cpu` two zygotes
run, because Triton decides at import whether it interprets: one for candidates (interpreter), one
for compile lanes. On `cuda` one serves both.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hotloop import sandbox
from hotloop.worker.children import Child
from hotloop.worker.forking import Zygote

UNPRIVILEGED_UID = 60001
"""First of a range that no distribution assigns (between login users and `nobody`); one a GPU."""

CANDIDATE_LIMITS = sandbox.Limits(
    data_bytes=64 << 30, processes=512, file_bytes=4 << 30, open_files=4096, cpu_s=None
)
"""RLIMIT_DATA that torch, CUDA and Triton survive: docs/decisions/001."""
LANE_LIMITS = sandbox.Limits(
    data_bytes=16 << 30, processes=128, file_bytes=1 << 30, open_files=1024, cpu_s=300
)


@dataclass(frozen=True, slots=True)
class GpuAddress:
    """How to name the judge's GPU to another process."""

    minor: int
    """N of /dev/nvidiaN."""
    uuid: str
    """For CUDA_VISIBLE_DEVICES: ordinals differ where other GPUs' nodes are closed."""


class Workroom:
    """Makes folders and children for one judge."""

    def __init__(self, device: str, *, tier: str, gpu: GpuAddress | None) -> None:
        self.device = device
        self.tier = tier
        self._gpu = gpu
        minor = gpu.minor if gpu is not None else 0
        self._uid = UNPRIVILEGED_UID + minor if os.geteuid() == 0 else None
        self._root = Path(tempfile.mkdtemp(prefix="hotloop-"))
        self._root.chmod(0o711)  # children pass through, only the judge lists
        self._numbers = itertools.count(1)
        self._seed = self._root / "seed"
        self._seed.mkdir(mode=0o700)
        self._runs = Zygote(interpret=device == "cpu", folder=self._seed)
        builds = Zygote(interpret=False, folder=self._seed) if device == "cpu" else self._runs
        self._builds = builds

    def folder(self, name: str) -> Path:
        """Make an empty folder for one candidate; the cage makes its user the owner."""
        folder = self._root / f"{next(self._numbers):05d}-{name}"
        folder.mkdir(mode=0o700)
        warm = self._seed / "cache"  # Triton's driver module, built once by the zygote
        if self.device == "cuda" and warm.exists():
            shutil.copytree(warm, folder / "cache")
            (folder / "cache").chmod(0o700)
        return folder

    def start_candidate(self, folder: Path, arena_fd: int | None) -> Child:
        """Fork a candidate process that may use the GPU."""
        return Child(
            self._runs,
            "candidate",
            self.candidate_cage(folder),
            env=self.environment(folder),
            arena_fd=arena_fd,
        )

    def start_replay(self, folder: Path) -> Child:
        """Fork a process that replays recorded launches on the GPU."""
        return Child(
            self._runs, "replay", self.candidate_cage(folder), env=self.environment(folder)
        )

    def start_lane(self, folder: Path) -> Child:
        """Fork a compile lane: no GPU."""
        spec = self._cage(folder, gpu=None, limits=LANE_LIMITS)
        env = self.environment(folder)
        env.pop("TRITON_INTERPRET", None)  # a lane compiles
        return Child(self._builds, "lane", spec, env=env)

    def discard(self, folder: Path) -> None:
        """Remove a candidate's folder; only after its processes are dead."""
        _remove(folder)

    def close(self) -> None:
        """End the zygotes and remove everything. Idempotent."""
        self._runs.close()
        if self._builds is not self._runs:
            self._builds.close()
        _remove(self._root)

    def candidate_cage(self, folder: Path) -> sandbox.CageSpec:
        """Return the cage of a process that may use the GPU."""
        minor = self._gpu.minor if self._gpu is not None else None
        return self._cage(folder, gpu=minor, limits=CANDIDATE_LIMITS)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of a child in `folder`."""
        env = sandbox.scrubbed_environment(str(folder), extra={})
        if self.device == "cpu":
            env["TRITON_INTERPRET"] = "1"
        if self._gpu is not None:
            env["CUDA_VISIBLE_DEVICES"] = self._gpu.uuid
        return env

    def _cage(self, folder: Path, *, gpu: int | None, limits: sandbox.Limits) -> sandbox.CageSpec:
        # Packages named by PYTHONPATH, never the current folder: the problem may lie there.
        packages = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        paths = sandbox.default_paths(gpu, extra_read=[os.path.abspath(p) for p in packages])
        return sandbox.CageSpec(
            tier=sandbox.Tier(self.tier),
            work_dir=str(folder),
            read_paths=paths.read,
            write_paths=paths.write,
            gpu=gpu,
            drop_uid=self._uid,
            limits=limits,
        )


def _remove(folder: Path) -> None:
    # What a candidate left there, however deep; a folder that stays is no reason to fail a verdict.
    with contextlib.suppress(OSError):
        sandbox.remove_tree(str(folder))
