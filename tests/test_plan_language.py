"""The language of a search: what was asked for, the starting kernel's, what the policy allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.errors import ConfigError
from hotloop.kernel_file import read_candidate
from hotloop.llm.spec import parse_spec
from hotloop.plan_checks import find_language

GLUON = """from triton.experimental import gluon

@gluon.jit
def kernel(x):
    pass
"""
TRITON = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n"
INLINE = 'module = load_inline(name="m", cuda_sources=["__global__ void k() {}"])\n'


def problem(*languages: str) -> Problem:
    policy = Policy(languages=languages) if languages else Policy()
    return Problem(name="p", kind=ProblemKind.NATIVE, source="", policy=policy)


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.py", TRITON, "triton"),
        ("a.py", GLUON, "gluon"),
        ("a.py", TRITON + GLUON, "gluon"),
        ("a.py", INLINE, "cuda"),
        ("a.py", "def broken(:\n", "triton"),
        ("a.cu", "__global__ void k() {}", "cuda"),
    ],
)
def test_a_kernel_file_has_the_language_of_its_kernels(
    tmp_path: Path, name: str, text: str, language: str
) -> None:
    (tmp_path / name).write_text(text)
    assert read_candidate(tmp_path / name).language == language


@pytest.mark.parametrize("languages", [(), ("triton",), ("gluon",)])
def test_a_model_may_be_asked_for_gluon(languages: tuple[str, ...]) -> None:
    model = parse_spec("dir:/tmp/nobody")
    assert find_language("gluon", model, None, problem(*languages)) == "gluon"


def test_a_policy_without_triton_has_no_gluon() -> None:
    with pytest.raises(ConfigError, match="--language gluon: this problem's policy allows cuda"):
        find_language("gluon", parse_spec("dir:/tmp/nobody"), None, problem("cuda"))
    with pytest.raises(ConfigError, match="allows triton, gluon$"):
        find_language("cuda", parse_spec("dir:/tmp/nobody"), None, problem("triton"))


def test_a_gluon_kernel_can_be_started_from_and_is_no_triton(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(GLUON)
    start = read_candidate(tmp_path / "kernel.py")
    for spec in ("dir:/tmp/nobody", "builtin"):
        assert find_language(None, parse_spec(spec), start, problem()) == "gluon"
    with pytest.raises(ConfigError, match="the kernel of --start is gluon"):
        find_language("triton", parse_spec("builtin"), start, problem())


@pytest.mark.parametrize("asked", ["gluon", "cuda"])
def test_a_start_in_another_language_is_refused_in_one_line_that_says_what_to_do(
    tmp_path: Path, asked: str
) -> None:
    (tmp_path / "kernel.py").write_text(TRITON)
    start = read_candidate(tmp_path / "kernel.py")
    with pytest.raises(ConfigError) as found:
        find_language(asked, parse_spec("dir:/tmp/nobody"), start, problem())
    assert str(found.value) == (
        f"--language {asked}: the kernel of --start is triton, and a search improves it in its own "
        "language; leave --language out, or begin without --start"
    )
    assert find_language("triton", parse_spec("dir:/tmp/nobody"), start, problem()) == "triton"


def test_the_built_in_generator_takes_no_order_for_gluon() -> None:
    with pytest.raises(ConfigError, match="name a --model"):
        find_language("gluon", parse_spec("builtin"), None, problem())
