"""Packages may look at their callers wherever they are installed; their text elsewhere may not."""

import os
import shutil
import subprocess
import sys

import typing_extensions

from hotloop.worker import frame_reads
from hotloop.worker.call_sites import LIBRARIES


def test_a_package_is_known_in_whatever_folder_it_was_installed(tmp_path):
    for folder in LIBRARIES:
        code = compile("1", f"{folder}typing_extensions.py", "exec")
        assert frame_reads._place(code) == "typing_extensions.py:<module>"
    elsewhere = compile("1", f"{tmp_path}/typing_extensions.py", "exec")
    assert frame_reads._place(elsewhere) == f"{tmp_path}/typing_extensions.py:<module>"


INSTALLED_ELSEWHERE = """
import sys
from hotloop.worker.frame_reads import FrameReads
frames = FrameReads()
frames.install()
import typing_extensions
assert typing_extensions.__file__.startswith(sys.path[1]), typing_extensions.__file__
T = typing_extensions.TypeVar("T")
class P(typing_extensions.Protocol[T]):
    pass
assert frames.refused == [], frames.refused
"""


def test_packages_of_a_folder_on_pythonpath_may_look_at_their_callers(tmp_path):
    folder = tmp_path / "packages"
    (folder / "some-1.0.dist-info").mkdir(parents=True)
    shutil.copy(typing_extensions.__file__, folder)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    subprocess.run(
        [sys.executable, "-c", INSTALLED_ELSEWHERE], env={**os.environ, "PYTHONPATH": path},
        check=True, timeout=60,
    )  # fmt: skip
