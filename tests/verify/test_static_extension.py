"""Naming `load_inline` switches no rule off: forward has to use what it builds."""

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy
from hotloop.prompts.programs import read_program
from hotloop.verify.static_rules import check_candidate

BUILT = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline("m", cpp_sources="", cuda_sources="__global__ void k() {}")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.go(x)
"""
DEAD = BUILT.replace("ext.go(x)", "x * 2")
BOTH = DOUBLE.replace(
    "class ModelNew", "def never():\n    return torch.load_inline('a')\n\nclass ModelNew"
)


def rule_of(text: str, language: str) -> str | None:
    sources = (SourceFile(path="kernel.py", text=text),)
    found = check_candidate(
        Candidate(language=language, sources=sources), Policy(languages=("triton", "cuda"))
    )
    return found.rule if found else None


def test_an_extension_that_forward_uses_is_cuda():
    assert read_program(BUILT).language == "cuda"
    assert rule_of(BUILT, "cuda") is None


@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_one_that_forward_does_not_use_is_no_kernel(language):
    assert read_program(DEAD).language == "triton"
    assert read_program(DEAD).is_whole
    assert rule_of(DEAD, language) == "no_kernel"


def test_a_triton_kernel_beside_a_dead_builder_is_a_triton_kernel():
    assert "never" in BOTH
    assert read_program(BOTH).language == "triton"
    assert rule_of(BOTH, "triton") is None
    assert rule_of(BOTH, "cuda") == "no_kernel"


def test_the_finding_says_what_is_missing():
    found = check_candidate(candidate(DEAD), Policy())
    assert found is not None
    assert "load_inline" in found.message
