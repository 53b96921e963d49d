"""Rules of the cage, each with a way to switch it off.

`apply` changes the cage's own modules, so it runs in the sacrificial host only: a process of its
own, in throw-away namespaces, that nothing else shares. The test runner never calls it.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from types import MappingProxyType

from hotloop.sandbox import (
    cage,
    credentials,
    environment,
    kernel,
    landlock,
    limits,
    namespaces,
    output,
    processes,
    seccomp,
)
from hotloop.sandbox import syscall_table as table

_NEVER = 10_000
"""A system call number that the filter compares with and that no program can make."""


def boot(rules: tuple[str, ...]) -> str:
    """Return the program text of a host with these rules switched off."""
    here = os.path.dirname(os.path.abspath(__file__))
    return (
        f"import sys; sys.path[:0] = [sys.argv[1], {here!r}]; import weaken; "
        f"weaken.apply({rules!r}); from hotloop.selftest import host; host.main()"
    )


def canary_boot(rules: tuple[str, ...], *, plain: bool = False) -> str:
    """Return the program text of the canaries in throw-away namespaces, these rules off.

    Args:
        rules: what to switch off.
        plain: aim at a parent without capabilities, like a plain user's: only another one with the
            same rights may change its priority or trace it.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    return (
        f"import sys; sys.path[:0] = [sys.argv[1], {here!r}]; import weaken; "
        "from hotloop.selftest import host; host.enter_throw_away_namespaces(); "
        f"weaken.apply({rules!r}); {plain} and weaken.credentials.clear_capabilities(); "
        "from hotloop.sandbox import canary_attacks; canary_attacks.main()"
    )


def apply(rules: tuple[str, ...]) -> None:
    """Switch rules off in this process, and the check that would notice."""
    assert "pytest" not in sys.modules, "this must never reach the test runner"
    cage._check_in_force = lambda status, uid: None
    for rule in rules:
        RULES[rule]()


def _landlock_files() -> None:
    landlock.handled_rights = lambda abi: 0
    landlock._Ruleset.grant = lambda self, path, rights: None


def _landlock_all() -> None:
    landlock.restrict = lambda spec, read_paths: ()


def _landlock_scope() -> None:
    landlock._SCOPE_ABSTRACT_UNIX_AND_SIGNAL = 0


def _landlock_network() -> None:
    landlock._NET_TCP = 0


def _without(group: MappingProxyType[str, int]) -> Callable[[], None]:
    def switch_off() -> None:
        table.REFUSED = {k: v for k, v in table.REFUSED.items() if k not in group}

    return switch_off


def _set(owner: object, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


def _architecture() -> None:
    built = seccomp.build_filter

    def build(own_pid: int) -> list[seccomp.Instruction]:
        program = built(own_pid)
        program[2] = seccomp.Instruction(6, 0, 0, seccomp.ALLOW)
        return program

    seccomp.build_filter = build


def _no_filter() -> None:
    seccomp.build_filter = lambda own_pid: [seccomp.Instruction(6, 0, 0, seccomp.ALLOW)]


def _unlimited(name: str) -> Callable[[], None]:
    def switch_off() -> None:
        kind, lower = getattr(resource, name), limits.lower
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (hard, hard))
        limits.lower = lambda k, value: None if k == kind else lower(k, value)

    return switch_off


def _user() -> None:
    credentials.drop = lambda uid: credentials.clear_capabilities()


def _capabilities() -> None:
    credentials.drop = lambda uid: None


def _no_new_privileges() -> None:
    prctl = kernel.prctl

    def without(option: int, *arguments: int) -> int:
        return 0 if option == kernel.PR_SET_NO_NEW_PRIVS else prctl(option, *arguments)

    kernel.prctl = without


def _same_namespace(flag: int) -> Callable[[], None]:
    return _set(namespaces, "_SHARED_FLAGS", namespaces._SHARED_FLAGS & ~flag)


def _mount_only(*wanted: str) -> Callable[[], None]:
    def switch_off() -> None:
        mount = kernel.mount

        def without(source: str, target: str, **how: object) -> None:
            if how.get("kind") not in wanted:
                mount(source, target, **how)

        namespaces.kernel = _Overlay(kernel, mount=without)

    return switch_off


class _Overlay:
    """A module with some names replaced."""

    def __init__(self, module: object, **names: object) -> None:
        self.__dict__.update(vars(module))
        self.__dict__.update(names)


RULES: dict[str, Callable[[], None]] = {
    "landlock: all": _landlock_all,
    "landlock: files": _landlock_files,
    "landlock: signals and abstract names": _landlock_scope,
    "landlock: TCP": _landlock_network,
    "seccomp: all": _no_filter,
    "seccomp: other processes": _without(table.INSPECT_OTHERS),
    "seccomp: namespaces and mounts": _without(table.NAMESPACES_AND_MOUNTS),
    "seccomp: kernel surface": _without(table.KERNEL_SURFACE),
    "seccomp: administration": _without(table.ADMINISTRATION),
    "seccomp: file attributes": _without(table.FILE_ATTRIBUTES),
    "seccomp: shared IPC": _without(table.SHARED_IPC),
    "seccomp: connections": _without(table.CONNECTIONS),
    "seccomp: own process only": _set(table, "OWN_PROCESS_ONLY", {}),
    "seccomp: priorities": _set(seccomp, "_WHICH_PROCESS", {}),
    "seccomp: sockets": _set(table, "SOCKETS", {}),
    "seccomp: clone": _set(table, "CLONE", _NEVER),
    "seccomp: clone3": _set(table, "CLONE3", _NEVER),
    "seccomp: personality": _set(table, "PERSONALITY", _NEVER),
    "seccomp: death signal": _set(table, "PRCTL", _NEVER),
    "seccomp: terminal input": _set(table, "IOCTL", _NEVER),
    "seccomp: newer calls": _set(table, "NEWEST_KNOWN", 0x7FFF_0000),
    "seccomp: architecture": _architecture,
    "user": _user,
    "capabilities": _capabilities,
    "no new privileges": _no_new_privileges,
    "limit: memory": _unlimited("RLIMIT_DATA"),
    "limit: file size": _unlimited("RLIMIT_FSIZE"),
    "limit: open files": _unlimited("RLIMIT_NOFILE"),
    "limit: core files": _unlimited("RLIMIT_CORE"),
    "limit: processes": _unlimited("RLIMIT_NPROC"),
    "limit: processor time": _unlimited("RLIMIT_CPU"),
    "environment": _set(environment, "scrubbed_environment", lambda *_: dict(os.environ)),
    "descriptors": _set(cage, "_keep_descriptors", lambda keep: None),
    "session": _set(cage, "_lead_session", lambda: None),
    "death with the parent": _set(cage, "_die_with_parent", lambda parent: None),
    "kill": _set(processes, "kill_tree", lambda pid, timeout_s: True),
    "sweep": _set(processes, "sweep", lambda keep: 0),
    "output limit": _set(output.OutputCollector, "over_limit", False),
    "private folders": _mount_only("tmpfs"),
    "private processes": _mount_only("proc"),
    "private network": _same_namespace(kernel.CLONE_NEWNET),
    "private IPC": _same_namespace(kernel.CLONE_NEWIPC),
    "private host name": _same_namespace(kernel.CLONE_NEWUTS),
}
