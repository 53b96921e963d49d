from dataclasses import dataclass, field, replace

import pytest

from hotloop.core.attempt import Budget
from hotloop.engine import Parts, RunResult, StopFlag, run_search
from hotloop.engine.evaluation import HEARTBEAT_S
from hotloop.search.random_search import RandomStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fakes import (
    FakeGenerator,
    FakeVerifier,
    RecordingListener,
    make_problem,
    make_spec,
)


@dataclass
class Bench:
    """Everything a search needs, out of fakes; `run` may be called again to resume."""

    verifier: FakeVerifier = field(default_factory=FakeVerifier)
    generator: FakeGenerator = field(default_factory=FakeGenerator)
    store: MemoryStore = field(default_factory=MemoryStore)
    listener: RecordingListener = field(default_factory=RecordingListener)
    strategy: type = RandomStrategy
    stop: StopFlag = field(default_factory=StopFlag)
    heartbeat_s: float = HEARTBEAT_S

    def parts(self) -> Parts:
        return Parts(
            generator=self.generator,
            strategy=self.strategy,
            verifier=self.verifier,
            store=self.store,
            heartbeat_s=self.heartbeat_s,
        )

    def run(self, **budget: float) -> RunResult:
        problem = make_problem()
        spec = make_spec(problem, device=self.verifier.device, budget=Budget(**budget))
        return run_search(
            problem,
            self.parts(),
            spec=spec,
            listen=self.listener,
            clock=self.verifier.clock,
            stop=self.stop,
        )

    def resumed(self, **changes) -> "Bench":
        """A new process on the same store."""
        fresh = FakeVerifier(device=self.verifier.device, behaviour=self.verifier.behaviour)
        return replace(
            self,
            **{
                "verifier": fresh,
                "listener": RecordingListener(),
                "stop": StopFlag(),
                **changes,
            },
        )


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def cpu_bench():
    return Bench(verifier=FakeVerifier(device="cpu"))
