"""Honest work runs inside: compilers, subprocesses, torch and Triton."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
from caging import Cage, spec_for

from hotloop.sandbox import scrubbed_environment

C_SOURCE = "#include <stdio.h>\nint twice(int x) { return 2 * x; }\n"
LOAD = "import ctypes; print(ctypes.CDLL('./twice.so').twice(21))"
TORCH_AND_TRITON = """
import torch, triton
a = torch.arange(16.0).reshape(4, 4)
print(int((a @ a).sum()), triton.__version__ is not None, torch.get_num_threads())
"""


def run(spec_dir: str, command: list[str]) -> tuple[int, str]:
    """Run a program that inherits the cage, with the environment of an untrusted process."""
    environment = scrubbed_environment(spec_dir)
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def test_gcc_builds_a_library_that_python_loads(needs_t1: None, cage: Cage) -> None:
    if subprocess.run(["which", "gcc"], capture_output=True, check=False).returncode:
        pytest.skip("gcc is not installed")
    spec = cage.spec
    python = sys.executable if sys.prefix in "".join(spec.read_paths) else "/usr/bin/python3"

    def inside(_: int) -> list[tuple[int, str]]:
        with open("twice.c", "w") as file:
            file.write(C_SOURCE)
        build = ["gcc", "-O2", "-shared", "-fPIC", "-o", "twice.so", "twice.c"]
        return [run(spec.work_dir, build), run(spec.work_dir, [python, "-S", "-c", LOAD])]

    if not os.path.exists(python):
        pytest.skip(f"{python} is not installed")
    assert cage.run(inside) == [(0, ""), (0, "42\n")]


def test_compiler_cannot_read_a_secret(needs_t1: None, cage: Cage, hidden: str) -> None:
    """A compile log goes into a prompt: an included secret would leave the machine."""
    if subprocess.run(["which", "gcc"], capture_output=True, check=False).returncode:
        pytest.skip("gcc is not installed")
    spec = cage.spec

    def inside(_: int) -> tuple[int, str]:
        with open("steal.c", "w") as file:
            file.write(f'#include "{hidden}/secret"\n')
        return run(spec.work_dir, ["gcc", "-E", "steal.c"])

    code, text = cage.run(inside)
    assert code != 0
    assert "planted" not in text


@pytest.mark.parametrize("tier", ["T1", pytest.param("T2", marks=pytest.mark.slow)])
def test_torch_and_triton_run(needs_t2: None, work_dir: str, tier: str) -> None:
    torch = find_spec("torch")
    if torch is None or torch.origin is None or find_spec("triton") is None:
        pytest.skip("torch or triton is not installed")
    packages = os.path.dirname(os.path.dirname(torch.origin))
    code = f"import sys; sys.path.append({packages!r})\n{TORCH_AND_TRITON}"
    spec = spec_for(tier, work_dir)
    spec = replace(spec, read_paths=(*spec.read_paths, packages))
    answer = Cage(spec).run(lambda _: run(work_dir, [sys.executable, "-c", code]))
    assert answer == (0, "3920 True 1\n")
