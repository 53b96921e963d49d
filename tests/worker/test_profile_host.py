"""The watched process against a driver of a few lines in C: what it launches, and on which data."""

import base64
import json
import os
import subprocess
import sys

import pytest
from fake_driver import NO_SYMBOLS, build_driver

from hotloop.worker.recording import Buffer, Launch, Literal, Pointer, Recording
from hotloop.worker.tables import PIECE_BYTES, Tables, TableWriter

DRIVER = r"""
int cuMemAlloc_v2(u64 *p, size_t n) { *p = (u64)malloc(n); return 0; }
int cuIpcOpenMemHandle_v2(u64 *p, struct { char b[64]; } h, unsigned f) {
    memset(judge, h.b[0], sizeof judge); *p = (u64)judge;
    return getenv("FAKE_NO_IPC") ? 201 : 0;
}
int cuIpcCloseMemHandle(u64 p) { memset(judge, 0, sizeof judge); note("closed"); return 0; }
int cuMemcpyHtoD_v2(u64 to, const void *from, size_t n) {
    memcpy((void *)to, from, n); return 0;
}
int cuMemcpyDtoD_v2(u64 to, u64 from, size_t n) { memcpy((void *)to, (void *)from, n); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) {
    *f = strdup(name); return strcmp(name, "missing") ? 0 : 500;
}
int cuLaunchKernelEx(const void *config, void *f, void **parameters, void **extra) {
    char text[200];
    u64 from = *(u64 *)parameters[0], scratch = *(u64 *)parameters[1];
    snprintf(text, sizeof text, "%s grid %u reads %d scratch %d factor %d", (char *)f,
             *(unsigned *)config, *(unsigned char *)from, *(unsigned char *)scratch,
             *(int *)parameters[2]);
    note(text);
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return build_driver(tmp_path_factory.mktemp("driver"), DRIVER)


def recording(function="scale"):
    parameters = (Pointer(1, 16), Pointer(2, 0), Literal((7).to_bytes(4, "little").hex()))
    launch = Launch("0" * 64, function, (5, 1, 1), (64, 1, 1), 1, 0, False, False, parameters)
    buffers = (Buffer("state", 4096), Buffer("set", 2048), Buffer(None, 64))
    return Recording(buffers, (launch,), (), {"0" * 64: NO_SYMBOLS})


def with_table(table_bytes, place=0):
    """Return a recording whose kernel reads the last byte of a table instead of an input."""
    parameters = (Pointer(2, table_bytes - 1), Pointer(1, 0), Literal("07000000"))
    launch = Launch("0" * 64, "look_up", (1, 1, 1), (64, 1, 1), 1, 0, False, False, parameters)
    buffers = (Buffer("state", 4096), Buffer("set", 2048), Buffer(None, table_bytes, place))
    return Recording(buffers, (launch,), (), {"0" * 64: NO_SYMBOLS})


def write_tables(path, *pieces):
    writer = TableWriter()
    writer.add(pieces)
    tables = Tables.take([writer.seal()])
    tables.copy_to(path)
    tables.close()
    return {"tables": str(path)}


def watch(tmp_path, driver, answer, **env):
    message = {"handle": base64.b64encode(b"\x2a" * 64).decode(), "set_offset": 512,
               "used_bytes": 2049}  # fmt: skip
    path = tmp_path / "message.json"
    path.write_text(json.dumps(message | answer))
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hotloop.worker.profile_host", str(path)],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_LOG": str(log), **env},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done, log.read_text().splitlines() if log.exists() else []


def test_it_launches_the_recording_on_a_copy_of_the_judges_buffers(tmp_path, driver):
    done, log = watch(tmp_path, driver, recording().to_answer())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"launched": 1, "data": "judge"}
    assert log == ["closed", "scale grid 5 reads 42 scratch 0 factor 7"]


def test_without_the_judges_buffers_it_works_on_zeros_and_says_so(tmp_path, driver):
    done, log = watch(tmp_path, driver, recording().to_answer(), FAKE_NO_IPC="1")
    assert json.loads(done.stdout) == {"launched": 1, "data": "zeros"}
    assert log == ["scale grid 5 reads 0 scratch 0 factor 7"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (recording("missing").to_answer(), "FAKE_ERROR"),
        (recording().to_answer() | {"recording": "{}"}, "KeyError"),
        (recording().to_answer() | {"cubins": {}}, "malformed launch"),
    ],
)
def test_what_it_cannot_launch_ends_it_with_words(tmp_path, driver, answer, words):
    done, log = watch(tmp_path, driver, answer)
    assert done.returncode != 0
    assert words in done.stderr
    assert "launched" not in done.stdout
    assert all("grid" not in line for line in log)


def test_a_table_of_many_mebibytes_is_there_when_the_kernel_looks_it_up(tmp_path, driver):
    size = PIECE_BYTES + 12345
    beside = write_tables(tmp_path / "tables", b"ab", bytes(size - 1), b"\x63", b"zz")
    done, log = watch(tmp_path, driver, with_table(size, place=2).to_answer() | beside)
    assert done.returncode == 0, done.stderr
    assert log[-1] == "look_up grid 1 reads 99 scratch 42 factor 7"


def test_tables_that_are_missing_or_too_short_or_a_link_are_not_launched(tmp_path, driver):
    answer = with_table(100, place=1).to_answer()
    short = write_tables(tmp_path / "short", bytes(100))
    (tmp_path / "link").symlink_to(tmp_path / "short")
    for beside, words in [
        ({}, "a table of 100 bytes at 1 is outside of the 0 bytes"),
        (short, "a table of 100 bytes at 1 is outside of the 100 bytes"),
        ({"tables": str(tmp_path / "link")}, "symbolic links"),
    ]:
        done, log = watch(tmp_path, driver, answer | beside)
        assert done.returncode != 0
        assert words in done.stderr
        assert all("grid" not in line for line in log)
