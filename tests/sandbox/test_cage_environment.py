"""The environment of an untrusted process is written from nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hotloop.sandbox import scrubbed_environment


@pytest.fixture
def polluted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "HF_TOKEN", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("HOME", "/home/someone")


def test_nothing_unnamed_passes(polluted: None) -> None:
    environment = scrubbed_environment("/w")
    assert "planted" not in environment.values()
    assert environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert environment["HOME"] == "/w"


def test_caches_stay_in_the_work_folder() -> None:
    environment = scrubbed_environment("/w")
    for name in (
        "TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
        "CUDA_CACHE_PATH", "TORCH_EXTENSIONS_DIR",
    ):  # fmt: skip
        assert environment[name].startswith("/w/"), name
    assert {environment[n] for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")} == {"1"}


def test_additions_win() -> None:
    assert scrubbed_environment("/w", {"LANG": "C", "X": "y"})["LANG"] == "C"


def test_a_process_starts_with_it(polluted: None, work_dir: str) -> None:
    code = "import tempfile, os; print(open('/proc/self/environ').read().count('planted'))"
    environment = scrubbed_environment(work_dir)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"0\n"
