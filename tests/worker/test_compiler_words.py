"""What compilers say becomes a message with the candidate's own line, whoever raised it."""

import ast
from pathlib import Path
from typing import Any

import pytest
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure

from hotloop.core.verdict import Stage, Status
from hotloop.worker.build_cuda import first_error
from hotloop.worker.evaluation import failure_of
from hotloop.worker.failure import describe_error
from hotloop.worker.module_host import import_file

SOURCE = "line one\nint x = y;\nline three\nint z = w;\n"
NVCC = """kernel.cu(2): error: identifier "y" is undefined
  int x = y;
          ^

kernel.cu(3): warning #177-D: variable "unused" was declared but never referenced
kernel.cu(4): error: identifier "w" is undefined
  int z = w;
          ^

2 errors detected in the compilation of "kernel.cu".
"""
NVRTC = """NVRTC_ERROR_COMPILATION: Compilation error, compilation log:

kernel.cu(2): error: identifier "y" is undefined
1 error detected in the compilation of "kernel.cu".
"""
HOST = """FAILED: main.o
c++ -MMD -MF main.o.d -c /tmp/x/main.cpp -o main.o
/tmp/x/main.cpp:5:19: error: 'no_such' was not declared in this scope
    5 |   return no_such(x);
      |          ^~~~~~~
ninja: build stopped: subcommand failed.
"""


def test_all_errors_of_nvcc_come_with_their_lines_and_warnings_do_not():
    error = first_error(NVCC, SOURCE)
    assert error["line"] == 2
    assert error["errors"] == 2
    assert error["message"].splitlines() == [
        'kernel.cu:2: identifier "y" is undefined', "  int x = y;", "          ^",
        'kernel.cu:4: identifier "w" is undefined', "  int z = w;", "          ^",
    ]  # fmt: skip


def test_a_log_without_carets_takes_the_line_from_the_source():
    assert first_error(NVRTC, SOURCE)["message"].splitlines() == [
        'kernel.cu:2: identifier "y" is undefined', "int x = y;",
    ]  # fmt: skip


def test_an_error_of_the_host_compiler_is_found_without_its_folder():
    message = first_error(HOST, "")["message"]
    assert message.startswith("main.cpp:5: 'no_such' was not declared")
    assert "return no_such(x);" in message
    assert "/tmp" not in message


def test_a_log_without_any_known_error_keeps_its_end():
    assert first_error("something\nbroke", "")["message"] == "something\nbroke"
    assert first_error("ptxas error   : Entry function uses too much shared data", "")[
        "message"
    ].startswith("Entry function uses too much")


CANDIDATE = """import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction


def twice(x):
    y = x * 2
    return y + z


inner = JITFunction(twice)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


def refusal(module, kind):
    """Raise what Triton raises when it compiles a call of `twice` at run time."""
    inner_source = module.inner.src
    at = ast.parse(inner_source).body[0].body[1]
    inner = kind(inner_source, at, "NameError('z is not defined')")
    outer_source = "def kernel(x):\n    return twice(x)\n"
    call = ast.parse(outer_source).body[0].body[0]
    try:
        raise inner
    except CompilationError as cause:
        raise CompilationError(outer_source, call, None) from cause


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "kernel.py"
    path.write_text(CANDIDATE)
    return import_file(path, {})


@pytest.mark.parametrize("kind", [CompilationError, CompileTimeAssertionFailure])
def test_a_kernel_refused_at_run_time_names_the_innermost_line(
    tmp_path: Path, module: Any, kind: type
) -> None:
    with pytest.raises(CompilationError) as caught:
        refusal(module, kind)
    error = describe_error(caught.value, str(tmp_path))
    assert error["kind"] == "compile_error"
    assert error["line"] == CANDIDATE.splitlines().index("    return y + z") + 1
    first, source, caret = error["message"].splitlines()
    assert first == f"kernel.py:{error['line']}: NameError('z is not defined')"
    assert source == "    return y + z"
    assert caret == "    ^"
    failed = failure_of({**error, "kernel": "twice"}, Stage.CORRECTNESS, device="cuda")
    assert (failed.status, failed.stage) == (Status.COMPILE_ERROR, Stage.COMPILE)
    assert failed.evidence.details["line"] == error["line"]
    assert failed.evidence.details["kernel"] == "twice"


def test_other_exceptions_keep_their_words(tmp_path: Path) -> None:
    error = describe_error(ValueError("no such tile"), str(tmp_path))
    assert (error["kind"], error["message"]) == ("exception", "no such tile")
    assert "line" not in error
