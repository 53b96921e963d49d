import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hotloop.cli import checks
from hotloop.cli.doctor import doctor
from hotloop.cli.main import app

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/team rw - nfs4 server:/x rw
31 30 0:41 / /mnt/team/fast rw - xfs /dev/sdb rw
32 22 0:42 / /mnt/two\\040words rw - fuse.sshfs host:/ rw
"""


@pytest.mark.parametrize(
    ("folder", "state", "kind"),
    [
        ("/home/me", "ok", "ext4"),
        ("/mnt/team/runs", "limited", "nfs4"),
        ("/mnt/team/fast/runs", "ok", "xfs"),
        ("/mnt/two words/x", "limited", "fuse.sshfs"),
    ],
)
def test_network_file_systems_are_told_from_local_ones(folder, state, kind):
    check = checks.file_system(Path(folder), MOUNTS)
    assert check.state == state
    assert kind in check.found
    assert (check.mend is None) == (state == "ok")


def test_a_child_that_hangs_is_given_up():
    text, reason = checks.ask([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert text is None
    assert "did not answer within 0.2 s" in reason


def test_a_child_that_fails_gives_its_last_line_as_the_reason():
    text, reason = checks.ask([sys.executable, "-c", "import no_such_module_here"], 20)
    assert text is None
    assert "no_such_module_here" in reason


def test_a_tool_that_is_missing_is_named():
    assert checks.ask(["no-such-tool"], 1)[1] == "no-such-tool is not installed"


def test_a_missing_package_says_how_to_get_it():
    check = checks.distribution("no-such-distribution", "does nothing")
    assert check.state == "limited"
    assert "pip install" in check.mend
    assert checks.distribution("typer", "").state == "ok"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    assert checks.writable(tmp_path).state == "ok"
    assert checks.writable(tmp_path / "missing").state == "limited"


def test_a_python_that_other_users_cannot_enter_is_named(tmp_path):
    closed = tmp_path / "private"
    closed.mkdir(mode=0o700)
    check = checks.readable_by_others([closed])
    assert str(closed) in check.found
    if os.geteuid() == 0:
        assert str(closed) in check.mend
    assert checks.readable_by_others([Path("/usr")]).state == "ok"


@pytest.mark.slow
def test_doctor_reports_everything_as_one_json_object():
    ran = CliRunner().invoke(app, ["doctor", "--json"])
    assert ran.exit_code == 0
    record = json.loads(ran.stdout)
    names = {c["name"] for c in record["checks"]}
    assert {"python", "torch", "gpu", "isolation", "sqlite", "disk", "write"} <= names
    assert all(c["state"] in ("ok", "limited", "missing") for c in record["checks"])


@pytest.mark.slow
def test_doctor_for_people_is_a_table_with_ways_to_mend(capsys):
    doctor(json=False)
    text = capsys.readouterr().out
    assert "python" in text
    assert text.strip().splitlines()[-1].startswith("hotloop ")
