"""`hotloop serve`: what it refuses with one line, and a real server from start to end."""

import http.client
import signal
import socket
import time

import pytest
from dashboard_runs import open_run, write_run
from served import fetch, serving

from hotloop.cli.main import main
from hotloop.cli.serve import make_dashboard
from hotloop.dashboard import server
from hotloop.dashboard.gate import is_loopback
from hotloop.dashboard.listing import scan
from hotloop.errors import ConfigError, InfraError


def refused(capsys, *args):
    code = main(["serve", *map(str, args)])
    (line,) = capsys.readouterr().err.strip().splitlines()
    return code, line


def test_a_port_in_use_is_one_line(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refused(capsys, tmp_path, "--port", port)
    assert code == 3
    assert line == (
        f"hotloop: port {port} of 127.0.0.1 is in use by another program; give another --port, or "
        "--port 0 for any that is free"
    )
    server.bind("127.0.0.1", port).close()


def test_what_cannot_be_served_is_one_line(tmp_path, capsys):
    assert refused(capsys, tmp_path / "missing")[0] == 2
    file = tmp_path / "file"
    file.touch()
    code, line = refused(capsys, file)
    assert (code, "is no folder" in line) == (2, True)
    code, line = refused(capsys, tmp_path, "--host", "203.0.113.9")
    assert (code, "cannot be bound" in line) == (2, True)
    code, line = refused(capsys, tmp_path, "--host", "no such name")
    assert (code, "expected an address of this machine" in line) == (2, True)
    code, line = refused(capsys, tmp_path, "--port", "70000")
    assert code == 2
    with pytest.raises(ConfigError):
        server.bind("203.0.113.9", 0)
    with pytest.raises(InfraError), server.bind("127.0.0.1", 0) as taken:
        server.bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("token", ["", "short", "fifteen-letters"])
def test_a_token_that_can_be_guessed_is_refused(tmp_path, capsys, token):
    code, line = refused(capsys, tmp_path, "--token", token)
    assert (code, "expected at least 16 characters" in line) == (2, True)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example", False)],
)  # fmt: skip
def test_only_this_machine_reaches_a_loopback_address(host, is_ours):
    assert is_loopback(host) is is_ours


def test_the_command_serves_streams_and_ends_with_ctrl_c(tmp_path):
    with open_run(tmp_path / "r") as writer, serving(tmp_path) as (process, url):
        status, headers, text = fetch(url)
        assert (status, "made/relu" in text, "server" in headers) == (200, True, False)
        for path in ("/run/../../../etc/passwd", "//etc/passwd", "/static/../app.py"):
            assert fetch(url, path)[0] == 404, path
        assert fetch(url, headers={"Host": "evil.example"})[0] == 403
        (place,) = scan(tmp_path).runs
        connection = http.client.HTTPConnection("127.0.0.1", int(url.split(":")[2][:-1]))
        connection.request("GET", f"/events?run={place.id}&seen=0")
        stream = connection.getresponse()
        lines = [stream.fp.readline() for _ in range(9)]
        assert any(b"event: changed" in line for line in lines)
        writer.add(1, 1.0)
        until = time.monotonic() + 5
        while b"event: changed" not in stream.fp.readline():
            assert time.monotonic() < until
        process.send_signal(signal.SIGINT)  # while the stream is open
        _, err = process.communicate(timeout=10)
        connection.close()
    assert process.returncode == 0
    assert "Traceback" not in err
    assert err.startswith("dashboard of ")


@pytest.mark.slow
def test_elsewhere_a_token_is_made_and_asked_for(tmp_path):
    with serving(tmp_path, "--host", "0.0.0.0") as (_, url):
        token = url.partition("?token=")[2]
        assert len(token) >= 32
        local = f"http://127.0.0.1:{url.split(':')[2].split('/')[0]}/"
        assert fetch(local)[0] == 401
        status, headers, _ = fetch(local, f"/?token={token}")
        assert status == 303
        cookie = next(v for k, v in headers.items() if k.lower() == "set-cookie").split(";")[0]
        assert fetch(local, headers={"Cookie": cookie})[0] == 200


def test_a_first_look_at_1000_attempts_takes_less_than_a_second(tmp_path):
    # Made by hand: writing them one by one would take longer than the look.
    from starlette.testclient import TestClient

    write_run(tmp_path / "r", [2.0, 1.0])
    multiply(tmp_path / "r" / "journal.sqlite", 1000)
    (place,) = scan(tmp_path).runs
    with TestClient(make_dashboard(tmp_path).app, base_url="http://127.0.0.1") as client:
        began_s = time.process_time()  # other programs do not count
        answer = client.get(f"/run/{place.id}")
        took_s = time.process_time() - began_s
    assert "1000 of 1000 attempts" in answer.text
    assert took_s < 1.0


def multiply(journal, count):
    """Repeat the second attempt of a run until it has `count`."""
    import json
    import sqlite3

    connection = sqlite3.connect(journal)
    (text, at) = connection.execute(
        "SELECT payload, written_at FROM events WHERE kind = 'concluded' ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    payload = json.loads(text)
    for n in range(3, count + 1):
        payload["attempt"] |= {"id": n, "parents": [n - 1], "finished_s": 5.0 * n}
        connection.execute("INSERT INTO events (kind, payload, written_at) VALUES (?, ?, ?)",
                           ("concluded", json.dumps(payload), at))  # fmt: skip
    connection.commit()
    connection.close()
