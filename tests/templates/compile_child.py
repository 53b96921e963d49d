"""Compiles generated kernels for sm_90 without a GPU; jobs as JSON on stdin, results on stdout.

Each job is a dict with `source`, `inputs` and `state` (shapes and dtypes); the answer to each is
what the compile lane reports, and in `ptx` the text of what was compiled for it, by kernel.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Compile every job."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        from hotloop.worker.build_triton import build  # triton reads the variable at import

        answers = []
        known: set[Path] = set()
        for number, job in enumerate(json.load(sys.stdin)):
            path = Path(folder) / f"kernel_{number}.py"
            path.write_text(job["source"], encoding="utf-8")
            answer = build(path, pins={}, init_args=[], inputs=job["inputs"], state=job["state"])
            found = set(Path(folder).glob("cache/*/*.ptx")) - known
            known |= found
            answer["ptx"] = {file.stem: file.read_text() for file in found}
            answers.append(answer)
        json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
