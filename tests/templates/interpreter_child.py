"""Runs generated kernels in Triton's interpreter, one pickled request at a time.

Started with TRITON_INTERPRET=1 by the fixture in conftest.py; speaks length-prefixed pickles on
stdin and stdout. A `run` request holds the source, the state by name, and the inputs as numpy
arrays. A `trace` request holds an attention file: the reply is what the judge would trace of it,
drawn buffers, and the file's own functions evaluated at all positions.
"""

from __future__ import annotations

import importlib.util
import pickle
import struct
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker import interpreter
from hotloop.worker.load import draw_buffers, install_buffers, load_problem
from hotloop.worker.trace import trace_attention


def _tensor(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    array, dtype = value
    return torch.from_numpy(np.ascontiguousarray(array)).to(getattr(torch, dtype))


def run(request: dict[str, Any], folder: Path, number: int) -> list[np.ndarray]:
    """Return the outputs of one request in float64."""
    path = folder / f"kernel_{number}.py"
    path.write_text(request["source"], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.ModelNew(*request["init_args"])
    own_names = {v: k for k, v in getattr(module, "PARAMETERS", {}).items()}
    for name, value in request["state"].items():
        own = own_names.get(name, name)
        if own in model._buffers:
            model._buffers[own] = _tensor(value)
    if hasattr(model, "prepare"):
        model.prepare()
    result = model(*(_tensor(x) for x in request["inputs"]))
    outputs = result if isinstance(result, tuple) else (result,)
    return [o.to(torch.float64).numpy() for o in outputs]


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """Return the traced problem and its modifications at every position, in float64."""
    problem = Problem(name="example", kind=ProblemKind.ATTENTION, source=request["source"])
    loaded = load_problem(problem, device="cpu", settings=request["settings"])
    buffers = draw_buffers(loaded, 3)
    install_buffers(loaded, buffers)
    spec = trace_attention(loaded)
    axes = [spec.B, spec.H, spec.S, spec.Skv]
    index = [
        torch.arange(n, dtype=torch.int32).view([n if i == j else 1 for j in range(4)])
        for i, n in enumerate(axes)
    ]
    score = torch.from_numpy(request["score"])
    keep = torch.ones(axes, dtype=torch.bool)
    if loaded.score_mod is not None:
        score = loaded.score_mod(score, *index).to(torch.float64).expand(axes)
    if loaded.mask_mod is not None:
        keep = loaded.mask_mod(*index).expand(axes)
    return {
        "spec": spec,
        "score": score.numpy(),
        "keep": keep.numpy(),
        "buffers": {k: v.numpy() for k, v in {**loaded.fixed_buffers, **buffers}.items()},
    }


def main() -> None:
    """Serve until stdin closes."""
    interpreter.install()
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    with tempfile.TemporaryDirectory() as folder:
        number = 0
        while head := requests.read(4):
            number += 1
            request = pickle.loads(requests.read(struct.unpack(">I", head)[0]))
            try:
                if "settings" in request:
                    reply: Any = trace(request)
                else:
                    reply = run(request, Path(folder), number)
            except Exception:  # noqa: BLE001  the test shows whatever the kernel raised
                reply = traceback.format_exc()
            body = pickle.dumps(reply)
            replies.write(struct.pack(">I", len(body)) + body)
            replies.flush()


if __name__ == "__main__":
    main()
