"""Prove that a GPU works: one kernel, one pattern, one copy rate, in a process of its own.

`python -m hotloop.worker.gpu_canary` uses device 0 of what CUDA_VISIBLE_DEVICES leaves and prints
one JSON object; whoever starts it has a deadline (`gpu_probes.py`). A fresh context, because that
of whoever asks may be the broken one; no torch, so that it starts in a fraction of a second.
"""

from __future__ import annotations

import ctypes
import json
import signal
import struct
import time
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from hotloop.core.units import gbps, s_to_ms
from hotloop.worker import cudriver as cu

LIFE_S = 60
"""Should whoever asks die, nobody else ends this process."""
WORDS = 1 << 16
"""What the kernel writes, in 32-bit words: 256 blocks, more than any GPU has multiprocessors."""
COPY_BYTES = 64 << 20
COPIES = 10
SPANS = 20
"""The best of so many counts: one takes 0.3 ms, less than a busy host or another program on the GPU
may hold up a copy."""
FACTOR, SEED = 0x9E3779B1, 0x5EED
"""Word i is i * FACTOR + SEED modulo 2^32: no two words alike (FACTOR is odd)."""
FILL = 0xA5C35A3C
BLOCK = 256
NO_COMPILER = (209, 218, 221, 222, 223)
"""No image for this GPU, invalid PTX, no JIT compiler, PTX too new, JIT switched off: the driver
cannot compile here, which says nothing of the GPU."""

PTX = f"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry canary(.param .u64 p_words, .param .u32 p_count)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<7>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p_words];
  ld.param.u32 %r1, [p_count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mad.lo.u32 %r6, %r5, {FACTOR}, {SEED};
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r6;
DONE:
  ret;
}}
"""


class WrongBytes(Exception):
    """Memory holds something else than what was written."""


def main() -> int:
    """Print `{"ok", "kernel", "gbps"}`, or `{"ok": false, "no_room" | "failed"}`."""
    signal.alarm(LIFE_S)
    answer: dict[str, Any]
    try:
        cu.make_context()
        answer = {"ok": True, "kernel": _run_kernel(), "gbps": round(_copy_gbps(), 1)}
    except cu.CudaDriverError as exc:
        kind = "no_room" if exc.code == cu.OUT_OF_MEMORY else "failed"
        answer = {"ok": False, kind: str(exc)}
    except (OSError, WrongBytes) as exc:  # no libcuda, or a GPU that forgets
        answer = {"ok": False, "failed": str(exc)}
    print(json.dumps(answer), flush=True)
    return 0


def expected_words() -> bytes:
    """Return what the kernel writes, little endian."""
    words = ((i * FACTOR + SEED) & 0xFFFFFFFF for i in range(WORDS))
    return struct.pack(f"<{WORDS}I", *words)


def _run_kernel() -> bool:
    """Launch the kernel and check what it wrote; False where the driver cannot compile it."""
    module, function = c_void_p(), c_void_p()
    try:
        cu.call("cuModuleLoadData", byref(module), PTX.encode())
    except cu.CudaDriverError as exc:
        if exc.code in NO_COMPILER:
            return False
        raise
    cu.call("cuModuleGetFunction", byref(function), module, b"canary")
    pointer, count = c_uint64(cu.mem_alloc(4 * WORDS)), c_uint(WORDS)
    values = (c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(count))
    blocks = -(-WORDS // BLOCK)
    cu.call("cuLaunchKernel", function, blocks, 1, 1, BLOCK, 1, 1, 0, None, values, None)
    cu.call("cuCtxSynchronize")
    if _read(pointer.value, 4 * WORDS) != expected_words():
        raise WrongBytes("a kernel's stores are not what it stored")
    cu.mem_free(pointer.value)
    return True


def _copy_gbps() -> float:
    """Copy a pattern on the GPU, check it, return the rate (read + write) in 1e9 bytes a second."""
    source, target = cu.mem_alloc(COPY_BYTES), cu.mem_alloc(COPY_BYTES)
    cu.call("cuMemsetD32_v2", c_uint64(source), c_uint(FILL), c_size_t(COPY_BYTES // 4))
    _copy(target, source)
    elapsed_s = min(_span_s(target, source) for _ in range(SPANS))
    if _read(target, COPY_BYTES) != struct.pack("<I", FILL) * (COPY_BYTES // 4):
        raise WrongBytes("a copy is not what was copied")
    return gbps(2 * COPY_BYTES * COPIES, s_to_ms(elapsed_s))


def _span_s(target: int, source: int) -> float:
    cu.call("cuCtxSynchronize")
    start = time.perf_counter()
    for _ in range(COPIES):
        _copy(target, source)
    cu.call("cuCtxSynchronize")
    return time.perf_counter() - start


def _copy(target: int, source: int) -> None:
    cu.call("cuMemcpyDtoDAsync_v2", c_uint64(target), c_uint64(source), c_size_t(COPY_BYTES), None)


def _read(pointer: int, n_bytes: int) -> Any:
    host = ctypes.create_string_buffer(n_bytes)
    cu.call("cuMemcpyDtoH_v2", host, c_uint64(pointer), c_size_t(n_bytes))
    return host.raw


if __name__ == "__main__":
    raise SystemExit(main())
