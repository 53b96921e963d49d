"""Text files that are compressed where their name ends in `.gz`: recordings, bundles, verdicts."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

SUFFIX = ".gz"
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
"""What reading a compressed file that was cut off or changed raises."""


def is_packed(path: Path) -> bool:
    """Whether the file of this name is a compressed one."""
    return path.suffix == SUFFIX


def packed(path: Path, text: str) -> bytes:
    """Return what a file of this name holds of a text.

    There is no time of writing in it: the same text gives the same bytes.
    """
    data = text.encode()
    return gzip.compress(data, mtime=0) if is_packed(path) else data
