"""A child process with Triton's interpreter, shared by the tests of the templates."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


class Interpreter:
    """Runs generated sources; one process for all tests, because it takes seconds to start."""

    def __init__(self) -> None:
        environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "interpreter_child.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def run(
        self,
        source: str,
        inputs: list[Any],
        *,
        state: dict[str, Any] | None = None,
        init_args: tuple[Any, ...] = (),
    ) -> list[np.ndarray]:
        """Return the outputs; inputs and state are (array, dtype name) or plain values."""
        request = {
            "source": source,
            "inputs": inputs,
            "state": state or {},
            "init_args": init_args,
        }
        return self._ask(request, source)

    def trace(self, source: str, score: np.ndarray, settings: dict[str, int]) -> dict[str, Any]:
        """Return what the judge traces of an attention file, and its functions' values."""
        return self._ask({"source": source, "score": score, "settings": settings}, source)

    def _ask(self, request: dict[str, Any], source: str) -> Any:
        body = pickle.dumps(request)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(struct.pack(">I", len(body)) + body)
        self._process.stdin.flush()
        head = self._process.stdout.read(4)
        assert head, "the interpreter process died"
        reply = pickle.loads(self._process.stdout.read(struct.unpack(">I", head)[0]))
        assert not isinstance(reply, str), f"{reply}\n--- source ---\n{source}"
        return reply

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """The child process."""
    child = Interpreter()
    yield child
    child.close()
