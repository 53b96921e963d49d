"""What kind of file system a folder lies on: SQLite's WAL needs one that is local.

In WAL mode all processes share memory through a mapped file. File systems whose other side is a
server or another kernel do not keep that coherent (https://sqlite.org/wal.html, "Overview").
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

NOT_LOCAL = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x01021997: "9P",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x786F4256: "VirtualBox shared folder",
}
"""Names by the number in `statfs.f_type` (linux/magic.h, and the file systems' own headers). FUSE
is among them because most of it is a network (sshfs, object stores)."""

_STATFS_BYTES = 256
"""More than `struct statfs` has on any Linux."""


def file_system_magic(folder: Path) -> int | None:
    """Return `statfs.f_type` of an existing folder; None where the system does not say.

    Raises:
        OSError: the folder cannot be examined.
    """
    if sys.platform != "linux":
        return None
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(os.fsencode(folder), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
    return ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
