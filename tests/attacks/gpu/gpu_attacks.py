"""Candidates that misuse a GPU, each with what it must come to. Every one ends with its process.

None makes managed memory or multicast objects, changes a setting or resets anything: those are
refused unread (`test_refused_before_running.py`) and never run.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaled_rows import cuda, forward, triton

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Status

CALL_S = 5.0
"""Deadline of one call: an honest one takes milliseconds."""
COLUMNS = 1000
STORE = "  if (i < n) y[i] = scaled[i] + amount;\n"
LAUNCH = "        scale_kernel[grid](x, self.scale, y, x.numel(), x.shape[1], 256)\n"
RETURN = "        return y\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """One candidate and its verdict."""

    candidate: Candidate
    status: Status
    kind: str


def module(*changes: tuple[str, str], above: str = "") -> Candidate:
    """Return the Triton candidate at this judge's size, with changes, and code above its model."""
    if above:
        changes = (*changes, ("class ModelNew", f"{above.lstrip()}\nclass ModelNew"))
    return triton(*changes, columns=COLUMNS)


def in_store(line: str, above: str = "") -> Candidate:
    """Return the CUDA candidate with a line before its last store, and code above its kernels."""
    changes = [(STORE, f"  {line}\n{STORE}")]
    if above:
        first = 'extern "C" __global__ void multiply'
        changes.append((first, f"{above.lstrip()}\n{first}"))
    return cuda(*changes)


def honest() -> Candidate:
    """Return the candidate that every attack was made from."""
    return module()


ONE_BLOCK = """
@triton.jit
def spin(ticket_ptr):
    ticket = tl.atomic_add(ticket_ptr, 2)  # an effect, so that the loop stays
    while ticket != 1:
        ticket = tl.atomic_add(ticket_ptr, 2)
"""
ON_HOST_FLAG = """
@triton.jit
def wait_for(flag_ptr):
    flag = tl.load(flag_ptr, volatile=True)
    while flag == 0:
        flag = tl.load(flag_ptr, volatile=True)
"""
HANGS: dict[str, Candidate] = {
    "one block": module(
        forward(
            "spin[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device))",
        ),
        above=ONE_BLOCK,
    ),
    "full grid": in_store("while (((volatile float*)scaled)[0] != 12345.5f) { }"),
    "flag in mapped host memory": module(
        forward("wait_for[(1,)](torch.zeros(1, dtype=torch.int32, pin_memory=True))"),
        above=ON_HOST_FLAG,
    ),
}

DEEP = """
__device__ __noinline__ float deep(float value, int depth) {
  volatile float kept[64];
  for (int k = 0; k < 64; ++k) kept[k] = value + k;
  return depth < 0 ? kept[0] : deep(kept[depth & 63] + 1.f, depth + 1) + kept[1];
}
"""
ASSERTS = """
@triton.jit(debug=True)
def check(x_ptr):
    tl.device_assert(tl.load(x_ptr) != tl.load(x_ptr), "never true")
"""
LEAK = """
KEPT = []

def leak():
    while True:
        KEPT.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
"""
FAULTS: dict[str, Attack] = {
    "stores at an illegal address": Attack(
        in_store("((volatile float*)scaled)[(1LL << 40) + i] = 1.f;"),
        Status.RUNTIME_ERROR, "cuda_error",
    ),
    "stores at a misaligned address": Attack(
        in_store("*(volatile double*)((char*)scaled + 4) = 1.0;"),
        Status.RUNTIME_ERROR, "cuda_error",
    ),
    "traps": Attack(in_store('asm volatile("trap;");'), Status.RUNTIME_ERROR, "cuda_error"),
    "asserts": Attack(
        module(forward("check[(1,)](x)"), above=ASSERTS), Status.RUNTIME_ERROR, "cuda_error"
    ),
    "overflows its stack": Attack(
        in_store("if (n > 0) ((volatile float*)scaled)[0] = deep(scaled[0], (int)n);", DEEP),
        Status.RUNTIME_ERROR, "cuda_error",
    ),
    "asks for 4 TiB": Attack(
        module(forward("torch.empty(1 << 42, dtype=torch.uint8, device=x.device)")),
        Status.RUNTIME_ERROR, "oom_gpu",
    ),
    "leaks until nothing is left": Attack(
        module(forward("leak()"), above=LEAK), Status.RUNTIME_ERROR, "oom_gpu"
    ),
}  # fmt: skip

HIDDEN = """
def held(module, name):
    return getattr(module, name)

CUDA = held(torch.cuda, "__dict__")
Stream, on_stream = CUDA["Str" + "eam"], CUDA["str" + "eam"]
Graph, captured = CUDA["CUDAGr" + "aph"], CUDA["gr" + "aph"]
Thread = held(sys, "modules")["thr" + "eading"].Thread
KEPT = {}

def busy(ms):
    torch.cuda._sleep(int(ms * 1.5e6))  # cycles of a clock between 1 and 2 GHz

def launch(x, scale, y):
    grid = (triton.cdiv(x.numel(), 256),)
    scale_kernel[grid](x, scale, y, x.numel(), x.shape[1], 256)

def on_another_stream(x, scale, y):
    with on_stream(KEPT.setdefault("stream", Stream())):
        busy(50)
        launch(x, scale, y)

def in_a_thread(x, scale, y):
    def work():
        time.sleep(0.2)
        launch(x, scale, y)
    Thread(target=work, daemon=True).start()

def in_a_graph(x, scale, y):
    if "graph" not in KEPT:
        launch(x, scale, y)
        torch.cuda.synchronize()
        KEPT["graph"], KEPT["y"] = Graph(), torch.empty_like(y)
        with captured(KEPT["graph"]):
            launch(x, scale, KEPT["y"])
    KEPT["graph"].replay()
    y.copy_(KEPT["y"])

def one_call_late(x, scale, y):
    if "late" in KEPT:
        y.copy_(KEPT["late"])
    KEPT["late"] = torch.empty_like(y)
    launch(x, scale, KEPT["late"])
"""
LEFT_WORK: dict[str, Candidate] = {
    name: module(
        (LAUNCH, f"        float(x.sum())\n        {name}(x, self.scale, y)\n"), above=HIDDEN
    )
    for name in ("on_another_stream", "in_a_thread", "in_a_graph", "one_call_late")
}

BURNT_MS = 10.0
BURNS = module(
    (
        LAUNCH,
        f"        float(x.sum())\n{LAUNCH}        with on_stream(Stream()):\n"
        f"            busy({BURNT_MS})\n",
    ),
    above=HIDDEN,
)
"""Right, and leaves the GPU busy behind its back, to slow down what is timed after it."""

PRINTS = module(
    ("    tl.store(y_ptr + i, y, mask=inside)\n",
     "    for _ in range(10):\n        tl.device_print(\"value\", y)\n"
     "    tl.store(y_ptr + i, y, mask=inside)\n"),
)  # fmt: skip

OPENS_NODES = """
def nodes():
    found = []
    for number in range(64):
        try:
            os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
            found.append(number)
        except OSError:
            pass
    if len(found) != 1:
        raise RuntimeError(f"expected one GPU's node, could open {found}")
"""
OPENS = module(forward("nodes()"), above=OPENS_NODES)

ALL: dict[str, Candidate] = {
    **HANGS,
    **{name: attack.candidate for name, attack in FAULTS.items()},
    **LEFT_WORK,
    "burns": BURNS,
    "prints": PRINTS,
    "opens": OPENS,
}
