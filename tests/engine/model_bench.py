"""A bench for searches with a model: scripted calls on a clock that runs fast."""

from dataclasses import dataclass, field, replace
from functools import partial

from hotloop.core.attempt import Budget
from hotloop.engine import Parts, RunResult, StopFlag, run_search
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FakeModelGenerator, FakeModelStrategy, FastClock
from hotloop.testing.fakes import FakeVerifier, RecordingListener, make_problem, make_spec


def fast_verifier(**changes) -> FakeVerifier:
    return FakeVerifier(clock=FastClock(), **changes)


@dataclass
class ModelBench:
    """Everything a search with a model needs; `run` may be called again to resume."""

    script: object
    is_outside: bool = False
    calls: int = 4
    plan: dict = field(default_factory=dict)
    verifier: FakeVerifier = field(default_factory=fast_verifier)
    store: MemoryStore = field(default_factory=MemoryStore)
    listener: RecordingListener = field(default_factory=RecordingListener)
    stop: StopFlag = field(default_factory=StopFlag)
    strategy: object = FakeModelStrategy
    generator: FakeModelGenerator = None
    outage_s: float = 0.05

    def __post_init__(self):
        self.generator = FakeModelGenerator(
            self.verifier.clock, self.script, is_outside=self.is_outside
        )

    def run(self, **budget: float) -> RunResult:
        problem = make_problem()
        parts = Parts(
            generator=self.generator,
            strategy=partial(self.strategy, **self.plan),
            verifier=self.verifier,
            store=self.store,
            calls=self.calls,
            outage_s=self.outage_s,
        )
        spec = make_spec(problem, device=self.verifier.device, budget=Budget(**budget))
        return run_search(
            problem,
            parts,
            spec=spec,
            listen=self.listener,
            clock=self.verifier.clock,
            stop=self.stop,
        )

    def resumed(self, **changes) -> "ModelBench":
        """A new process on the same store."""
        fresh = {
            "verifier": fast_verifier(behaviour=self.verifier.behaviour),
            "listener": RecordingListener(),
            "stop": StopFlag(),
        }
        return replace(self, **{**fresh, **changes})

    def attempts(self, action: str | None = None) -> list:
        return [a for a in self.store.attempts() if action in (None, a.action)]
