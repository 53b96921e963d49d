"""What ruff says of generated sources."""

import subprocess
import sys

import pytest


def assert_nothing_found(sources, folder):
    """Write the sources to a folder and let ruff look at them; without ruff the test is skipped."""
    pytest.importorskip("ruff")
    for number, source in enumerate(sources):
        (folder / f"kernel_{number}.py").write_text(source)
    rules = "--select=E,F,W,B,I"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", rules, "--line-length=100", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
