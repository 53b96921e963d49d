import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hotloop.core.verdict import Tier
from hotloop.errors import RunHeld
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE, SqliteStore
from hotloop.testing.fakes import fake_verdict, make_problem, make_spec
from hotloop.testing.lease_suite import take
from hotloop.testing.store_suite import conclude, make_attempt


def begun(folder) -> SqliteStore:
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


NAMES = st.sampled_from(["a", "b"])


class JournalMachine(RuleBasedStateMachine):
    """Any order of calls, crashes and reopenings keeps what was acknowledged."""

    def __init__(self):
        super().__init__()
        self.parent = tempfile.TemporaryDirectory()
        self.folder = Path(self.parent.name) / "run"
        self.store = begun(self.folder)
        self.expected = {}
        self.noted = []
        self.spent_s = 0.0
        self.crashes = 0
        self.leases = {}
        self.ended, self.counted = set(), set()
        self.accepted, self.verdicts = {}, {}
        self.spent_before_s = 0.0

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

    @precondition(lambda self: any(a.verdict is not None for a in self.expected.values()))
    @rule(data=st.data())
    def deliver_a_verdict_twice(self, data):
        settled = sorted(n for n, a in self.expected.items() if a.verdict is not None)
        number = data.draw(st.sampled_from(settled))
        with pytest.raises(ValueError, match="not open"):
            self.store.conclude(self.expected[number])

    @rule(value=st.integers())
    def note(self, value):
        self.store.note("value", {"value": value})
        self.noted.append({"value": value})

    @rule(quarters=st.integers(0, 100))
    def spend(self, quarters):
        self.store.spend(quarters / 4)
        self.spent_s += quarters / 4

    @rule(name=NAMES, tier=st.sampled_from(Tier))
    def lease(self, name, tier):
        if (name, tier) in self.verdicts:
            with pytest.raises(ValueError, match="already"):
                take(self.store, name, tier)
            return
        for epoch in self.open_epochs():
            if self.leases[epoch] == (name, tier):
                self.over(epoch, counts=True)
        lease = take(self.store, name, tier)
        assert lease.epoch > max(self.leases, default=0)
        assert lease.attempt == 1 + list(self.leases.values()).count((name, tier))
        self.leases[lease.epoch] = (name, tier)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def heartbeat(self, data):
        epoch = data.draw(st.sampled_from(sorted(self.leases)))
        assert self.store.leases.renew(epoch, ttl_s=1.0) == (epoch in self.open_epochs())

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), is_failure=st.booleans())
    def expire(self, data, is_failure):
        epoch = data.draw(st.sampled_from(sorted(self.leases)))
        is_open = epoch in self.open_epochs()
        assert self.store.leases.end_lease(epoch, "silent", is_failure=is_failure) == is_open
        if is_open:
            self.over(epoch, counts=is_failure)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), times=st.integers(1, 3), tenths=st.integers(1, 50))
    def result(self, data, times, tenths):
        """A judge answers, in time or not, once or again and again, each time as it likes."""
        epoch = data.draw(st.sampled_from(sorted(self.leases)))
        name, tier = self.leases[epoch]
        verdict = fake_verdict(tenths / 10, name, tier=tier)
        if epoch in self.open_epochs():
            self.verdicts[name, tier] = verdict
            self.accepted[epoch] = verdict
        for _ in range(times):
            assert self.store.leases.deliver(epoch, verdict) == (epoch in self.accepted)

    @rule()
    def fail(self):
        self.store.note("stopped", {"reason": "failed"})
        self.counted.clear()

    def open_epochs(self):
        return [e for e in self.leases if e not in self.ended and e not in self.accepted]

    def over(self, epoch, *, counts):
        self.ended.add(epoch)
        if counts:
            self.counted.add(epoch)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = begun(self.folder)

    @rule(loses_memory=st.booleans(), was_writing=st.booleans())
    def crash(self, loses_memory, was_writing):
        """What is on disk at any moment is what the next process finds: no call was in the way."""
        self.crashes += 1
        dead = self.folder.with_name(f"run-{self.crashes}")
        shutil.copytree(self.folder, dead)
        self.store.close()
        if loses_memory:
            (dead / f"{JOURNAL_FILE}-shm").unlink(missing_ok=True)
        if was_writing:
            half = dead / "blobs" / "ab" / "abcd.tmp1"
            half.parent.mkdir(parents=True, exist_ok=True)
            half.write_bytes(b"{")
        self.folder = dead
        self.store = begun(self.folder)
        assert not list(dead.rglob("*.tmp*"))

    @rule()
    def open_a_second_writer(self):
        with pytest.raises(RunHeld, match="held by pid"):
            SqliteStore(self.folder)

    @rule()
    def rebuild(self):
        self.store.rebuild()

    @invariant()
    def nothing_is_lost(self):
        assert list(self.store.attempts()) == [self.expected[n] for n in sorted(self.expected)]
        assert self.store.spent_s() == self.spent_s
        assert list(self.store.notes("value")) == self.noted
        for number, attempt in self.expected.items():
            _, candidate = make_attempt(number)
            assert self.store.candidate(attempt.candidate_id) == candidate

    @invariant()
    def one_verdict_is_accepted(self):
        for name in ("a", "b"):
            for tier in Tier:
                assert self.store.leases.verdict(name, tier) == self.verdicts.get((name, tier))
        keys = [self.leases[epoch] for epoch in self.accepted]
        assert len(keys) == len(set(keys))

    @invariant()
    def failures_are_counted(self):
        for key in set(self.leases.values()):
            mine = {epoch for epoch, of in self.leases.items() if of == key}
            expected = mine & (self.counted | set(self.open_epochs()))
            assert len(self.store.leases.failures(*key)) == len(expected)

    @invariant()
    def spent_is_monotone(self):
        now_s = self.store.spent_s()
        assert now_s >= self.spent_before_s
        self.spent_before_s = now_s

    @invariant()
    def a_reader_sees_the_same(self):
        with RunReader(self.folder) as reader:
            assert list(reader.attempts()) == list(self.store.attempts())

    def teardown(self):
        self.store.close()
        self.parent.cleanup()


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
