"""Compiles generated Hopper kernels for sm_90a without a GPU and looks at the machine code.

Each job on stdin is a dict with `source`, `inputs` and `state` as for `compile_child.py`; the
answer holds what the compile lane reports and, for the attention kernel, what its code shows.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_LABEL = re.compile(r"^(\.L_x_\d+):")
_BRANCH = re.compile(r"BRA.*`\((\.L_x_\d+)\)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", re.M)


def look_at(cubin: Path) -> dict[str, Any]:
    """Return facts about the machine code."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    done = subprocess.run([str(tool), "-c", str(cubin)], capture_output=True, text=True, check=True)
    code = _INSTRUCTION.findall(done.stdout)
    overlapped: list[int] = []
    since: int | None = None
    for text in code:
        if "WARPGROUP.DEPBAR.LE gsb0, 0x1" in text:
            since = 0
        elif "WARPGROUP.DEPBAR" in text:
            overlapped += [since] if since is not None else []
            since = None
        elif since is not None and "MUFU" in text:
            since += 1
    return {
        "overlapped_mufu": overlapped,
        "products": sum("HGMMA" in text for text in code),
        "instructions": len(code),
        "permutes": sum("PRMT" in text for text in code),
        "register_moves": sum(" MOV R" in f" {text}" for text in code),
        "shared_loads": sum(text.startswith(("LDS", "LDSM")) for text in code),
        "copies": sum("UTMALDG" in text for text in code),
        **_main_loop(done.stdout),
    }


def _main_loop(text: str) -> dict[str, int]:
    """Return how many instructions the shortest loop with products and exponentials has."""
    labels: dict[str, int] = {}
    code: list[str] = []
    bodies: list[list[str]] = []
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif found := _INSTRUCTION.match(line):
            code.append(found[1])
            target = _BRANCH.search(found[1])
            if target and target[1] in labels:
                bodies.append(code[labels[target[1]] :])
    main = min((b for b in bodies if _makes_weights(b)), key=len, default=[])
    return {"loop": len(main), "conversions": sum("I2F" in t for t in main)}


def _makes_weights(code: list[str]) -> bool:
    exponentials = sum("MUFU.EX2" in text for text in code)
    return exponentials > 16 and any("HGMMA" in text for text in code)


def main() -> None:
    """Compile every job."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        os.environ["TRITON_CACHE_DIR"] = str(cache)
        from hotloop.worker.build_triton import build  # triton reads the variable at import

        answers = []
        for number, job in enumerate(json.load(sys.stdin)):
            path = Path(folder) / f"kernel_{number}.py"
            path.write_text(job["source"], encoding="utf-8")
            answer = build(path, pins={}, init_args=[], inputs=job["inputs"], state=job["state"])
            cubins = sorted(cache.rglob("attention_forward.cubin"), key=os.path.getmtime)
            answer["code"] = look_at(cubins[-1]) if cubins else {}
            answers.append(answer)
        json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
