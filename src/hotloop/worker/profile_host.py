"""Launch a recording once, as the process that a profiler watches: `profile_host.py MESSAGE`.

Holds no Python of the candidate and no torch, so that it starts in a fraction of a second. It works
on a copy of the judge's buffers, inputs and state as they were in the recorded call: a profiler
saves and restores what kernels write, which is only certain for memory of the process's own. Where
the buffers cannot be mapped it works on zeros and says so.

It runs as the judge's user, since reading hardware counters is a privilege, and outside of a cage.
What it is given was written by an untrusted process: `Recording.from_answer` checks every address,
the driver checks the machine code.
"""

from __future__ import annotations

import base64
import json
import signal
import sys
from ctypes import c_size_t, c_uint64
from pathlib import Path
from typing import Any

from hotloop.worker import cudriver as cu
from hotloop.worker.recording import Recording
from hotloop.worker.replayer import Replayer
from hotloop.worker.tables import Tables

LIFE_S = 60
"""Should the judge die, nobody else ends this process."""
MARGIN_BYTES = 1 << 20
JUDGE_DATA, ZEROS = "judge", "zeros"


def main(path: str) -> int:
    """Launch what the message describes and say on which data. Returns the exit code."""
    signal.alarm(LIFE_S)
    message = json.loads(Path(path).read_text(encoding="utf-8"))
    tables = Tables.open(Path(message["tables"])) if "tables" in message else None
    recording = Recording.from_answer(message, tables)
    cu.make_context()
    base, data = _copy_arena(message)
    replayer = Replayer(recording, {"state": base, "set": base + message["set_offset"]})
    replayer.poison(0)  # scratch that is read before it is written holds zeros, not leftovers
    cu.call("cuCtxSynchronize")
    replayer.launch()
    cu.call("cuCtxSynchronize")
    print(json.dumps({"launched": len(recording.launches), "data": data}), flush=True)
    return 0


def _copy_arena(message: dict[str, Any]) -> tuple[int, str]:
    """Return memory that holds the judge's buffers up to the end of set 0, and what is in it."""
    n_bytes = message["used_bytes"]
    base = cu.mem_alloc(n_bytes + MARGIN_BYTES)
    cu.memset_d16(base, 0, n_bytes + MARGIN_BYTES - n_bytes % 2)
    try:
        source = cu.ipc_open(base64.b64decode(message["handle"]))
    except cu.CudaDriverError as exc:
        print(f"the judge's buffers cannot be mapped: {exc}", file=sys.stderr)
        return base, ZEROS
    cu.call("cuMemcpyDtoD_v2", c_uint64(base), c_uint64(source), c_size_t(n_bytes))
    cu.call("cuCtxSynchronize")
    cu.ipc_close(source)
    return base, JUDGE_DATA


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
