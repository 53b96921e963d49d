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

CHECKED_ROWS = 1024
"""Rows of the first and the last head that are compared with float64."""
REPEATS = 30
"""Runs whose outputs must be equal bit by bit: none of the kernels uses atomics."""
ERROR_LIMIT = 2e-2
"""Largest error in units of the largest value, for bfloat16 with an approximate tanh."""
SOFTCAP = 20.0

Call = Callable[[], torch.Tensor]


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


def rival(name: str, variant: str, q: Any, k: Any, v: Any) -> Call:
    """Return a call of cuDNN or of compiled FlexAttention."""
    if name == "cudnn":
        attend = torch.nn.functional.scaled_dot_product_attention

        def call() -> torch.Tensor:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return attend(q, k, v, is_causal=variant == "causal")

        return call
    n_q, n_kv = q.shape[2], k.shape[2]
    mask = create_block_mask(causal, None, None, n_q, n_kv) if variant == "causal" else None
    modify = soft_cap if variant == "softcap" else None
    compiled = torch.compile(flex_attention, fullgraph=True)
    return lambda: compiled(q, k, v, score_mod=modify, block_mask=mask)


def exact(variant: str, q: Any, k: Any, v: Any, batch: int, head: int) -> torch.Tensor:
    """Return the last rows of one head in float64."""
    rows = q[batch, head, -CHECKED_ROWS:].double()
    scores = rows @ k[batch, head].double().T * q.shape[-1] ** -0.5
    if variant == "softcap":
        scores = SOFTCAP * torch.tanh(scores / SOFTCAP)
    if variant == "causal":
        place = torch.arange(q.shape[2], device=q.device)
        hidden = place[None, : k.shape[2]] > place[-rows.shape[0] :, None]
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, -1) @ v[batch, head].double()


def worst_error(variant: str, q: Any, k: Any, v: Any, out: torch.Tensor) -> float:
    """Return the largest error of two heads, infinity where a value is not finite."""
    if not bool(torch.isfinite(out).all()):
        return float("inf")
    worst = 0.0
    for batch, head in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        want = exact(variant, q, k, v, batch, head)
        got = out[batch, head, -want.shape[0] :].double()
        worst = max(worst, float((got - want).abs().max() / want.abs().max()))
    return worst


def measure(call: Call, request: dict[str, Any], q: Any, k: Any, v: Any) -> dict[str, Any]:
    """Check and time a call that has the GPU to itself."""
    variant = request["variant"]
    first = call().clone()
    torch.cuda.synchronize()
    error = worst_error(variant, q, k, v, first)
    status = "right" if error < ERROR_LIMIT else "WRONG"
    if status == "right" and any(not torch.equal(call(), first) for _ in range(REPEATS)):
        status = "UNSTEADY"
    ms = triton.testing.do_bench(call, warmup=50, rep=250, return_mode="median")
    share = 0.5 if variant == "causal" else 1.0
    flops = 4 * request["B"] * request["H"] * request["S"] ** 2 * request["D"] * share
    return {"status": status, "error": error, "ms": ms, "tflops": flops / ms * 1e-9}


def resources(module: Any) -> dict[str, int]:
    """Return registers and spills of the main kernel, where Triton tells them."""
    kernel = module.attention_forward
    for cache in kernel.device_caches.values():
        for compiled in cache[0].values():
            found = getattr(compiled, "n_regs", None), getattr(compiled, "n_spills", None)
            if None not in found:
                return {"registers": found[0], "spills": found[1]}
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

        def call() -> torch.Tensor:
            result: torch.Tensor = model(q, k, v)
            return result
    else:
        call = rival(request["rival"], request["variant"], q, k, v)
        call()  # compiles; rivals do not hang
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
