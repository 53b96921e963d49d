"""Compiles the Gluon programs of prompts for sm_90 without a GPU.

A program for `test_gluon_prompts.py`: the prompts are rendered here, for the Triton that this
process imports. Prints one JSON object: Triton's version, and what the compile lane answers by the
program's name.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from prompt_cases import attention_task, norm_task

from hotloop.prompts.fences import find_blocks
from hotloop.prompts.render import first_prompt

os.environ.pop("TRITON_INTERPRET", None)

RING_MODEL = """

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty((a.shape[0], b.shape[0]), dtype=a.dtype, device=a.device)
        layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16)
        matmul_kernel[(triton.cdiv(a.shape[0], 128), triton.cdiv(b.shape[0], 128))](
            TensorDescriptor.from_tensor(a, [128, 64], layout),
            TensorDescriptor.from_tensor(b, [128, 64], layout),
            TensorDescriptor.from_tensor(c, [128, 128], layout),
            a.shape[1], BLOCK_K=64, STAGES=3, num_warps=4)
        return c
"""


def programs(make_task: Any, triton_version: str) -> list[str]:
    """Return the Gluon code in a prompt, the ring before the skeleton."""
    task = make_task("gluon")
    environment = {**task.info.environment, "triton": triton_version}
    task = replace(task, info=replace(task.info, environment=environment))
    return [b.text for b in find_blocks(first_prompt(task).text) if "gluon.jit" in b.text]


def tensor(*shape: int, dtype: str = "bfloat16") -> dict[str, Any]:
    return {"shape": list(shape), "dtype": dtype}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/cache"
        import triton

        from hotloop.worker.build_triton import build  # triton reads the variable at import

        ring, attention = programs(attention_task, triton.__version__)
        _, model = programs(norm_task, triton.__version__)
        key = "gl.where((key < SKV)[None, :]"
        assert key in attention
        causal = attention.replace(key, f"{key} & (query[:, None] >= key[None, :])")
        qkv, ragged = [tensor(4, 16, 4096, 128)] * 3, [tensor(1, 8, 1000, 64)]
        ragged += [tensor(1, 2, 777, 64)] * 2
        jobs = {
            "ring": (ring + RING_MODEL, [], [tensor(1024, 512)] * 2),
            "attention": (attention, [], qkv),
            "attention_causal": (causal, [], qkv),
            "attention_ragged": (attention, [], ragged),
            "model": (model, [2000], [tensor(4096, 2000, dtype="float32")]),
        }
        answers: dict[str, Any] = {}
        for name, (source, init_args, inputs) in jobs.items():
            path = Path(folder) / f"{name}.py"
            path.write_text(source, encoding="utf-8")
            answers[name] = build(path, pins={}, init_args=init_args, inputs=inputs, state={})
    print(json.dumps({"triton": triton.__version__, "answers": answers}))


if __name__ == "__main__":
    main()
