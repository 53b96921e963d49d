"""What is read as a kernel file, and what is said of anything else."""

import pytest

from hotloop.errors import ConfigError
from hotloop.kernel_file import read_candidate


def test_a_kernel_file_is_read(tmp_path):
    (tmp_path / "k.py").write_text("import triton\n")
    assert read_candidate(tmp_path / "k.py").language == "triton"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("suite", "suite: expected a kernel file (.py, .cu), got a folder"),
        (
            "nowhere",
            "nowhere: expected a kernel file (.py, .cu), got nothing: there is no such file",
        ),
        ("notes.txt", "notes.txt: expected a kernel file (.py, .cu), got '.txt'"),
        ("gone.py", "gone.py: cannot be read: No such file or directory"),
    ],
)
def test_anything_else_is_named(tmp_path, name, words):
    (tmp_path / "suite").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError) as caught:
        read_candidate(tmp_path / name)
    assert str(caught.value) == f"{tmp_path}/{words}"
