"""The watched process against a driver of a few lines in C: what it launches, in which memory."""

import base64
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from fake_driver import NO_SYMBOLS, build_driver

from hotloop import sandbox
from hotloop.worker.arena import Layout
from hotloop.worker.board import Board
from hotloop.worker.recording import Buffer, Launch, Pointer, Recording
from hotloop.worker.replay import split_arena
from hotloop.worker.sanitizer_memory import separate
from hotloop.worker.sanitizer_tools import Outcome, Watch

DRIVER = r"""
int cuMemAlloc_v2(u64 *p, size_t n) {
    char text[50]; snprintf(text, sizeof text, "allocates %zu", n); note(text);
    *p = (u64)malloc(n + 8); memset((void *)*p, 9, n); return 0;
}
int cuIpcOpenMemHandle_v2(u64 *p, struct { char b[64]; } h, unsigned f) {
    for (int i = 0; i < 8192; i++) judge[i] = i / 100;
    *p = (u64)judge; return getenv("FAKE_NO_IPC") ? 201 : 0;
}
int cuIpcCloseMemHandle(u64 p) { memset(judge, 0, sizeof judge); return 0; }
int cuMemcpyDtoD_v2(u64 to, u64 from, size_t n) {
    note("device to device"); memcpy((void *)to, (void *)from, n); return 0;
}
int cuMemcpyDtoH_v2(void *to, u64 from, size_t n) { memcpy(to, (void *)from, n); return 0; }
int cuMemcpyHtoD_v2(u64 to, void *from, size_t n) {
    note("host to device"); memcpy((void *)to, from, n); return 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = strdup(name); return 0; }
int cuLaunchKernelEx(const void *config, void *f, void **parameters, void **extra) {
    char text[200];
    unsigned char *x = *(unsigned char **)parameters[0], *out = *(unsigned char **)parameters[1];
    unsigned char *scratch = *(unsigned char **)parameters[2];
    snprintf(text, sizeof text, "%s reads %d and %d, output %d, scratch %d", (char *)f, x[0],
             x[99], out[0], scratch[0]);
    note(text);
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return build_driver(tmp_path_factory.mktemp("driver"), DRIVER)


def watch(tmp_path, driver, *, zero_scratch=True, via_host=False, **env):
    """Run the process on a kernel with an input of 100 bytes 4 past an aligned address."""
    pointers = (Pointer(0, 4), Pointer(1, 0), Pointer(2, 0))
    launch = Launch("0" * 64, "add", (1, 1, 1), (64, 1, 1), 1, 0, False, False, pointers)
    buffers = (Buffer("tensor 0", 104), Buffer("tensor 1", 50), Buffer(None, 64))
    recording = Recording(buffers, (launch,), (), {"0" * 64: NO_SYMBOLS})
    tensor = {"name": "tensor 0", "offset": 5124, "n_bytes": 100, "lead_bytes": 4, "is_given": True}
    output = {"name": "tensor 1", "offset": 0, "n_bytes": 50, "lead_bytes": 0, "is_given": False}
    message = recording.to_answer() | {
        "handle": base64.b64encode(bytes(64)).decode(),
        "tensors": [tensor, output],
        "zero_scratch": zero_scratch,
        "via_host": via_host,
        "cage": sandbox.CageSpec(tier=sandbox.Tier.NONE, work_dir=str(tmp_path)).to_json(),
    }
    path, log = tmp_path / "message.json", tmp_path / "log"
    path.write_text(json.dumps(message))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hotloop.worker.sanitizer_host", str(path)],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_LOG": str(log), **env},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done, log.read_text().splitlines() if log.exists() else []


def test_each_tensor_has_its_own_size_and_only_given_ones_are_filled(tmp_path, driver):
    done, log = watch(tmp_path, driver)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"launched": 1}
    assert log == [
        "allocates 104", "device to device", "allocates 50", "allocates 64",
        "add reads 51 and 52, output 9, scratch 0",
    ]  # fmt: skip


def test_for_initcheck_inputs_come_from_the_host_and_scratch_is_as_it_was_allocated(
    tmp_path, driver
):
    done, log = watch(tmp_path, driver, zero_scratch=False, via_host=True)
    assert done.returncode == 0, done.stderr
    assert "host to device" in log
    assert "device to device" not in log
    assert log[-1] == "add reads 51 and 52, output 9, scratch 9"


def test_without_the_judges_buffers_nothing_is_launched(tmp_path, driver):
    done, log = watch(tmp_path, driver, FAKE_NO_IPC="1")
    assert done.returncode != 0
    assert "FAKE_ERROR" in done.stderr
    assert log == []


TOOL = """#!{python}
import pathlib, subprocess, sys
argv = sys.argv[1:]
code = subprocess.call(argv[argv.index("-P") - 1 :])
log = pathlib.Path(argv[argv.index("--log-file") + 1])
log.write_text("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n")
sys.exit(code)
"""


@pytest.mark.parametrize("tier", ["T0", "T1"])
def test_a_tool_runs_it_on_a_recording_of_the_judges_in_its_cage(
    tmp_path, driver, monkeypatch, tier
):
    if tier == "T1" and sandbox.probe().best_tier == sandbox.Tier.NONE:
        pytest.skip("no Landlock here")
    script = tmp_path / "compute-sanitizer"
    script.write_text(TOOL.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    work = tmp_path / "work"
    work.mkdir()
    cage = sandbox.candidate_cage(tier, str(work), gpu=None)
    cage = replace(cage, read_paths=(*cage.read_paths, str(driver)))
    env = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_LOG": str(work / "launched")}
    text, tensors = separate(*on_a_board())
    message = {
        "handle": base64.b64encode(bytes(64)).decode(),
        "tensors": tensors,
        "recording": text,
        "cubins": {"0" * 64: base64.b64encode(NO_SYMBOLS).decode()},
    }
    outcome = Watch(message, frozenset({"add"}), work, env, cage).run(("memcheck", "initcheck"))
    assert outcome == Outcome(ran=("memcheck", "initcheck"))
    launched = [line for line in (work / "launched").read_text().splitlines() if "reads" in line]
    assert [line.rpartition(" ")[2] for line in launched] == ["0", "9"], "scratch"


def on_a_board():
    """A recording as the judge has it, of a kernel with an input, an output and scratch."""
    layout = Layout()
    x, y = (layout.place((100,), (1,), torch.uint8) for _ in range(2))
    board = Board(None, layout, {}, [([x], [y])], 0)
    pointers = (Pointer(0, x.offset), Pointer(0, y.offset), Pointer(1, 0))
    launch = Launch("0" * 64, "add", (1, 1, 1), (64, 1, 1), 1, 0, False, False, pointers)
    buffers = (Buffer("arena", layout.size_bytes), Buffer(None, 64))
    raw = json.loads(Recording(buffers, (launch,), (), {}).to_json())
    split_arena(raw, board)
    return json.dumps(raw), board
