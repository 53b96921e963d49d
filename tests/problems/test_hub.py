"""A data set from the hub: the real library against a local server, and what users get wrong."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from hub_server import COMMIT, NAME, serve

from hotloop.errors import ConfigError
from hotloop.problems import list_kernelbench
from hotloop.problems.hub import is_hub, pinned

HAS_LIBRARY = importlib.util.find_spec("datasets") is not None
CARD = """---
configs:
- config_name: default
  data_files:
  - {split: level_1, path: data/level_1.jsonl}
  - {split: level_2, path: data/level_2.jsonl}
---
"""
READ = """
import sys
from hotloop.problems import list_kernelbench
from hotloop.problems.hub import pinned
print(pinned(sys.argv[1]))
for entry in list_kernelbench(sys.argv[1]):
    print(entry.name, entry.title, entry.code)
"""


def rows(number, **changes):
    row = {"level": number, "problem_id": 3, "name": f"3_Of_{number}", "code": "# code"}
    return (json.dumps(row | changes) + "\n").encode()


def read(server, tmp_path, data):
    env = {**os.environ, "HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "hf")}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run([sys.executable, "-c", READ, data], env=env, cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not HAS_LIBRARY, reason="the extra `hub` is not installed")
def test_a_data_set_is_read_at_the_commit_that_its_name_stands_for(tmp_path):
    files = {"README.md": CARD.encode(), "data/level_1.jsonl": rows(1),
             "data/level_2.jsonl": rows(2)}  # fmt: skip
    with serve(files) as server:
        done = read(server, tmp_path, f"hub:{NAME}@main")
        assert done.stdout.splitlines() == [
            f"hub:{NAME}@{COMMIT}",
            "kernelbench/1/3 3_Of_1 # code",
            "kernelbench/2/3 3_Of_2 # code",
        ], done.stderr
        missing = read(server, tmp_path, "hub:Owner/Nothing")
        assert "hub:Owner/Nothing: it cannot be read" in missing.stderr
    offline = read(server, tmp_path, f"hub:{NAME}@main")
    assert "it cannot be read" in offline.stderr


@pytest.mark.slow
@pytest.mark.skipif(not HAS_LIBRARY, reason="the extra `hub` is not installed")
def test_a_data_set_with_other_fields_is_told_apart(tmp_path):
    with serve({"README.md": CARD.encode(), "data/level_1.jsonl": rows(1, level="one"),
                "data/level_2.jsonl": rows(2, level="two")}) as server:  # fmt: skip
        done = read(server, tmp_path, f"hub:{NAME}")
    assert "expected int in field 'level', got 'one'" in done.stderr


@pytest.mark.parametrize("data", ["hub:", "hub:name", "hub:a/b/c", "hub:a/b@", "hub:a b/c"])
def test_a_malformed_name_is_refused(data):
    with pytest.raises(ConfigError, match="expected hub:OWNER/NAME"):
        list_kernelbench(data)


@pytest.mark.skipif(HAS_LIBRARY, reason="the extra `hub` is installed")
def test_a_missing_library_is_named():
    with pytest.raises(ConfigError, match=r"hotloop\[hub\]"):
        list_kernelbench(f"hub:Owner/Absent@{COMMIT}")


def test_a_folder_of_the_same_name_is_not_read_in_its_place(tmp_path, monkeypatch):
    (tmp_path / "Owner" / "Here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    wanted = "there is a folder Owner/Here here" if HAS_LIBRARY else "hotloop"
    with pytest.raises(ConfigError, match=wanted):
        list_kernelbench(f"hub:Owner/Here@{COMMIT}")


def test_a_commit_stands_for_itself_and_a_path_is_no_hub_name():
    assert pinned(f"hub:Owner/Name@{COMMIT}") == f"hub:Owner/Name@{COMMIT}"
    assert is_hub("hub:a/b")
    assert not is_hub("data/hub:a")
