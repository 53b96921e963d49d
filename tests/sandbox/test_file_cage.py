"""The cage of a process that a tool watches: files are shut as a candidate's, sockets are open."""

import json
import os
import subprocess
import sys

import pytest

from hotloop import sandbox

SCRIPT = """
import json, os, socket, sys
from hotloop import sandbox
from hotloop.sandbox.file_cage import confine_files
spec = sandbox.CageSpec.from_json(json.loads(sys.argv[1]))
server = socket.create_server(("127.0.0.1", 0))
uid = confine_files(spec)
def attempt(act):
    try:
        act()
    except OSError as exc:
        return type(exc).__name__
    return "done"
told = {
    "uid": [uid, os.geteuid()],
    "reads": attempt(lambda: open(sys.argv[2]).read()),
    "writes": attempt(lambda: open(sys.argv[2], "w")),
    "writes_own": attempt(lambda: open("own", "w").write("x")),
    "connects": attempt(lambda: socket.create_connection(server.getsockname())),
}
print(json.dumps(told))
"""


def confined(tmp_path, tier):
    """Run the script below a folder that everybody may pass."""
    work, secret = tmp_path / "work", tmp_path / "secret"
    work.mkdir()
    secret.write_text("secret")
    secret.chmod(0o666)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    spec = sandbox.candidate_cage(tier, str(work), gpu=None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, json.dumps(spec.to_json()), str(secret)],
        capture_output=True, text=True, timeout=60, env=os.environ, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), spec


@pytest.mark.skipif(sandbox.probe().best_tier == sandbox.Tier.NONE, reason="no Landlock here")
def test_it_reaches_its_folder_and_the_tool_and_no_other_file(tmp_path):
    told, spec = confined(tmp_path, "T1")
    assert (told["reads"], told["writes"]) == ("PermissionError", "PermissionError")
    assert (told["writes_own"], told["connects"]) == ("done", "done")
    assert told["uid"][0] == told["uid"][1]
    if os.geteuid() == 0 and spec.drop_uid in told["uid"]:
        assert told["uid"][0] != 0


def test_at_t0_nothing_is_taken_away(tmp_path):
    told, _ = confined(tmp_path, "T0")
    assert (told["reads"], told["writes"], told["connects"]) == ("done", "done", "done")
    assert told["uid"] == [os.geteuid(), os.geteuid()]
