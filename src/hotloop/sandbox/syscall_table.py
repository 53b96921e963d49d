"""System calls of 64-bit x86 that a cage refuses, by number and by reason.

The numbers are those of arch/x86/entry/syscalls/syscall_64.tbl. A deny list, because what torch,
Triton, libcuda, gcc and Python need changes with each release; calls newer than `NEWEST_KNOWN` do
not exist for the caged process, so the list cannot be outrun by a new kernel.
"""

from __future__ import annotations

from types import MappingProxyType

NEWEST_KNOWN = 469

INSPECT_OTHERS = MappingProxyType({
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "pidfd_getfd": 438, "process_madvise": 440, "process_mrelease": 448,
    "perf_event_open": 298, "lookup_dcookie": 212,
})  # fmt: skip
"""Reading or steering another process, or the machine's counters."""

NAMESPACES_AND_MOUNTS = MappingProxyType({
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
})  # fmt: skip
"""Leaving or rebuilding the view of the system."""

KERNEL_SURFACE = MappingProxyType({
    "bpf": 321, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "userfaultfd": 323, "add_key": 248, "request_key": 249, "keyctl": 250,
    "modify_ldt": 154, "uselib": 134, "vhangup": 153, "nfsservctl": 180,
    "fanotify_init": 300, "fanotify_mark": 301,
    "name_to_handle_at": 303, "open_by_handle_at": 304,
})  # fmt: skip
"""Large or rarely checked parts of the kernel; io_uring would also go round this filter."""

ADMINISTRATION = MappingProxyType({
    "kexec_load": 246, "kexec_file_load": 320, "create_module": 174, "init_module": 175,
    "delete_module": 176, "finit_module": 313, "swapon": 167, "swapoff": 168, "reboot": 169,
    "acct": 163, "syslog": 103, "settimeofday": 164, "adjtimex": 159, "clock_settime": 227,
    "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "quotactl": 179, "quotactl_fd": 443,
})  # fmt: skip
"""Changing the machine; also refused by the dropped capabilities."""

FILE_ATTRIBUTES = MappingProxyType({
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452,
    "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
    "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466,
    "file_setattr": 469,
})  # fmt: skip
"""Attributes of files that Landlock does not guard: the user's own files lie open without this."""

SHARED_IPC = MappingProxyType({
    "shmget": 29, "shmat": 30, "shmctl": 31, "shmdt": 67,
    "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220,
    "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "mq_open": 240, "mq_unlink": 241,
})  # fmt: skip
"""Channels without a file: they outlive a run and connect one candidate with the next."""

CONNECTIONS = MappingProxyType({"connect": 42, "accept": 43, "accept4": 288})
"""Reaching a daemon through a Unix socket. bind and listen stay: libcuda needs them."""

REFUSED = MappingProxyType({
    **INSPECT_OTHERS, **NAMESPACES_AND_MOUNTS, **KERNEL_SURFACE, **ADMINISTRATION,
    **FILE_ATTRIBUTES, **SHARED_IPC, **CONNECTIONS,
})  # fmt: skip
"""Refused with EPERM whatever the arguments."""

OWN_PROCESS_ONLY = MappingProxyType({
    "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142,
    "sched_setattr": 314, "migrate_pages": 256, "move_pages": 279,
})  # fmt: skip
"""First argument is a process id: only 0 or the caged process itself. Landlock does not guard
these, and a process may use them on every process of the same user, its judge included."""

SOCKETS = MappingProxyType({"socket": 41, "socketpair": 53})

CLONE, CLONE3, IOCTL, PRCTL, PERSONALITY = 56, 435, 16, 157, 135
SETPRIORITY, IOPRIO_SET = 141, 251
