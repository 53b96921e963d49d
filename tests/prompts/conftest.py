"""Fixtures of the tests of prompts."""

from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def in_thread():
    """Run a function in a thread; the returned function waits for its result."""
    pool = ThreadPoolExecutor(8)

    def start(function, *args, **fields):
        return pool.submit(function, *args, **fields).result

    yield start
    pool.shutdown()
