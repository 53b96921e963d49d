"""Launch a recording once, as the process that a sanitizer watches: `sanitizer_host.py MESSAGE`.

Holds no Python of the candidate and no torch. Kernels of the candidate run here, so before the
first of them the process takes the user and the files of a candidate's cage. Every tensor lies in
an allocation of its own size; inputs and parameters are copied from the judge, for initcheck
through host memory, which it takes for initialised. Outputs hold nothing yet.
"""

from __future__ import annotations

import base64
import json
import signal
import sys
from ctypes import c_size_t, c_uint64, create_string_buffer
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.sandbox.file_cage import confine_files
from hotloop.worker import cudriver as cu
from hotloop.worker.recording import Recording
from hotloop.worker.replayer import Replayer
from hotloop.worker.tables import Tables

LIFE_S = 60
"""Should the judge die, nobody else ends this process."""
PIECE_BYTES = 16 << 20


def main(path: str) -> int:
    """Launch what the message describes. Returns the exit code."""
    signal.alarm(LIFE_S)
    message = json.loads(Path(path).read_text(encoding="utf-8"))
    tables = Tables.open(Path(message["tables"])) if "tables" in message else None
    confine_files(sandbox.CageSpec.from_json(message["cage"]))
    recording = Recording.from_answer(message, tables)
    cu.make_context()
    replayer = Replayer(recording, _allocate(message))
    if message["zero_scratch"]:
        replayer.poison(0)
    cu.call("cuCtxSynchronize")
    replayer.launch()
    cu.call("cuCtxSynchronize")
    print(json.dumps({"launched": len(recording.launches)}), flush=True)
    return 0


def _allocate(message: dict[str, Any]) -> dict[str, int]:
    """Return where each tensor lies, filled where the judge has filled it."""
    source = cu.ipc_open(base64.b64decode(message["handle"]))
    addresses = {"unused": 0}  # the arena's, which no launch refers to
    for tensor in message["tensors"]:
        lead, size = tensor["lead_bytes"], tensor["n_bytes"]
        start = cu.mem_alloc(max(lead + size, 1))
        addresses[tensor["name"]] = start
        if tensor["is_given"]:
            copy = _copy_via_host if message["via_host"] else _copy
            copy(source + tensor["offset"], start + lead, size)
    cu.ipc_close(source)
    return addresses


def _copy(source: int, target: int, n_bytes: int) -> None:
    if n_bytes:
        cu.call("cuMemcpyDtoD_v2", c_uint64(target), c_uint64(source), c_size_t(n_bytes))


def _copy_via_host(source: int, target: int, n_bytes: int) -> None:
    piece = create_string_buffer(min(n_bytes, PIECE_BYTES) or 1)
    for at in range(0, n_bytes, PIECE_BYTES):
        size = min(PIECE_BYTES, n_bytes - at)
        cu.call("cuMemcpyDtoH_v2", piece, c_uint64(source + at), c_size_t(size))
        cu.call("cuMemcpyHtoD_v2", c_uint64(target + at), piece, c_size_t(size))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
