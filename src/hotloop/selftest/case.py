"""What an attack is: a small program, where it belongs, and what must become of it.

A program gets a `Target` and tries. It reports each step, but whether it succeeded is decided from
outside by `facts`: what came out of it, what became of the victim, which files changed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hotloop.sandbox.spec import Limits

STDOUT = 1


class Expect(StrEnum):
    """How a program must end; in every case no fact may speak against the cage."""

    REFUSED = "refused"
    """It tries everything, reaches nothing and reports back."""
    KILLED = "killed"
    """It does not end by itself and is killed at its deadline."""
    CAPPED = "capped"
    """It prints without end and is killed for that."""
    CRASHED = "crashed"
    """A signal ends it, without a core file."""
    NO_RESULT = "no result"
    """It ends without a report, which counts as none."""


@dataclass(slots=True)
class Target:
    """What an attack aims at, all of it planted for this purpose.

    `victim` is the parent of the attacking process, `bearer` a process of the same user with a
    secret in its environment, `address` a place in the victim's memory that holds another one.
    `mark` is what one program leaves for the next. `hidden` is a folder outside the cage that file
    modes leave open; `allowed` one that the cage may read, with files of other users in it.
    """

    victim: int
    bearer: int
    address: int
    hidden: str
    allowed: str
    tcp_port: int
    udp_port: int
    abstract: str
    mark: str
    steps: dict[str, str] = field(default_factory=dict)

    def attempt(self, name: str, action: Callable[[], Any]) -> Any:
        """Try one step; say the bytes or text that it yields, note how it was refused."""
        try:
            value = action()
        except OSError as exc:
            self.steps[name] = errno.errorcode.get(exc.errno or 0, type(exc).__name__)
            return None
        except MemoryError:
            self.steps[name] = "ENOMEM"
            return None
        self.steps[name] = "ok"
        if isinstance(value, (bytes, str)):
            say(value)
        return value

    def attempt_all(self, actions: dict[str, Callable[[], Any]]) -> None:
        """Try every step."""
        for name, action in actions.items():
            self.attempt(name, action)


Program = Callable[[Target], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    Attributes:
        number: number of the attack in the list that tests/attacks/isolation/cases.toml keeps.
        name: what is tried, in a few words; unique.
        programs: run one after the other, each in a cage of its own; the last one's output counts.
        stage: `run` has the cage of a candidate, `compile` that of a compile lane.
        tiers: where it must be refused.
        expect: how the last program must end.
        limits: smaller limits than the cage's, where the attack is a bomb.
        deadline_s: wall-clock seconds for each program.
        needs: `dropped_user`, `compiler` or empty: without it the case cannot be judged.
        safe: may run on a user's machine, where nothing but the cage holds it.
    """

    number: int
    name: str
    programs: tuple[Program, ...]
    stage: str = "run"
    tiers: tuple[str, ...] = ("T1", "T2")
    expect: Expect = Expect.REFUSED
    limits: Limits | None = None
    deadline_s: float = 5.0
    needs: str = ""
    safe: bool = True


def say(text: bytes | str) -> None:
    """Write to standard output, where the harness looks for secrets."""
    data = os.fsencode(text) if isinstance(text, str) else text
    while data:
        data = data[os.write(STDOUT, data) :]


def read(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb", buffering=0) as file:
        return file.read(1 << 20)


def write(path: str, data: bytes = b"x") -> None:
    """Write a file."""
    with open(path, "wb", buffering=0) as file:
        file.write(data)
