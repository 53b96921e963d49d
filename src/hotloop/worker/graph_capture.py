"""Capture work in a CUDA graph; a capture that fails leaves the process as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def captured(work: Callable[[], Any]) -> Any:
    """Return the graph of what `work` launches on torch's current stream.

    Kernels that are launched on another stream (a plain `<<<grid, block>>>` is on the legacy one)
    are not in it, and nothing says so: whoever replays the graph looks at what it computes.

    Returns:
        The graph; None where the work cannot be captured.
    """
    before = torch.cuda.current_stream()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
    except Exception:  # noqa: BLE001  not all honest work can be captured
        # Where ending the capture is what fails, torch stays on its capture stream. That one does
        # not wait for the legacy stream: what ran on it would race with kernels launched there.
        torch.cuda.set_stream(before)
        torch.cuda.synchronize()
        return None
    return graph
