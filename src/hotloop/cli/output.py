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
