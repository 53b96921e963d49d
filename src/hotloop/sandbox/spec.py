"""What a cage must hold, and what it turned out to hold.

`CageSpec` is the order, `CageReport` the delivery note. Both are frozen records that cross a
process as JSON. Nothing here touches the kernel: `cage.enter` does.

Tiers: T0 has no isolation beyond limits and closed file descriptors; T1 adds a dropped user and
capabilities, Landlock and seccomp and needs no privilege; T2 is T1 inside private namespaces.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.core import record
from hotloop.core.record import JsonValue
from hotloop.core.units import GIB
from hotloop.errors import ConfigError

_NEVER_WRITABLE = ("/", "/proc", "/sys", "/dev", "/etc", "/usr", "/boot")
_OWN_THREADS = "/proc/self/task"
_GPU_NODE_PREFIX = "/dev/nvidia"


class Tier(StrEnum):
    """How much isolation a cage has; a later one includes the earlier ones."""

    NONE = "T0"
    EMBEDDED = "T1"
    NAMESPACES = "T2"


@dataclass(frozen=True)
class Limits:
    """Resource limits of one cage, per process except `processes`. Core files are always off.

    `data_bytes` bounds private writable memory (RLIMIT_DATA), not shared maps and not reservations:
    RLIMIT_AS would break CUDA's address-space reservations. `file_bytes` also bounds a memfd.
    `processes` counts processes and threads that the cage may add for its user; the kernel does not
    enforce it for uid 0. `cpu_s` is processor time; None is no limit.
    """

    data_bytes: int = 16 * GIB
    processes: int = 256
    file_bytes: int = 8 * GIB
    open_files: int = 1024
    cpu_s: int | None = None

    def __post_init__(self) -> None:
        for name in ("data_bytes", "processes", "file_bytes", "open_files", "cpu_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"limit {name}: expected a number over 0, got {value}; raise it")


@dataclass(frozen=True)
class CageSpec:
    """The cage that a process asks for.

    Attributes:
        tier: what must be in force; less is an error, never a silent fall-back.
        work_dir: absolute path of an existing folder; read, write and execute. As root, `enter`
            makes `drop_uid` its owner.
        read_paths: absolute paths to read and execute below.
        write_paths: absolute paths to read and write below; device nodes also take ioctl.
        gpu: index of the one GPU whose nodes may be named; None refuses every GPU node.
        drop_uid: user to become when started as root, ignored otherwise. Use one per GPU: the
            process limit is counted per user.
        limits: resource limits.

    Raises:
        ConfigError: a path is relative, may never be writable, or is a GPU node outside `gpu`.
    """

    tier: Tier
    work_dir: str
    read_paths: tuple[str, ...] = ()
    write_paths: tuple[str, ...] = ()
    gpu: int | None = None
    drop_uid: int | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "tier", Tier(self.tier))
        except ValueError:
            raise ConfigError(f"tier: expected T0, T1 or T2, got {self.tier!r}") from None
        if self.drop_uid is not None and self.drop_uid <= 0:
            raise ConfigError(f"drop_uid: expected an unprivileged user id, got {self.drop_uid}")
        for path in (self.work_dir, *self.read_paths, *self.write_paths):
            if not os.path.isabs(path) or "\0" in path:
                raise ConfigError(f"cage path: expected an absolute path, got {path!r}")
            check_gpu_node(path, self.gpu)
        for path in (self.work_dir, *self.write_paths):
            check_writable(os.path.normpath(path))

    def to_json(self) -> JsonValue:
        """Return plain JSON values."""
        return record.to_json(self)

    @classmethod
    def from_json(cls, data: JsonValue) -> CageSpec:
        """Rebuild a spec from `to_json`'s output.

        Raises:
            ValueError: a field is missing, unknown, or of another type.
        """
        return record.from_json(cls, data)


@dataclass(frozen=True)
class CageReport:
    """What is in force in this process, read back from the kernel where it tells.

    `missing` has one line for everything that is weaker than on the best machine, with its cause:
    a path that does not exist, a right that this kernel does not know, a user that was kept.
    """

    tier: Tier
    landlock_abi: int
    seccomp: bool
    uid: int
    namespaces: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def to_json(self) -> JsonValue:
        """Return plain JSON values."""
        return record.to_json(self)

    @classmethod
    def from_json(cls, data: JsonValue) -> CageReport:
        """Rebuild a report from `to_json`'s output.

        Raises:
            ValueError: a field is missing, unknown, or of another type.
        """
        return record.from_json(cls, data)


def check_writable(path: str) -> None:
    """Refuse a normalised path that no cage may write.

    Raises:
        ConfigError: the path is a system folder, or in /proc or /sys (the process's own thread
            folder excepted: CUDA names its threads there).
    """
    inside_kernel_tree = path.startswith(("/proc/", "/sys/")) and path != _OWN_THREADS
    if path in _NEVER_WRITABLE or inside_kernel_tree:
        raise ConfigError(f"cage path: {path} may never be writable; give a narrower folder")


def check_gpu_node(path: str, gpu: int | None) -> None:
    """Refuse the device node of a GPU that the cage was not given.

    Raises:
        ConfigError: a GPU node is named without a GPU, or it belongs to another GPU.
    """
    if not path.startswith(_GPU_NODE_PREFIX):
        return
    if gpu is None:
        raise ConfigError(f"cage path: {path} needs a GPU; give gpu=N or drop the path")
    index = path[len(_GPU_NODE_PREFIX) :]
    if index.isdigit() and int(index) != gpu:
        raise ConfigError(f"cage path: {path} is not GPU {gpu}; give only that GPU's node")
