"""Where text goes: with `--json`, one object on stdout and everything for people on stderr."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from hotloop.core.record import to_json


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
