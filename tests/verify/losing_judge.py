"""A stand-in for a judge that speaks the real frames: `losing_judge.py STATE`.

Its GPU is what CUDA_VISIBLE_DEVICES says, GPU-0 by default. A candidate with `# wedge` in its text
takes the GPU away, for every later judge with the same STATE folder too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier
from hotloop.core.wire import PROTOCOL_VERSION, Request, Response, read_frame, write_frame
from hotloop.testing.fakes import fake_verdict

GPU = os.environ.get("CUDA_VISIBLE_DEVICES", "GPU-0")
STATE = Path(sys.argv[1])


def answer(request: Request) -> Any:
    """Return the result of a request; None where the GPU is lost."""
    if request.method == "verify":
        candidate = from_json(Candidate, request.params["candidate"])
        if "# wedge" in candidate.text():
            (STATE / GPU).touch()
        else:
            with (STATE / "judged").open("a") as file:
                file.write(f"{GPU}\n")
            return to_json(fake_verdict(1.0, candidate.id, tier=Tier.FAST))
    if (STATE / GPU).exists():
        return None
    if request.method == "hello":
        found = {"gpu": "fake", "isolation": "T1", "gpu_shared": None}
        return {"protocol": PROTOCOL_VERSION, "environment": found, "gpu": GPU}
    if request.method == "load":
        problem = from_json(Problem, request.params["problem"])
        info = ProblemInfo(
            problem_id=problem.id, device="cuda", inputs=(), outputs=(), parameters=(),
            graph=None, attention=None, flops=None, io_bytes=0, rankable=True,
        )  # fmt: skip
        return to_json(info)
    return {"seconds": 0.0, "ok": True}


def main() -> None:
    """Serve on stdin and stdout until they end."""
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        request = from_json(Request, frame)
        result = answer(request)
        response = Response(id=request.id, result=result)
        if result is None:
            text = f"{GPU} is quarantined after process 7 was killed"
            response = Response(id=request.id, error="DeviceLost", message=text)
        write_frame(sys.stdout.buffer, to_json(response))


if __name__ == "__main__":
    main()
