"""Entering the cage: the one irreversible step between trusted and untrusted code.

Called in a freshly forked child with one thread. Each step needs rights that a later one takes
away, so the order is fixed. Any error leaves the process half confined: it must end, never run a
candidate.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import credentials, kernel, landlock, limits, namespaces, seccomp
from hotloop.sandbox.environment import temporary_folder
from hotloop.sandbox.spec import CageReport, CageSpec, Tier

_STANDARD_FDS = (0, 1, 2)
_INIT_PID = 1
_OOM_SCORE = 1000
"""The kernel's own maximum: when memory runs out the candidate goes first, not its judge."""


def enter(
    spec: CageSpec,
    *,
    keep_fds: Iterable[int] = _STANDARD_FDS,
    parent_pid: int | None = None,
) -> CageReport:
    """Confine this process for good.

    At T2 the call returns in a grandchild, see `enter_namespaces`; the pid that the parent knows
    stays good for waiting and killing.

    Args:
        spec: what the cage must hold.
        keep_fds: open file descriptors to keep; 0, 1 and 2 become /dev/null where they are not
            among them.
        parent_pid: the process to die with. Only when it is given, a parent that died before this
            call is noticed. The thread of it that forked must live as long as the cage is wanted.

    Returns:
        What is in force, read back from the kernel.

    Raises:
        SandboxUnavailable: the tier cannot be had here. The caller must end the process.
    """
    _require_single_thread()
    _require_kernel(spec.tier)
    _die_with_parent(parent_pid)
    _lead_session()
    if spec.tier is Tier.NAMESPACES and not namespaces.entered():
        namespaces.enter_namespaces(spec)
        _die_with_parent(_INIT_PID)
        _lead_session()
    _keep_descriptors(keep_fds)
    missing = list(_prefer_for_oom_kill())
    if spec.tier is Tier.NONE:
        _settle(spec, os.geteuid())
        return CageReport(Tier.NONE, 0, False, os.geteuid(), (), (*missing, "T0: no isolation"))
    return _confine(spec, missing)


def _confine(spec: CageSpec, missing: list[str]) -> CageReport:
    """Take the steps of T1: limits, user and capabilities, files, system calls."""
    uid, read_paths, weaker = credentials.choose_uid(spec)
    missing += weaker
    parent = os.getppid()
    _settle(spec, uid)
    try:
        credentials.drop(uid)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected to give up rights and become uid {uid}, the kernel answered {exc}; "
            "choose another drop_uid, or T0 where the code is trusted"
        ) from exc
    # The kernel forgets the death signal when a process changes its user.
    _die_with_parent(parent)
    with open("/proc/self/status", "rb", buffering=0) as status:
        missing += landlock.restrict(spec, read_paths)
        seccomp.install(os.getpid())
        _check_in_force(status.read().decode("ascii", "replace"), uid)
    return CageReport(
        tier=spec.tier,
        landlock_abi=min(landlock.abi_version(), landlock.NEWEST_KNOWN_ABI),
        seccomp=True,
        uid=uid,
        namespaces=namespaces.entered(),
        missing=tuple(missing),
    )


def _require_single_thread() -> None:
    """Refuse a process with threads: filter, ruleset and capabilities go with one thread only."""
    count = len(os.listdir("/proc/self/task"))
    if count != 1:
        raise SandboxUnavailable(
            f"expected a process with one thread, found {count}; enter the cage right after fork "
            "and set OMP_NUM_THREADS=1 and the like before importing numeric packages"
        )


def _require_kernel(tier: Tier) -> None:
    """Refuse before anything was changed when this machine cannot have the tier."""
    if tier is Tier.NONE:
        return
    if not kernel.is_x86_64() or not seccomp.is_available() or landlock.abi_version() == 0:
        raise SandboxUnavailable(
            f"expected 64-bit x86 with seccomp and Landlock for {tier}, found x86-64: "
            f"{kernel.is_x86_64()}, seccomp: {seccomp.is_available()}, Landlock ABI: "
            f"{landlock.abi_version()}; run `hotloop doctor` for the remedies"
        )


def _die_with_parent(parent_pid: int | None) -> None:
    expected = os.getppid() if parent_pid is None else parent_pid
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != (_INIT_PID if namespaces.entered() else expected):
        os._exit(1)  # the parent died before the kernel knew; nobody is left to tell


def _lead_session() -> None:
    """Leave the parent's terminal and process group."""
    if os.getsid(0) == os.getpid():
        return
    try:
        os.setsid()
    except PermissionError as exc:
        raise SandboxUnavailable(
            "expected a process that leads no process group, this one leads its own; "
            "fork once more before entering the cage"
        ) from exc


def _keep_descriptors(keep_fds: Iterable[int]) -> None:
    keep = set(keep_fds)
    for fd in _STANDARD_FDS:
        if fd not in keep:
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, fd)
            if null not in _STANDARD_FDS:
                os.close(null)
    kernel.close_descriptors_except(keep | set(_STANDARD_FDS))


def _prefer_for_oom_kill() -> tuple[str, ...]:
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(_OOM_SCORE))
    except OSError as exc:
        return (f"out-of-memory preference: /proc/self/oom_score_adj cannot be written ({exc})",)
    return ()


def _settle(spec: CageSpec, uid: int) -> None:
    """Hand the work folder to the cage's user, go there, and set the limits."""
    try:
        os.makedirs(temporary_folder(spec.work_dir), exist_ok=True)
        if os.geteuid() == 0 and uid != 0:
            credentials.give_to(uid, spec.work_dir)
        os.chdir(spec.work_dir)
        own_count = "user" in namespaces.entered()
        limits.apply(spec.limits, uid=uid, counts_from_zero=own_count)
    except OSError as exc:
        raise SandboxUnavailable(
            f"expected to set up {spec.work_dir} for uid {uid}, the kernel answered {exc}; "
            "check that the work folder exists and belongs to this user"
        ) from exc


def _check_in_force(status: str, uid: int) -> None:
    """Believe the kernel's own account, not the calls that seemed to succeed."""
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    wanted = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16, "CapPrm": "0" * 16}
    found = {name: fields.get(name, "absent").strip() for name in wanted}
    if found != wanted or set(fields.get("Uid", "").split()) != {str(uid)}:
        raise SandboxUnavailable(
            f"expected {wanted} and uid {uid} in /proc/self/status, found {found} and uid "
            f"{fields.get('Uid', 'absent')!r}; do not run candidates here and report this"
        )
