"""The two cages that hotloop uses: one for a candidate, one for a compile lane.

The limits are those that torch, CUDA and Triton survive (docs/decisions/001-worker-on-h200.md).
"""

from __future__ import annotations

import os
from dataclasses import replace

from hotloop.core.units import GIB
from hotloop.sandbox.paths import default_paths
from hotloop.sandbox.spec import CageSpec, Limits, Tier

UNPRIVILEGED_UID = 60001
"""First of a range that no distribution assigns (between login users and `nobody`); one a GPU."""

CANDIDATE_LIMITS = Limits(
    data_bytes=64 * GIB, processes=512, file_bytes=4 * GIB, open_files=4096, cpu_s=None
)
LANE_LIMITS = Limits(
    data_bytes=16 * GIB, processes=128, file_bytes=1 * GIB, open_files=1024, cpu_s=300
)


_SHARED_MEMORY = "/dev/shm"
"""Private at T2. At T1 it is every user's, what one candidate leaves there the next could read, and
nothing bounds it: it stays shut. CUDA, cuBLAS, Triton and pinned memory do without
(docs/decisions/001)."""


def candidate_cage(tier: str, work_dir: str, *, gpu: int | None) -> CageSpec:
    """Return the cage of a process that runs a candidate, on GPU `gpu` or on none."""
    spec = _cage(tier, work_dir, gpu, owner=gpu)
    if gpu is None or spec.tier is not Tier.NAMESPACES:
        return spec
    return replace(spec, write_paths=(*spec.write_paths, _SHARED_MEMORY))


def lane_cage(tier: str, work_dir: str, *, owner: int | None = None) -> CageSpec:
    """Return the cage of a process that compiles: no GPU.

    Args:
        tier: see `CageSpec`.
        work_dir: see `CageSpec`.
        owner: the GPU whose candidates it compiles for; it has their user, who is no other GPU's.
    """
    return replace(_cage(tier, work_dir, None, owner=owner), limits=LANE_LIMITS)


def _cage(tier: str, work_dir: str, gpu: int | None, *, owner: int | None) -> CageSpec:
    # Packages named by PYTHONPATH, never the current folder: the problem may lie there.
    packages = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    paths = default_paths(gpu, extra_read=[os.path.abspath(p) for p in packages])
    return CageSpec(
        tier=Tier(tier),
        work_dir=work_dir,
        read_paths=paths.read,
        write_paths=paths.write,
        gpu=gpu,
        drop_uid=UNPRIVILEGED_UID + (owner or 0) if os.geteuid() == 0 else None,
        limits=CANDIDATE_LIMITS,
    )
