"""Fakes and conformance suites for whoever writes a strategy, a store, a generator or a verifier.

`hotloop.testing.fakes` needs nothing else; `hotloop.testing.suites` needs pytest.
"""
