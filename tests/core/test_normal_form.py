"""Which candidates are the same program but for their looks."""

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.normal_form import normal_form

TRITON = '''
import torch, triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    """Copies."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)  # copy


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
'''
CUDA = """/* {"kernels": [{"name": "copy", "block": [256]}]} */
#define SIZE 4  // elements
extern "C" __global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i]; /* copy */
  const char* s = "// no comment";
}
"""


def form(text, path="kernel.py", **fields):
    language = "cuda" if path.endswith(".cu") else "triton"
    sources = (SourceFile(path=path, text=text),)
    return normal_form(Candidate(language=language, sources=sources, entry=path, **fields))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# copy", "# copies the block, \u00fc"),
        ("        y = torch", "        # a comment of its own\n\n        y = torch"),
        ("import torch, triton\n", "import torch , triton # both\n"),
        ("* BLOCK + tl.arange(0, BLOCK)", "* BLOCK + (tl.arange(0, BLOCK))"),
        ('"""Copies."""', "'Copies.'"),
    ],
)
def test_looks_of_python_make_no_difference(old, new):
    assert old in TRITON
    assert form(TRITON.replace(old, new)) == form(TRITON)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cdiv(x.numel(), 128)", "cdiv(x.numel(), 256)"),
        ("BLOCK=128", "BLOCK=64"),
        ("mask=i < n)", "mask=i <= n)"),
        ("Copies", "Copies all"),
        ("BLOCK=128)", "BLOCK=128, num_warps=8)"),
        ("i = tl.program_id(0)", "i = tl.program_id(1)"),
    ],
)
def test_one_change_in_the_program_is_another_program(old, new):
    assert old in TRITON
    assert form(TRITON.replace(old, new)) != form(TRITON)


def test_pins_entry_and_language_count():
    assert form(TRITON, pins={"BLOCK": 64}) != form(TRITON, pins={"BLOCK": 128})
    assert form(CUDA, "kernel.cu") != form(CUDA, "kernel.cuh")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/* copy */", "// copies one element"),
        ("  // elements", ""),
        ("  if (i", "\n\n      if   (i"),
        ("/* copy */", "/* copies\n   one element */"),
    ],
)
def test_looks_of_cuda_make_no_difference(old, new):
    assert old in CUDA
    assert form(CUDA.replace(old, new), "kernel.cu") == form(CUDA, "kernel.cu")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"block": [256]', '"block": [128]'),  # the launch stands in a comment
        ("SIZE 4", "SIZE 8"),
        ("// no comment", "// another text"),
        ("i < n", "i <= n"),
        ("y[i] = x[i]", "y[i] = x[i ]+0"),
    ],
)
def test_one_change_in_cuda_is_another_program(old, new):
    assert old in CUDA
    assert form(CUDA.replace(old, new), "kernel.cu") != form(CUDA, "kernel.cu")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kernel.cu", "int line = __LINE__;\n"),
        ("kernel.cu", 'auto s = R"(// text)";\n'),
        ("kernel.cu", "int n = 1'000;  // '\n"),
        ("kernel.cu", "// goes on \\\n on the next line\nint n;\n"),
        ("kernel.py", "import inspect\n"),
        ("kernel.py", "def (:\n"),
        ("notes.txt", "text\n"),
    ],
)
def test_what_cannot_be_told_is_compared_as_it_is(path, text):
    assert form(text, path) == form(text, path)
    assert form(text + "# \n//\n", path) != form(text, path)


def test_comments_in_cuda_inside_of_python_count():
    text = 'SOURCE = """__global__ void k() {} // a"""\n'
    assert form(text) != form(text.replace("// a", "// b"))
