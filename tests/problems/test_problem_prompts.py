import ast
import os
from pathlib import Path

import pytest

from hotloop.core.problem import ProblemKind
from hotloop.errors import ConfigError
from hotloop.problems import describe_sizes, load_problem_spec

BARE = """Please write a fast kernel with a soft cap.

    def cap(score, b, h, q_idx, kv_idx):

        limit = 20.0

        return limit * (score / limit)

Use from the text what you need, and import nothing else.
"""
FENCED = """Write attention for S=2048, head dimension 64, batch size 2 and 8 heads in fp16.

```python
import math
import torch
WINDOW = 4 * 64

def near(q, k):
    return q - k < WINDOW

def window(b, h, q_idx, kv_idx):
    return near(q_idx, kv_idx) & (q_idx >= kv_idx)

print(window(0, 0, 1, 1))
```

```
$ not python
```
"""
MODEL = """Make this faster:

~~~
import torch
SIZE = 8
class Model(torch.nn.Module):
    def forward(self, x):
        return x + SIZE
def get_inputs():
    return [torch.rand(SIZE)]
~~~
"""


def load(tmp_path: Path, text: str, device: str = "cuda", **settings):
    path = tmp_path / "request.md"
    path.write_text(text)
    return load_problem_spec(path, device=device, settings=settings)


def test_a_bare_function_with_blank_lines_is_taken_whole(tmp_path):
    problem = load(tmp_path, BARE)
    assert problem.kind is ProblemKind.ATTENTION
    assert problem.prompt == BARE
    assert problem.name == "request"
    function = next(n for n in ast.parse(problem.source).body if isinstance(n, ast.FunctionDef))
    assert function.name == "cap"
    assert function.lineno == 3, "the line that it has in the prompt"
    assert len(function.body) == 2
    assert "score_mod = cap" in problem.source
    assert "Please" not in problem.source


def test_a_fenced_function_brings_what_it_needs_and_nothing_more(tmp_path):
    source = load(tmp_path, FENCED).source
    assert "mask_mod = window" in source
    assert "def near" in source
    assert "WINDOW = 4 * 64" in source
    assert "print" not in source
    assert "import math" not in source


def test_sizes_come_from_the_text_then_defaults_then_settings(tmp_path):
    assert describe_sizes(load(tmp_path, FENCED)) == "B 2, H 8, S 2048, D 64, float16"
    assert describe_sizes(load(tmp_path, BARE)) == "B 4, H 16, S 4096, D 128, bfloat16"
    assert describe_sizes(load(tmp_path, BARE, "cpu")) == "B 1, H 2, S 128, D 64, bfloat16"
    changed = load(tmp_path, FENCED, S=512, dtype="bfloat16")
    assert describe_sizes(changed) == "B 2, H 8, S 512, D 64, bfloat16"


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("sequence length 8192", "S 8192"),
        ("a sequence length of 8,192", "S 8192"),
        ("sequences of 8k tokens", "S 8192"),
        ("S = 8192", "S 8192"),
        ("head_dim=64", "D 64"),
        ("head dim (D): 64", "D 64"),
        ("D=64 and B=2", "D 64"),
        ("batch of 2", "B 2"),
        ("batch_size=2", "B 2"),
        ("32 query heads and 8 KV heads", "Hkv 8"),
        ("32 query heads and 8 KV heads", "H 32"),
        ("Hkv=4", "Hkv 4"),
        ("in fp16", "float16"),
        ("in bf16", "bfloat16"),
        ("keep 1.44269504 as the scale", "S 4096"),
        ("2 kernels in 15 minutes", "B 4"),
    ],
)
def test_sizes_are_read_from_words(tmp_path, words, size):
    assert size in describe_sizes(load(tmp_path, f"{BARE}\n{words}.\n")).split(", ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("S=4096, and also S=1024", "states S as 1024 and 4096; choose one by --set S="),
        ("both bf16 and fp16", "states bfloat16 and float16; choose one by --set dtype="),
    ],
)
def test_contradictions_are_not_guessed_at(tmp_path, words, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, BARE + words)
    chosen = load(tmp_path, BARE + words, S=1024, dtype="float16")
    assert chosen.settings == {"S": 1024, "dtype": "float16"}


def test_a_model_in_the_text_is_a_kernelbench_problem(tmp_path):
    problem = load(tmp_path, MODEL, SIZE=4)
    assert problem.kind is ProblemKind.KERNELBENCH
    assert problem.policy.library_calls == "anchored"
    assert problem.prompt == MODEL
    assert "SIZE = 8" in problem.source
    assert "class Model" in problem.source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Please write a fast attention kernel.", "has no reference, and nothing can be verified"),
        ("def forward(x):\n    return x * 2\n", "has forward but no reference.*add a function"),
        (MODEL.replace("get_inputs", "inputs"), "no `get_inputs\\(\\)`"),
        (
            "Use:\n\ndef score_mod(score, b, h, q_idx, kv_idx):\nreturn score\n",
            "line 3: .* no valid",
        ),
        (BARE + "\ndef two(score, b, h, q, k):\n    return score\n", "the prompt has cap, two"),
        (BARE.replace("limit * (", "score and ("), "cap line 7: `and`"),
        ("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx > 0 and h > 0\n", "mask_mod line 3"),
    ],
)
def test_what_is_missing_or_wrong_is_said(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)


def test_score_and_mask_may_stand_together(tmp_path):
    text = BARE + "\ndef causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
    source = load(tmp_path, text).source
    assert "score_mod = cap" in source
    assert "mask_mod = causal" in source


def test_the_shared_prompt_is_an_attention_problem():
    folder = os.environ.get("HOTLOOP_PROMPTS")
    if folder is None:
        pytest.skip("HOTLOOP_PROMPTS names no folder with relative_positional.txt")
    path = Path(folder) / "relative_positional.txt"
    problem = load_problem_spec(path, device="cuda")
    assert problem.kind is ProblemKind.ATTENTION
    assert problem.prompt == path.read_text()
    assert describe_sizes(problem) == "B 4, H 16, S 4096, D 128, bfloat16"
    assert "return score + (q_idx - kv_idx)" in problem.source
