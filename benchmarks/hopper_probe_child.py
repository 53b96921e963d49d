"""One process of `hopper_probe.py`: compile one source or rival, then check and time it alone.

The argument is a JSON object: sizes, `variant`, `source` or `rival`, a `lock` file that is held
while the GPU is in use, and a `marker` file that appears when it is. The last line of standard
output is the result, as JSON.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from triton.runtime.jit import JITFunction

FIRST_ROWS, LAST_ROWS = 256, 1024
"""Rows of a checked head that are compared with float64."""
REPEATS = 30
"""Runs whose outputs must be equal bit by bit: none of the kernels uses atomics."""
ERROR_LIMIT = 2e-2
"""Largest norm of a row's error over that of the row, for bfloat16 with an approximate tanh."""
SOFTCAP = 20.0
SOFTCAP_Q = 8.0
"""What q is multiplied with to check a soft cap: normal scores stay where tanh is straight."""

Call = Callable[[torch.Tensor], torch.Tensor]
"""The output for a q; k and v stay."""


@contextlib.contextmanager
def compiling_only() -> Iterator[None]:
    """Let kernels be compiled, but not launched."""
    stock = JITFunction.run

    def warm(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return stock(self, *args, grid=grid, warmup=True, **kwargs)

    JITFunction.run = warm
    try:
        yield
    finally:
        JITFunction.run = stock


def load(path: str) -> Any:
    """Return the candidate's model."""
    spec = importlib.util.spec_from_file_location(Path(path).stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.ModelNew().cuda()


def soft_cap(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    """Bound scores."""
    return SOFTCAP * torch.tanh(score / SOFTCAP)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    """Only earlier keys."""
    return q >= kv


def rival(name: str, variant: str, k: Any, v: Any) -> Call:
    """Return a call of cuDNN or of compiled FlexAttention."""
    if name == "cudnn":
        attend = torch.nn.functional.scaled_dot_product_attention

        def call(q: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return attend(q, k, v, is_causal=variant == "causal")

        return call
    n_kv = k.shape[2]
    mask = create_block_mask(causal, None, None, n_kv, n_kv) if variant == "causal" else None
    modify = soft_cap if variant == "softcap" else None
    compiled = torch.compile(flex_attention, fullgraph=True)
    return lambda q: compiled(q, k, v, score_mod=modify, block_mask=mask)


def checked_rows(S: int, device: Any) -> torch.Tensor:
    """Return the numbers of the first and the last rows, each once."""
    rows = torch.arange(S, device=device)
    return rows[(rows < FIRST_ROWS) | (rows >= S - LAST_ROWS)]


def checked_heads(B: int, H: int) -> list[tuple[int, int]]:
    """Return batch and head of the first, two middle and the last head, each once."""
    count = B * H
    return [divmod(n, H) for n in sorted({0, count // 3, 2 * count // 3, count - 1})]


def exact(variant: str, q: Any, k: Any, v: Any, rows: torch.Tensor) -> torch.Tensor:
    """Return `rows` of one head, of which q, k and v are (S, D), in float64."""
    scores = q[rows].double() @ k.double().T * q.shape[-1] ** -0.5
    if variant == "softcap":
        scores = SOFTCAP * torch.tanh(scores / SOFTCAP)
    if variant == "causal":
        hidden = torch.arange(k.shape[0], device=q.device)[None, :] > rows[:, None]
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, -1) @ v.double()


def worst_error(variant: str, q: Any, k: Any, v: Any, out: torch.Tensor) -> float:
    """Return the largest error of a checked row, relative to it; infinity if not all are finite."""
    if not bool(torch.isfinite(out).all()):
        return float("inf")
    worst = 0.0
    rows = checked_rows(q.shape[2], q.device)
    for at in checked_heads(q.shape[0], q.shape[1]):
        want = exact(variant, q[at], k[at], v[at], rows)
        error = (out[at][rows].double() - want).norm(dim=-1) / want.norm(dim=-1)
        worst = max(worst, float(error.max()))
    return worst


def measure(call: Call, request: dict[str, Any], q: Any, k: Any, v: Any) -> dict[str, Any]:
    """Check and time a call that has the GPU to itself."""
    variant = request["variant"]
    checked = q * SOFTCAP_Q if variant == "softcap" else q
    first = call(checked).clone()
    torch.cuda.synchronize()
    error = worst_error(variant, checked, k, v, first)
    status = "right" if error < ERROR_LIMIT else "WRONG"
    if status == "right" and any(not torch.equal(call(checked), first) for _ in range(REPEATS)):
        status = "UNSTEADY"
    ms = triton.testing.do_bench(lambda: call(q), warmup=50, rep=250, return_mode="median")
    share = 0.5 if variant == "causal" else 1.0
    flops = 4 * request["B"] * request["H"] * request["S"] ** 2 * request["D"] * share
    return {"status": status, "error": error, "ms": ms, "tflops": flops / ms * 1e-9}


def resources(module: Any) -> dict[str, int]:
    """Return registers and spills of the main kernel, where Triton tells them."""
    kernel = module.attention_forward
    for cache in kernel.device_caches.values():
        for compiled in cache[0].values():
            registers = getattr(compiled, "n_regs", None)
            spills = getattr(compiled, "n_spills", None)
            if registers is not None and spills is not None:
                return {"registers": registers, "spills": spills}
    return {}


def main() -> None:
    """Measure what the argument asks for."""
    request = json.loads(sys.argv[1])
    torch.manual_seed(0)
    shape = (request["B"], request["H"], request["S"], request["D"])
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    module = None
    if "source" in request:
        module, model = load(request["source"])
        with compiling_only():
            model(q, k, v)

        def own(q: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = model(q, k, v)
            return result

        call: Call = own
    else:
        call = rival(request["rival"], request["variant"], k, v)
        call(q)  # compiles; rivals do not hang
    with Path(request["lock"]).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(request["marker"]).touch()
        result = measure(call, request, q, k, v)
    result["gpu"], result["triton"] = torch.cuda.get_device_name(), triton.__version__
    if module is not None:
        result |= resources(module)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
