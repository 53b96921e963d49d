"""An extension is used where `forward` leads to what builds it, in whatever words."""

import ast

import pytest

from hotloop.core.extension import builds_extension, uses_extension

MODEL = """
import torch
from torch.utils.cpp_extension import load_inline

{above}

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {run}
"""
BUILD = "load_inline('m', cuda_sources='__global__ void k() {}')"
GET = "def get():\n    return " + BUILD


def is_used(above: str = "", made: str = "pass", run: str = "return x") -> bool:
    return uses_extension(ast.parse(MODEL.format(above=above, made=made, run=run)))


@pytest.mark.parametrize(
    ("above", "made", "run"),
    [
        (f"ext = {BUILD}", "pass", "return ext.go(x)"),
        (GET, "pass", "return get().go(x)"),
        (f"@functools.lru_cache\n{GET}", "self.m = get()", "return self.m.k(x)"),
        ("", f"self.ext = {BUILD}", "return self.ext.go(x)"),
        ("", f"setattr(self, 'ext', {BUILD})", "return self.ext.go(x)"),
        (f"made = {{}}\nmade['a'] = {BUILD}", "pass", "return made['a'].go(x)"),
        (f"made = []\nmade.append({BUILD})", "pass", "return made[0].go(x)"),
        (f"ext = None\ndef build():\n    global ext\n    ext = {BUILD}\n\nbuild()", "pass",
         "return ext.go(x)"),
        (f"ext = {BUILD}\ngo = ext.go", "pass", "return go(x)"),
        (f"ext = {BUILD}\ndef run(x):\n    return ext.go(x)", "pass", "return run(x)"),
        (f"ext = {BUILD}\nclass F(torch.autograd.Function):\n    @staticmethod\n"
         "    def forward(ctx, x):\n        return ext.go(x)", "pass", "return F.apply(x)"),
        (f"ext = {BUILD}\nclass Part(torch.nn.Module):\n    def forward(self, x):\n"
         "        return ext.go(x)", "self.part = Part()", "return self.part(x)"),
        (f"ext = {BUILD}\nclass Part(torch.nn.Module):\n    def forward(self, x):\n"
         "        return ext.go(x)", "self.add_module('p', Part())",
         "return [m(x) for m in self.children()][0]"),
        ("ext = torch.utils.cpp_extension.load('m', ['m.cu'])", "pass",
         "return ext.go(x)"),
        ("load_inline('m', 'TORCH_LIBRARY(m, l) {}', is_python_module=False)", "pass",
         "return torch.ops.m.go(x)"),
        (f"if (ext := {BUILD}): pass", "pass", "return ext.go(x)"),
    ],
)  # fmt: skip
def test_used(above, made, run):
    assert is_used(above, made, run)


@pytest.mark.parametrize(
    ("above", "made"),
    [
        (GET.replace("get", "never"), "pass"),
        (f"ext = {BUILD}", "pass"),
        ("", f"self.ext = {BUILD}"),
        (GET, "self.ext = get()"),
        (
            f"class Never(torch.nn.Module):\n    def forward(self, x):\n        return {BUILD}",
            "pass",
        ),
        (f"if False:\n    {BUILD}", "pass"),
    ],
)
def test_a_builder_that_forward_does_not_lead_to_is_dead(above, made):
    run = "return torch.cat([torch.softmax(c, 1) for c in x.chunk(4)])"
    assert builds_extension(ast.parse(MODEL.format(above=above, made=made, run=run)))
    assert not is_used(above, made, run)


def test_a_method_that_nobody_calls_is_dead():
    text = MODEL.format(above="", made="pass", run="return x")
    assert not uses_extension(ast.parse(f"{text}\n    def never(self):\n        return {BUILD}\n"))


def test_a_fragment_needs_the_name_only():
    assert uses_extension(ast.parse(f"ext = {BUILD}"))
    assert not uses_extension(ast.parse("# load_inline\nx = tl.load(p)"))


def test_loads_of_a_kernel_build_nothing():
    kernel = "import triton.language as tl\ndef k(p):\n    return tl.load(p)"
    assert not builds_extension(ast.parse(kernel))
