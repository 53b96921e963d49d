import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.store_suite import conclude, make_attempt


def begun(folder) -> SqliteStore:
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


class JournalMachine(RuleBasedStateMachine):
    """Any order of calls and reopenings keeps what was acknowledged."""

    def __init__(self):
        super().__init__()
        self.parent = tempfile.TemporaryDirectory()
        self.folder = Path(self.parent.name) / "run"
        self.store = begun(self.folder)
        self.expected = {}
        self.spent_s = 0.0

    @rule(number=st.integers(1, 6))
    def propose(self, number):
        attempt, candidate = make_attempt(number)
        known = self.expected.get(number)
        if known is not None and known.verdict is not None:
            with pytest.raises(ValueError, match="verdict"):
                self.store.propose(attempt, candidate)
            return
        self.store.propose(attempt, candidate)
        self.expected[number] = attempt

    @precondition(lambda self: any(a.verdict is None for a in self.expected.values()))
    @rule(data=st.data())
    def conclude(self, data):
        pending = sorted(n for n, a in self.expected.items() if a.verdict is None)
        number = data.draw(st.sampled_from(pending))
        self.expected[number] = conclude(self.expected[number])
        self.store.conclude(self.expected[number])

    @rule(quarters=st.integers(0, 100))
    def spend(self, quarters):
        self.store.spend(quarters / 4)
        self.spent_s += quarters / 4

    @rule()
    def reopen(self):
        self.store.close()
        self.store = begun(self.folder)

    @rule()
    def rebuild(self):
        self.store.rebuild()

    @invariant()
    def nothing_is_lost(self):
        assert list(self.store.attempts()) == [self.expected[n] for n in sorted(self.expected)]
        assert self.store.spent_s() == self.spent_s

    def teardown(self):
        self.store.close()
        self.parent.cleanup()


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(
    max_examples=8, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
