"""Files in folders that an agent may write to: no link is followed, no pipe is waited for.

A link put in place of a folder between a check and its use is not caught.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

from hotloop.errors import ConfigError


def read_plain(path: Path, limit_bytes: int, *, from_end: bool = False) -> str:
    """Return at most `limit_bytes` of a text file, its first or its last ones.

    Raises:
        OSError: it is missing, a link, or no regular file.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path.name} is no regular file")
        if from_end:
            file.seek(max(0, found.st_size - limit_bytes))
        return file.read(limit_bytes).decode(errors="replace")


def create_plain(path: Path) -> BinaryIO:
    """Open a new file in place of the one that is there; its other names keep the old content.

    Raises:
        ConfigError: a link is there.
        OSError: it cannot be written.
    """
    refuse_link(path)
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return open(os.open(path, flags, 0o644), "wb")


def write_plain(path: Path, text: str) -> None:
    """Write a file under a name that nobody knows and rename it: nobody reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with create_plain(temporary) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_link(path: Path) -> None:
    """Refuse a path that is a link.

    Raises:
        ConfigError: it is one.
    """
    if path.is_symlink():
        raise ConfigError(
            f"{path.name} is a link; runs are kept where they are named: remove it, or name "
            "another run"
        )


def refuse_links(folder: Path) -> None:
    """Refuse a folder that is a link, or has one anywhere below it.

    Raises:
        ConfigError: names the first one.
    """
    refuse_link(folder)
    for home, folders, files in os.walk(folder):
        for name in (*folders, *files):
            refuse_link(Path(home, name))
