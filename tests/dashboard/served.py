"""A dashboard in a process of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

ENVIRONMENT = os.environ | {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"}


@contextmanager
def serving(folder, *options):
    """Yield the process and the address of `hotloop serve`; it ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hotloop", "serve", str(folder), "--port", "0", "--json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)["url"]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def fetch(url, path="/", *, headers=None):
    """Return status, headers and text; the path is sent as it is."""
    address = url.split("/")[2].rsplit(":", 1)
    connection = http.client.HTTPConnection(address[0], int(address[1]), timeout=10)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()
