from hotloop.store.memory import MemoryStore
from hotloop.testing.suites import StoreSuite


class TestMemoryStore(StoreSuite):
    def make(self, folder):
        return MemoryStore()
