"""Conformance suites: subclass one, give it your implementation, run it with pytest.

    class TestMyStrategy(StrategySuite):
        def make(self, space, seed):
            return MyStrategy(space, seed)

A plug-in that passes its suite works with the loop.
"""

from hotloop.testing.lease_suite import LeaseSuite
from hotloop.testing.model_strategy_suite import ModelStrategySuite
from hotloop.testing.model_suite import ModelSuite
from hotloop.testing.store_suite import StoreSuite
from hotloop.testing.strategy_suite import StrategySuite

__all__ = ["LeaseSuite", "ModelStrategySuite", "ModelSuite", "StoreSuite", "StrategySuite"]
