"""Time how long inputs take to be drawn on the CPU, as a harness does that draws them there.

    python -m benchmarks.cpu_draw

KernelBench level 1, problem 19, asks for one float32 tensor of 4096 x 393216 from `torch.rand`. Its
harness draws it for each correctness trial and once for the timing, six times with five trials, and
copies it to the GPU. Prints one JSON object: seconds of each draw, and of the copy where there is a
GPU.
"""

from __future__ import annotations

import json
import time

import torch

SHAPE = (4096, 393216)
DRAWS = 2


def main() -> None:
    """Draw and print."""
    draw_s, copy_s = [], []
    for _ in range(DRAWS):
        start = time.perf_counter()
        values = torch.rand(*SHAPE)
        draw_s.append(time.perf_counter() - start)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            start = time.perf_counter()
            values.cuda()
            torch.cuda.synchronize()
            copy_s.append(time.perf_counter() - start)
        del values
    threads = torch.get_num_threads()
    print(json.dumps({"draw_s": draw_s, "copy_s": copy_s, "shape": SHAPE, "threads": threads}))


if __name__ == "__main__":
    main()
