"""Where untrusted children live: their folders, cages and zygotes.

One folder a candidate, below a temporary root that only the judge may list. On `cpu` two zygotes
run, because Triton decides at import whether it interprets: one for candidates (interpreter), one
for compile lanes. On `cuda` one serves both.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hotloop import sandbox
from hotloop.errors import InfraError
from hotloop.worker.children import Child
from hotloop.worker.forking import Zygote
from hotloop.worker.gpu_watch import GpuWatch


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
        """Start the zygotes and, while they import, attack the cages that their children will get.

        Raises:
            SandboxUnavailable: an attack on a cage succeeded; nothing may be run here.
            InfraError: there is no temporary folder, or the attacks gave no answer.
        """
        self.device = device
        self.tier = tier
        self._gpu = gpu
        self._minor = gpu.minor if gpu is not None else None
        self._root = _make_root()
        self._numbers = itertools.count(1)
        self.watch: GpuWatch | None = None
        """Told of every child that may use the GPU; None on `cpu`."""
        self._seed = self._root / "seed"
        self._seed.mkdir(mode=0o700)
        self._runs = Zygote(interpret=device == "cpu", folder=self._seed)
        builds = Zygote(interpret=False, folder=self._seed) if device == "cpu" else self._runs
        self._builds = builds
        try:
            scratch = self._root / "attacked"
            sandbox.require_sound(self.candidate_cage(scratch), self.lane_cage(scratch))
        except BaseException:
            self.close()
            raise

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
        return self._on_gpu("candidate", folder, arena_fd)

    def start_replay(self, folder: Path) -> Child:
        """Fork a process that replays recorded launches on the GPU."""
        return self._on_gpu("replay", folder, None)

    def _on_gpu(self, role: str, folder: Path, arena_fd: int | None) -> Child:
        cage, env = self.candidate_cage(folder), self.environment(folder)
        child = Child(self._runs, role, cage, env=env, arena_fd=arena_fd)
        if self.watch is not None:
            self.watch.started(child)
        return child

    def start_lane(self, folder: Path) -> Child:
        """Fork a compile lane: no GPU."""
        env = self.environment(folder)
        env.pop("TRITON_INTERPRET", None)  # a lane compiles
        return Child(self._builds, "lane", self.lane_cage(folder), env=env)

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
        return sandbox.candidate_cage(self.tier, str(folder), gpu=self._minor)

    def lane_cage(self, folder: Path) -> sandbox.CageSpec:
        """Return the cage of a compile lane."""
        return sandbox.lane_cage(self.tier, str(folder), owner=self._minor)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of a child in `folder`."""
        env = sandbox.scrubbed_environment(str(folder), extra={})
        if self.device == "cpu":
            env["TRITON_INTERPRET"] = "1"
        if self._gpu is not None:
            env["CUDA_VISIBLE_DEVICES"] = self._gpu.uuid
        return env


def _make_root() -> Path:
    try:
        root = Path(tempfile.mkdtemp(prefix="hotloop-"))
        root.chmod(0o711)  # children pass through, only the judge lists
    except OSError as exc:
        raise InfraError(
            f"expected room for the folders of candidates, the system answered: {exc}; free some "
            "space, or set TMPDIR to a folder on a local disk that can be written"
        ) from exc
    return root


def _remove(folder: Path) -> None:
    # What a candidate left there, however deep; a folder that stays is no reason to fail a verdict.
    with contextlib.suppress(OSError):
        sandbox.remove_tree(str(folder))
