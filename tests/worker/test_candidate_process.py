"""What a candidate can do wrong on a CPU: each outcome from a candidate that earns it.

Every one has a twin below or in its own test that does nearly the same, honestly, and passes. All
are verified by one judge, so they also show that no candidate spoils it for the next.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scaled_rows import candidate, forward, triton, verdict

from hotloop.core.candidate import Candidate
from hotloop.core.record import dumps
from hotloop.core.verdict import Stage, Status
from hotloop.sandbox.processes import descendants
from hotloop.verify import LocalVerifier

pytestmark = pytest.mark.timeout(120)

FLOOD = "for _ in range({mebibytes}): print('x' * (1 << 20))"
RAW_ADDRESS = "tl.store((i * 0 + 8).to(tl.int64).to(tl.pointer_type(tl.float32)), x)"
INLINE = (
    'x = tl.inline_asm_elementwise("{instruction} $0, $1;", "=f,f", [x], dtype=tl.float32, '
    "is_pure=True, pack=1)"
)
HANDLES = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\n\n"
GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def copy_kernel(x_ptr, y_ptr, BLOCK: gl.constexpr):
    i = gl.arange(0, BLOCK, layout=gl.BlockedLayout([1], [32], [4], [0]))
    gl.store(y_ptr + i, gl.load(x_ptr + i))

class ModelNew"""


def in_kernel(line: str) -> tuple[str, str]:
    """Return the change that puts a line into the kernel, once x is loaded."""
    load = "    x = tl.load(x_ptr + i, mask=inside)\n"
    return load, f"{load}    {line}\n"


RETURN = "        return y\n"
LAUNCH = "        copy_kernel[(1,)](x, y, 128)\n"
GLUON_TOO = (("class ModelNew", GLUON.lstrip()), (RETURN, LAUNCH + RETURN))
SPOILT: dict[str, tuple[Candidate, Status, str, str]] = {
    "imports ctypes": (
        triton(("import math", "import ctypes")),
        Status.REJECTED_STATIC, "policy_violation", "ctypes",
    ),
    "is empty": (candidate("\n", "kernel.py"), Status.NO_CODE, "policy_violation", "empty"),
    "has no such name": (
        triton(("inside = i < n", "inside = i < m")),
        Status.COMPILE_ERROR, "compile_error", "m is not defined",
    ),
    "raises": (
        triton(forward("raise ValueError('no such tile')")),
        Status.RUNTIME_ERROR, "exception", "ValueError: no such tile",
    ),
    "leaves through sys.exit": (
        triton(forward("sys.exit(0)")), Status.RUNTIME_ERROR, "exception", "SystemExit",
    ),
    "leaves through os._exit": (
        triton(forward("os._exit(0)")), Status.RUNTIME_ERROR, "crash", "exited with code 0",
    ),
    "kills itself": (
        triton(forward("os.kill(os.getpid(), 11)")), Status.RUNTIME_ERROR, "crash", "SIGSEGV",
    ),
    "stores at a raw address": (
        triton(in_kernel(RAW_ADDRESS)), Status.RUNTIME_ERROR, "crash", "SIGSEGV",
    ),
    "stores out of bounds": (
        triton(("tl.store(y_ptr + i, y, mask=inside)", "tl.store(y_ptr + i, y)")),
        Status.RUNTIME_ERROR, "out_of_bounds", "argument 'y_ptr'",
    ),
    "loads out of bounds": (
        triton(("tl.load(x_ptr + i, mask=inside)", "tl.load(x_ptr + i)")),
        Status.RUNTIME_ERROR, "out_of_bounds", "argument 'x_ptr'",
    ),
    "never ends": (
        triton(forward("while True: pass")), Status.TIMEOUT, "timeout_host", "within 3 s",
    ),
    "prints 70 MiB": (
        triton(forward(FLOOD.format(mebibytes=70))),
        Status.RUNTIME_ERROR, "output_limit", "more output",
    ),
    "returns too few rows": (
        triton((RETURN, "        return y[:4]\n")),
        Status.INCORRECT_SHAPE, "shape", "[[8, 48]], got [[4, 48]]",
    ),
    "returns another dtype": (
        triton((RETURN, "        return y.half()\n")),
        Status.INCORRECT_DTYPE, "dtype", "['float32'], got ['float16']",
    ),
    "adds 2": (triton((" + 1", " + 2")), Status.INCORRECT_NUMERICAL, "wrong_values", "output0"),
    "writes into its input": (
        triton(in_kernel("tl.store(x_ptr + i, x * 1.5, mask=inside)")),
        Status.INPUT_MODIFIED, "input_modified", "an input was modified",
    ),
    "writes into its parameter": (
        triton(in_kernel("tl.store(scale_ptr + i, x, mask=i < COLUMNS)")),
        Status.INPUT_MODIFIED, "input_modified", "a parameter or buffer was modified",
    ),
    "uses PTX that only a GPU has": (
        triton(in_kernel(INLINE.format(instruction="sqrt.approx.f32"))),
        Status.COMPILED_ONLY, "needs_gpu", "inline assembly 'sqrt.approx.f32",
    ),
    "launches Gluon beside Triton": (triton(*GLUON_TOO),
        Status.REJECTED_STATIC, "policy_violation", "launches `copy_kernel`, which is Gluon"),
    "launches Gluon where nobody could follow": (triton(*GLUON_TOO, forward()),
        Status.COMPILED_ONLY, "needs_gpu", "Gluon kernel copy_kernel"),
}  # fmt: skip

HONEST: dict[str, Candidate] = {
    "as it is": triton(),
    "fails, sleeps and prints within bounds": triton(
        ("class ModelNew", HANDLES + "class ModelNew"),
        forward("time.sleep(0.2)", FLOOD.format(mebibytes=2)),
    ),
    "computes on copies and returns what was asked for": triton(
        ("        y =", "        x = x.clone().mul_(2).div_(2)\n        y ="),
        (" + 1", " + 0.5 + 0.5"),
        (RETURN, "        return y.double().float().t().t()\n"),
    ),
    "uses PTX that the CPU knows": triton(
        in_kernel(INLINE.format(instruction="ex2.approx.f32").replace("x =", "unused ="))
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_candidate_gets_what_it_earns(cpu_judge: LocalVerifier, name: str) -> None:
    kernel, status, kind, text = SPOILT[name]
    found = verdict(cpu_judge, kernel)
    assert found.status is status, found.message
    assert found.evidence is not None
    assert (found.evidence.kind, text in found.message) == (kind, True), found.message
    assert found.performance is None
    if found.stage is Stage.CORRECTNESS:
        sizes = {"role": "nominal", "name": "nominal", "settings": {"ROWS": 8, "COLUMNS": 48}}
        assert found.evidence.details["workload"] == sizes
        assert found.evidence.details["profile"] in ("shipped", "positive_mean")


@pytest.mark.parametrize("name", HONEST)
def test_honest_candidate_passes(cpu_judge: LocalVerifier, name: str) -> None:
    found = verdict(cpu_judge, HONEST[name])
    assert found.status is Status.PASSED, found.message
    assert found.stage is Stage.CORRECTNESS
    assert found.correctness is not None
    assert all(case.passed for case in found.correctness.cases)


def test_compile_error_names_the_line(cpu_judge: LocalVerifier) -> None:
    kernel, *_ = SPOILT["has no such name"]
    found = verdict(cpu_judge, kernel)
    line = kernel.text().splitlines().index("    inside = i < m") + 1
    assert found.stage is Stage.COMPILE
    assert found.evidence is not None
    assert found.evidence.details["line"] == line
    assert found.message.startswith(f"CompilationError: kernel.py:{line}: ")
    assert "inside = i < m" in found.message


def test_runtime_error_shows_the_candidates_own_lines_and_no_path(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, SPOILT["stores out of bounds"][0])
    assert found.evidence is not None
    trace = str(found.evidence.details["traceback"])
    assert 'File "kernel.py", line' in trace
    assert "scale_kernel[grid]" in trace
    assert "tl.store(y_ptr + i, y)" in trace
    assert "site-packages" not in trace
    assert str(Path(__file__).parents[2]) not in trace


def test_refusal_of_a_later_compiler_pass_names_the_line_and_no_path(
    cpu_judge: LocalVerifier,
) -> None:
    wrong = RAW_ADDRESS.replace(".to(tl.int64)", "")
    kernel = triton(in_kernel(wrong))
    found = verdict(cpu_judge, kernel)
    line = kernel.text().splitlines().index(f"    {wrong}") + 1
    assert found.status is Status.COMPILE_ERROR
    assert f"kernel.py:{line}:" in found.message
    assert "/kernel.py" not in found.message


def test_compiled_only_comes_with_resources(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, SPOILT["uses PTX that only a GPU has"][0])
    assert found.stage is Stage.COMPILE
    (kernel,) = found.resources
    assert kernel.name == "scale_kernel"
    assert kernel.registers


def test_an_answer_that_the_candidate_forges_is_its_own_failure(cpu_judge: LocalVerifier) -> None:
    body = """
def forge():
    frame = b'{"outputs": [3]}'
    for fd in range(3, 32):
        try:
            os.fstat(fd)
            is_socket = os.readlink(f"/proc/self/fd/{fd}").startswith("socket")
        except OSError:
            continue
        if is_socket:
            os.write(fd, len(frame).to_bytes(4, "big") + frame)

class ModelNew"""
    found = verdict(cpu_judge, triton(("class ModelNew", body.lstrip()), forward("forge()")))
    assert found.status is Status.RUNTIME_ERROR
    assert found.evidence is not None
    assert found.evidence.kind == "protocol", found.message


def test_an_error_that_is_no_unicode_can_be_kept(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, triton(forward("raise ValueError(chr(0xd800))")))
    assert found.status is Status.RUNTIME_ERROR
    assert found.message == "ValueError: ?"
    assert dumps(found).encode()


def daemon(after: str) -> Candidate:
    """Return a candidate that forks twice; the grandchild sleeps in a session of its own."""
    body = f"""
def held(module, name):
    return getattr(module, name)

def start():
    fork = held(os, "fork")
    near, far = os.pipe()
    child = fork()
    if child == 0:
        os.setsid()
        grandchild = fork()
        if grandchild == 0:
            time.sleep(300)
        os.write(far, str(grandchild).encode())
        os._exit(0)
    os.waitpid(child, 0)
    grandchild = int(os.read(near, 20))
    os.kill(grandchild, 0)  # it lives
    {after}

class ModelNew"""
    return triton(("class ModelNew", body.lstrip()), forward("start()"))


@pytest.mark.parametrize("after", ["pass", "os.kill(grandchild, 9)"])
def test_a_daemon_left_behind_is_swept(cpu_judge: LocalVerifier, after: str) -> None:
    verdict(cpu_judge, triton())
    before = {p.pid for p in descendants(os.getpid()) if not p.zombie}
    found = verdict(cpu_judge, daemon(after))
    assert found.status is Status.REWARD_HACK
    assert found.evidence is not None
    assert found.evidence.kind == "threads", found.message
    left = {p.pid for p in descendants(os.getpid()) if not p.zombie} - before
    assert left == set()


def reading(path: str) -> Candidate:
    """Return a candidate that reads a file before it answers."""
    return triton(forward(f"os.close(os.open(f'{path}', os.O_RDONLY))"))


@pytest.mark.parametrize("path", ["/proc/{os.getppid()}/mem", "/proc/{os.getppid()}/environ"])
def test_memory_of_the_parent_is_closed(cpu_judge: LocalVerifier, path: str) -> None:
    found = verdict(cpu_judge, reading(path))
    assert found.status is Status.RUNTIME_ERROR
    assert found.message.startswith("PermissionError"), found.message


def test_memory_of_the_judge_is_closed(cpu_judge: LocalVerifier) -> None:
    children = [p.pid for p in descendants(os.getpid()) if p.parent == os.getpid()]
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    (judge,) = [pid for pid, command in commands.items() if b"hotloop.worker.judge" in command]
    found = verdict(cpu_judge, reading(f"/proc/{judge}/mem"))
    assert found.status is Status.RUNTIME_ERROR
    assert found.message.startswith("PermissionError"), found.message


def test_the_problem_file_is_closed(cpu_judge: LocalVerifier, scaled_rows_file: Path) -> None:
    found = verdict(cpu_judge, reading(str(scaled_rows_file)))
    assert found.status is Status.RUNTIME_ERROR
    assert found.message.startswith("PermissionError"), found.message


def test_its_own_folder_is_open(cpu_judge: LocalVerifier) -> None:
    assert verdict(cpu_judge, reading("{os.getcwd()}/kernel.py")).status is Status.PASSED


def test_an_error_that_is_named_like_the_machines_is_still_the_candidates(
    cpu_judge: LocalVerifier,
) -> None:
    lines = ("class ToolMissing(Exception): pass", "raise ToolMissing('no compiler')")
    found = verdict(cpu_judge, triton(forward(*lines)))
    assert found.status is Status.RUNTIME_ERROR
    assert found.evidence is not None
    assert found.evidence.kind == "exception"
