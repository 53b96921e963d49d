"""Removing a folder that untrusted code filled: however deep, however odd the names and modes.

shutil.rmtree recurses once for each level, so a thousand nested folders end the process that
cleans up. Here every folder two levels down is first moved up, so depth costs nothing.
"""

from __future__ import annotations

import itertools
import os
import secrets
import stat
from collections.abc import Iterator

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: str) -> None:
    """Remove a folder with everything in it; links are removed, never followed.

    Call it only after every process that could write there is dead. A folder that is not there is
    no error.

    Raises:
        OSError: something could not be removed.
    """
    try:
        top = os.open(folder, _OPEN_FOLDER)
    except FileNotFoundError:
        return
    try:
        os.fchmod(top, 0o700)
        stem = secrets.token_hex(16)  # a name that is taken could not be guessed in advance
        names = (f"{stem}-{n}" for n in itertools.count())
        while entries := os.listdir(top):
            for entry in entries:
                if not _remove_plain(entry, top):
                    _flatten(entry, top, names)
                    os.rmdir(entry, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _remove_plain(name: str, parent: int) -> bool:
    """Remove what is no folder; return False for a folder, which is made accessible."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return True
    os.chmod(name, 0o700, dir_fd=parent)  # mkdir may have given it mode 0
    return False


def _flatten(name: str, top: int, names: Iterator[str]) -> None:
    """Empty one folder: files go, folders move up to `top` under a new name."""
    fd = os.open(name, _OPEN_FOLDER, dir_fd=top)
    try:
        for entry in os.listdir(fd):
            if not _remove_plain(entry, fd):
                os.rename(entry, next(names), src_dir_fd=fd, dst_dir_fd=top)
    finally:
        os.close(fd)
