"""Who ended a compile lane: the compiler, or what forward did while it was followed.

Where the compiler itself aborts: `test_gluon_candidate.py`.
"""

from __future__ import annotations

import signal

import pytest
from scaled_rows import triton, verdict

from hotloop.core.verdict import Stage, Status
from hotloop.verify import LocalVerifier
from hotloop.worker.builds import _lane_end
from hotloop.worker.children import ChildDied
from hotloop.worker.forking import Exit

FORWARD = "    def forward(self, x):\n"
SAID = "LLVM ERROR: unexpected operand layout\n"


class Output:
    """What a lane wrote."""

    def __init__(self, text: str = "", *, over_limit: bool = False) -> None:
        self._text = text
        self.over_limit = over_limit

    def text(self) -> str:
        return self._text


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        ("os._exit(0)", "crash", "exited with code 0"),
        pytest.param("os.kill(os.getpid(), 9)", "crash", "SIGKILL", marks=pytest.mark.slow),
        pytest.param(
            "[print('a' * 4000, flush=True) for _ in range(1 << 16)]", "output_limit", "output",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_what_forward_does_is_not_the_compilers_end(
    cpu_judge: LocalVerifier, line: str, kind: str, says: str
) -> None:
    found = verdict(cpu_judge, triton((FORWARD, f"{FORWARD}        {line}\n")))
    assert (found.status, found.stage) == (Status.RUNTIME_ERROR, Stage.COMPILE)
    assert found.evidence is not None
    assert found.evidence.kind == kind
    assert says in found.message
    assert "compiler" not in found.message


@pytest.mark.parametrize(
    ("end", "output", "entry", "kind"),
    [
        (Exit(None, signal.SIGABRT), Output(SAID), "kernel.py", "compiler_crash"),
        (Exit(None, signal.SIGSEGV), Output(), "kernel.py", "compiler_crash"),
        (Exit(1, None), Output(SAID), "kernel.py", "compiler_crash"),
        (Exit(1, None), Output(), "kernel.cu", "compiler_crash"),
        (Exit(None, signal.SIGKILL), Output(), "kernel.py", "crash"),
        (Exit(None, signal.SIGSYS), Output(), "kernel.py", "policy_violation"),
        (Exit(None, signal.SIGKILL), Output(over_limit=True), "kernel.py", "output_limit"),
        (None, Output(), "kernel.py", "crash"),
    ],
)
def test_by_how_it_ended(end: Exit | None, output: Output, entry: str, kind: str) -> None:
    failed = _lane_end(ChildDied(end, "it ended"), output, entry)  # type: ignore[arg-type]
    is_compiler = kind == "compiler_crash"
    assert failed.evidence.kind == kind
    assert failed.status is (Status.COMPILE_ERROR if is_compiler else Status.RUNTIME_ERROR)
    assert ("compiler's process" in failed.evidence.message) == is_compiler
