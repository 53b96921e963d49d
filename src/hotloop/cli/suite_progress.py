"""What a watcher of a suite knows: problems by state, what runs, what came of what ended.

Pure bookkeeping between the runs' events and whatever shows them; it prints nothing, reads no
clock and is fed by one thread at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotloop.cli.progress import Progress
from hotloop.core.event import Event
from hotloop.core.model import add_known
from hotloop.suite.standing import State

RUNNING = "running"
ORDER = (State.DONE, RUNNING, State.OPEN, State.REPLY, State.VERDICT, State.SKIPPED, State.FAILED)
"""How states are counted off."""


@dataclass(slots=True)
class SuiteProgress:
    """A suite so far. Feed it each run's beginning, events and end."""

    states: dict[str, str]
    """Where each problem stands, in the order of the suite: a `State`, or `running`."""
    running: dict[str, Progress] = field(default_factory=dict)
    """Those that are being worked on, in the order in which they began."""
    began_s: dict[str, float] = field(default_factory=dict)
    """When each began, on the watcher's clock."""
    ended: list[tuple[str, str]] = field(default_factory=list)
    """What came of those that ended in this session: problem and words, the newest last."""
    notes: list[str] = field(default_factory=list)
    """What was said of single problems."""
    tokens: int | None = 0
    """Of runs that ended in this session; None: a call did not say how many."""
    usd: float | None = 0.0
    """None: the price of a call is unknown."""

    @classmethod
    def of(cls, names: Sequence[str], known: Mapping[str, str]) -> SuiteProgress:
        """Return a suite of these problems, of which some are known to stand somewhere."""
        return cls({name: known.get(name, State.OPEN.value) for name in names})

    def begin(self, name: str, *, at_s: float = 0.0, limit_s: float | None = None) -> None:
        """Note that a problem is being worked on: since when, and its budget's wall clock."""
        self.states[name] = RUNNING
        self.running[name] = Progress(limit_s=limit_s)
        self.began_s[name] = at_s

    def take(self, name: str, event: Event) -> None:
        """Take in an event of a problem's run."""
        if name in self.running:
            self.running[name].take(event)

    def end(self, name: str, state: str, words: str) -> None:
        """Note where a problem stands now, and what came of it, if there is more to say."""
        self.states[name] = state
        self.ended.append((name, words or state))
        run = self.running.pop(name, None)
        if run is not None:
            self.tokens = add_known(self.tokens, run.spent_tokens)
            self.usd = add_known(self.usd, run.spent_usd)

    def note(self, name: str, line: str) -> None:
        """Keep a line on a problem."""
        self.notes.append(f"{name}: {line}")

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many problems are in each state that occurs."""
        found = Counter(self.states.values())
        return [(str(state), found[state]) for state in ORDER if found[state]]

    @property
    def settled(self) -> int:
        """How many problems have nothing left to do."""
        over = (State.DONE.value, State.SKIPPED.value)
        return sum(state in over for state in self.states.values())

    @property
    def costs(self) -> tuple[int | None, float | None]:
        """Tokens and dollars of this session, those of running problems included."""
        tokens, usd = self.tokens, self.usd
        for run in self.running.values():
            tokens, usd = add_known(tokens, run.spent_tokens), add_known(usd, run.spent_usd)
        return tokens, usd
