"""A compile lane: builds one candidate ahead of time, in a cage without a GPU or a network.

Triton kernels are compiled for the judge's GPU by running the forward on fake tensors; the results
land in the candidate's own cache folder, where its later run finds them. The answer is a list of
kernels with their resources, or the first error; or what this machine lacks, which is nobody's
fault but the machine's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotloop.errors import InfraError
from hotloop.worker.arguments import decode_args
from hotloop.worker.channel import Channel
from hotloop.worker.failure import describe_error
from hotloop.worker.module_host import write_sources


def serve(channel: Channel) -> int:
    """Answer one build request. Returns the exit code."""
    message, _ = channel.receive()
    try:
        answer = build(message)
    except InfraError as exc:  # ours: no compiler, for example
        answer = {"infra": type(exc).__name__, "message": str(exc)}
    except BaseException as exc:  # noqa: BLE001  untrusted code raises whatever it likes
        answer = {"error": describe_error(exc, os.getcwd())}
    channel.send(answer)
    return 0


def build(message: dict[str, Any]) -> dict[str, Any]:
    """Build one candidate in the current folder."""
    folder = Path.cwd()
    write_sources(folder, message["sources"])
    if message["language"] == "cuda":
        from hotloop.worker import build_cuda

        return build_cuda.build(folder / message["entry"], message)
    from hotloop.worker import build_triton

    return build_triton.build(
        folder / message["entry"],
        pins=message["pins"],
        init_args=decode_args(message["init_args"]),
        inputs=message["inputs"],
        state=message["state"],
    )
