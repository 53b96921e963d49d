"""A judge behind ssh: addresses, and a real sshd on this machine with throw-away keys."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from small_kernels import ROWS, ROWS_PROBLEM, candidate

from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError, InfraError, SandboxUnavailable, ToolMissing, WorkerDied
from hotloop.verify.ssh import JudgePlace, SshVerifier, parse_judge

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
PROBLEM = Problem(name="rows", kind=ProblemKind.KERNELBENCH, source=ROWS_PROBLEM)


@pytest.mark.parametrize(
    ("text", "target", "port", "python"),
    [
        ("ssh://gpu1", "gpu1", None, "python3"),
        ("ssh://gpu1/", "gpu1", None, "python3"),
        ("ssh://me@gpu-1.example.com:2222", "me@gpu-1.example.com", 2222, "python3"),
        ("ssh://GPU1/opt/my env/bin/python", "GPU1", None, "/opt/my env/bin/python"),
        ("ssh://me@[::1]:22/usr/bin/python3", "me@::1", 22, "/usr/bin/python3"),
    ],
)
def test_an_address_is_read_and_written(text, target, port, python):
    place = parse_judge(text)
    assert (place.target, place.port, place.python) == (target, port, python)
    assert not place.is_local
    assert not place.is_bundle
    assert str(place) == text.removesuffix("/")
    assert parse_judge(str(place)) == place


def test_the_two_places_without_an_address():
    assert parse_judge("local").is_local
    assert parse_judge("bundle").is_bundle
    assert [str(parse_judge(name)) for name in ("local", "bundle")] == ["local", "bundle"]


@pytest.mark.parametrize(
    "text",
    [
        "", "Local", "gpu1", "ssh://", "ssh:gpu1", "ssh:///usr/bin/python", "ssh://-oProxyCommand=x",
        "ssh://-l@gpu1", "ssh://me:secret@gpu1", "ssh://gpu1:0", "ssh://gpu1:99999",
        "ssh://gpu1:x", "ssh://gpu 1", "ssh://gpu1;reboot", "ssh://gpu1/bin/py\nthon",
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(text):
    with pytest.raises(ConfigError, match="expected local, bundle or ssh://"):
        parse_judge(text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """An sshd of our own, and a client configuration that knows it."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        for name in ("host", "user"):
            key = str(folder / name)
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]
            subprocess.run(command, check=True)
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "user.pub",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "AcceptEnv": "*",
        }
        self.settings = folder / "sshd_config"
        self.settings.write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
        self.known_hosts = folder / "known_hosts"
        public = (folder / "host.pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}")
        self.config = folder / "ssh_config"
        self.config.write_text(
            f"IdentityFile {folder / 'user'}\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {self.known_hosts}\nGlobalKnownHostsFile none\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as its service does at boot
        with (folder / "sshd.log").open("wb") as log:
            command = [SSHD, "-D", "-e", "-f", str(self.settings)]
            self.process = subprocess.Popen(command, stderr=log)

    def wait(self):
        """Return why it does not serve; None when it does."""
        for _ in range(100):
            if self.process.poll() is not None:
                return (self.folder / "sshd.log").read_text().strip()
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return None
        return "it did not listen within 5 s"

    def place(self, *, port=None, python=sys.executable):
        address = f"ssh://{getpass.getuser()}@127.0.0.1:{port or self.port}{python}"
        return parse_judge(address)

    def verifier(self, **options):
        place = options.pop("place", None) or self.place()
        return SshVerifier(place, "cpu", config=self.config, **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs OpenSSH's sshd, ssh and ssh-keygen: install openssh-server")
    server = Server(tmp_path_factory.mktemp("sshd"))
    why_not = server.wait()
    if why_not is not None:
        server.process.kill()
        server.process.wait()
        pytest.skip(f"sshd does not start here: {why_not}")
    yield server
    server.process.terminate()
    server.process.wait()


def refusal(verifier, error=InfraError):
    """Return the line with which a load fails."""
    try:
        with pytest.raises(error) as caught:
            verifier.load(PROBLEM)
    finally:
        verifier.close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_port_is_one_line_with_what_ssh_said(server):
    port = free_port()
    line = refusal(server.verifier(place=server.place(port=port)))
    assert "no connection: ssh: connect to host 127.0.0.1" in line
    assert f"-p {port} " in line


def test_an_unknown_host_key_is_not_accepted(server, tmp_path):
    config = tmp_path / "config"
    config.write_text(server.config.read_text().replace(str(server.known_hosts), "/dev/null"))
    line = refusal(SshVerifier(server.place(), "cpu", config=config))
    assert "Host key verification failed" in line


def test_a_python_that_is_not_there(server):
    line = refusal(server.verifier(place=server.place(python="/no such/python")))
    assert "cannot be run there" in line
    assert "/no such/python" in line


def test_a_python_without_hotloop(server, tmp_path):
    bare = tmp_path / "bare python"  # the space has to survive two shells
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    line = refusal(server.verifier(place=server.place(python=bare)))
    assert "ended with code 1" in line
    assert "hotloop" in line.split("code 1")[1]
    assert "install the same hotloop" in line


def test_a_shell_that_talks_is_not_taken_for_a_judge(server, tmp_path):
    talking = tmp_path / "talking"
    talking.write_text("#!/bin/sh\necho welcome to this machine, have a nice day\ncat\n")
    talking.chmod(0o755)
    line = refusal(server.verifier(place=server.place(python=talking)))
    assert "something else than hotloop's judge answered" in line


def test_a_judge_of_another_version_is_refused(server, tmp_path):
    older = tmp_path / "older"
    older.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "from hotloop.core.wire import read_frame, write_frame\n"
        "request = read_frame(sys.stdin.buffer)\n"
        "write_frame(sys.stdout.buffer, {'id': request['id'], 'result': "
        "{'protocol': 0, 'environment': {}}, 'error': None, 'message': None})\n"
        "sys.stdin.read()\n"
    )
    older.chmod(0o755)
    line = refusal(server.verifier(place=server.place(python=older)))
    assert "it speaks protocol 0, this one 1" in line


def test_nothing_of_our_environment_goes_along(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("LC_SECRET", "secret")
    seen = tmp_path / "seen"
    telling = tmp_path / "telling"
    telling.write_text(f"#!/bin/sh\nenv > {seen}\n")
    telling.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(server.config.read_text() + "SendEnv *\nForwardAgent yes\n")
    refusal(SshVerifier(server.place(python=telling), "cpu", config=config))
    assert "secret" not in seen.read_text()
    assert "SSH_AUTH_SOCK" not in seen.read_text()


def test_without_an_ssh_client(server, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "OpenSSH's client" in refusal(server.verifier(), ToolMissing)


def test_nothing_is_started_for_a_tier_that_does_not_exist():
    with pytest.raises(ConfigError, match="T9"):
        SshVerifier(JudgePlace(kind="ssh", host="nowhere"), "cpu", min_isolation="T9")


@pytest.mark.slow
def test_a_candidate_is_judged_through_a_real_sshd(server, tmp_path):
    verifier = server.verifier(log_path=tmp_path / "judge.log")
    try:
        info = verifier.load(PROBLEM)
        assert (info.problem_id, info.device) == (PROBLEM.id, "cpu")
        verifier.build(candidate(ROWS))
        verdict = verifier.verify(candidate(ROWS), Tier.FAST)
        assert verdict.status is Status.PASSED
        assert verdict.isolation == "T1"
        wrong = candidate(ROWS.replace("(1.0 + tl", "(2.0 + tl"))
        assert verifier.verify(wrong, Tier.FAST).status is Status.INCORRECT_NUMERICAL
        refused = verifier.verify(candidate("import subprocess\n" + ROWS), Tier.FAST)
        assert refused.status is Status.REJECTED_STATIC
    finally:
        verifier.close()
    assert wait_until(lambda: not judges_of(server))


@pytest.mark.slow
def test_a_connection_that_dies_takes_the_judge_there_with_it(server, tmp_path):
    slow = ROWS.replace("import torch,", "import time, torch,").replace(
        "        y = torch", "        time.sleep(60)\n        y = torch"
    )
    verifier = server.verifier(log_path=tmp_path / "judge.log")
    try:
        verifier.load(PROBLEM)
        assert judges_of(server)
        killer = threading.Timer(4.0, lambda: kill_connections(server))
        killer.start()
        with pytest.raises(WorkerDied):
            verifier.verify(candidate(slow), Tier.FAST)
        assert wait_until(lambda: not judges_of(server), seconds=20.0)
        again = verifier.verify(candidate(ROWS), Tier.FAST)  # connected again
        assert again.status is Status.PASSED
    finally:
        verifier.close()


@pytest.mark.slow
def test_a_tier_that_the_machine_there_cannot_give_is_refused_there(server, tmp_path):
    caged = tmp_path / "caged"  # a machine whose kernel has no user namespaces
    caged.write_text(
        f"#!{sys.executable}\n"
        "import runpy, sys\n"
        "from dataclasses import replace\n"
        "from hotloop import sandbox\n"
        "probe, tier = sandbox.probe, sandbox.Tier.NONE\n"
        "sandbox.probe = lambda: replace(probe(), best_tier=tier)\n"
        "sys.argv = ['judge']\n"
        "runpy.run_module('hotloop.worker.judge', run_name='__main__')\n"
    )
    caged.chmod(0o755)
    place = server.place(python=caged)
    line = refusal(server.verifier(place=place, min_isolation="T1"), SandboxUnavailable)
    assert "the judge's machine reaches T0" in line
    verifier = server.verifier(place=place, min_isolation="T0")
    try:
        assert verifier.load(PROBLEM).environment["isolation"] == "T0"
    finally:
        verifier.close()


def judges_of(server):
    """Return the pids of judges that this sshd's sessions run."""
    return [pid for pid, command in below(server.process.pid) if "hotloop.worker.judge" in command]


def kill_connections(server):
    for pid, command in below(server.process.pid):
        if command.startswith("sshd:"):
            os.kill(pid, signal.SIGKILL)


def below(root):
    """Return (pid, command line) of all descendants, also of those that left for pid 1."""
    listing = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listing.splitlines()[1:]]
    known = {root} | {pid for pid, _ in _seen.get(root, ())}
    found = []
    for _ in rows:
        new = [(int(p), c) for p, parent, c in rows if int(parent) in known and int(p) not in known]
        if not new:
            break
        known |= {pid for pid, _ in new}
    found = [(int(pid), command) for pid, _, command in rows if int(pid) in known - {root}]
    _seen[root] = found
    return found


_seen = {}


def wait_until(condition, *, seconds=10.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False
