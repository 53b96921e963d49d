from hotloop.search.random_search import RandomStrategy
from hotloop.testing.suites import StrategySuite


class TestRandomStrategy(StrategySuite):
    def make(self, space, seed):
        return RandomStrategy(space, seed)
