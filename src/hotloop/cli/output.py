"""Where text goes: with `--json`, one object on stdout and everything for people on stderr."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.record import to_json
from hotloop.errors import ConfigError, InfraError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a full disk."""


@contextmanager
def writing(out: Path, option: str = "--out") -> Iterator[None]:
    """Say which file could not be written, and whose fault that is.

    Raises:
        InfraError: the disk is full.
        ConfigError: the path that the user named cannot be written.
    """
    try:
        yield
    except OSError as exc:
        if exc.errno in FULL:
            raise InfraError(f"{option} {out}: the disk is full; free some space") from exc
        raise ConfigError(
            f"{option} {out} cannot be written ({exc.strerror}); name another place, or make it "
            "writable"
        ) from exc


def check_file(out: Path, *, like: str) -> None:
    """Refuse a place where no file can be, before any work.

    Args:
        out: what `--out` names.
        like: a name for the file, to be proposed.

    Raises:
        ConfigError: it is a folder, or there is no folder above it.
    """
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder; name a file in it, like {out / like}")
    check_above(out)


def check_above(out: Path, option: str = "--out") -> None:
    """Refuse a place that no folder holds.

    Raises:
        ConfigError: what should be the folder is missing, or is a file.
    """
    if out.parent.is_dir():
        return
    if out.parent.exists():
        raise ConfigError(f"{option} {out}: {out.parent} is a file; name another folder")
    raise ConfigError(f"{option} {out}: there is no folder {out.parent}; make it first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The two streams of one command."""

    as_json: bool

    def say(self, text: str) -> None:
        """Write a line for people that is not the result: always stderr."""
        print(text, file=sys.stderr, flush=True)

    def result(self, record: Any, text: str) -> None:
        """Write the command's result: the record as one JSON object, or its text."""
        if self.as_json:
            self.say(text)
            print(json.dumps(to_json(record), sort_keys=True))
        else:
            print(text)
        sys.stdout.flush()
