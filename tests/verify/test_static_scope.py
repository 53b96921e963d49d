"""Names are followed to what they stand for; what only looks like a cheat passes."""

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate

KERNEL = """
import contextlib, sys, time
import torch, triton
import torch.nn.functional as F
import triton.language as tl
from torch import nn

{before}

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        {line}
        double[(1,)](x, y, x.numel(), BLOCK=128)
        return y
"""


def rule_of(line: str = "pass", before: str = "", **policy: str) -> str | None:
    text = KERNEL.format(line=line, before=before)
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
    found = check_candidate(candidate, Policy(**policy))
    return found.rule if found else None


REFUSED = {
    "torch.cuda.stream(torch.cuda.Stream())": "unjoined_stream",
    "getattr(torch.cuda, 'set_str' + 'eam')(None)": "banned_name",
    "getattr(sys, '_getframe')(1)": "banned_name",
    "x.grad_fn.__class__.__subclasses__()": "banned_name",
    "torch.matmul = F.softmax": "patching",
    "torch.cuda.synchronize: object = None": "patching",
    "setattr(time, 'time', lambda: 0)": "patching",
    "del torch.softmax": "patching",
    "vars(torch)['equal'] = None": "patching",
    "torch.Tensor.__dict__['copy_'] = None": "patching",
    "type('T', (object,), {})": "subclass",
    "torch._C._cuda_setStream(0, 0, 0)": "banned_name",
    "x.as_subclass(torch.Tensor)": "banned_name",
}
ALLOWED = (
    "y.stream = 1",
    "torch.backends.cuda.matmul.allow_tf32 = False",
    "self.compile = None",
    "y.data = x.data.clone()",
    "getattr(self, 'eps', 1e-5)",
    "getattr(torch, 'float' + '16')",
    "type(x)",
    "x.stride(0) + time.perf_counter_ns()",
    "torch.cuda.current_stream()",
    "vars(self)['plan'] = 1",
)


@pytest.mark.parametrize("line", REFUSED)
def test_line_is_refused(line):
    assert rule_of(line) == REFUSED[line]


@pytest.mark.parametrize("line", ALLOWED)
def test_line_is_allowed(line):
    assert rule_of(line) is None


@pytest.mark.parametrize(
    ("before", "line", "rule"),
    [
        ("import torch as t\nfast = t\nfaster = fast", "faster.compile(x)", "banned_name"),
        ("from torch import cuda as c", "c.set_stream(x)", "banned_name"),
        ("from torch import Tensor as T\nT.copy_ = None", "pass", "patching"),
        ("class T(torch.Tensor):\n    pass", "pass", "subclass"),
        ("import builtins", "pass", "banned_import"),
        ("class T(nn.Module):\n    pass", "pass", None),
        ("class compile:\n    pass", "compile.stream = 1", None),
        ("def stream(x):\n    return x", "stream(x)", None),
    ],
)
def test_aliases(before, line, rule):
    assert rule_of(line, before) == rule


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("try:\n        double[(1,)](x)\n    except Exception:\n        pass", "try_except"),
        ("with contextlib.suppress(Exception):\n        double[(1,)](x)", "try_except"),
        ("go = double\n    try:\n        go[(1,)](x)\n    except E:\n        pass", "try_except"),
        ("try:\n        double.run(x, grid=(1,))\n    except E:\n        pass", "try_except"),
        ("try:\n        double[(1,)](x)\n    finally:\n        pass", None),
        ("try:\n        import numpy\n    except ImportError:\n        pass", None),
    ],
)
def test_handlers_around_a_launch(body, rule):
    assert rule_of(before=f"def run(x):\n    {body}") == rule


def test_library_calls_by_alias_where_there_are_none():
    line = "F.scaled_dot_product_attention(x, x, x)"
    assert rule_of(line, library_calls="none") == "library_call"
    assert rule_of("self.go(x)", "go = F.softmax", library_calls="none") is None
    assert rule_of("go(x)", "go = F.softmax", library_calls="none") == "library_call"
    assert rule_of(line) is None


@pytest.mark.parametrize(
    ("base", "before", "rule"),
    [
        ("nn.Module", "", None),
        ("torch.nn.Module", "", None),
        ("Rows", "class Rows(nn.Module):\n    pass", None),
        ("Rows, nn.Module", "class Rows:\n    pass", None),
        ("Rows", "class Most(nn.Module):\n    pass\nclass Rows(Most):\n    pass", None),
        ("Model", "class Model(nn.Module):\n    pass", "inheritance"),
        ("Rows", "class Model(nn.Module):\n    pass\nclass Rows(Model):\n    pass", "inheritance"),
        ("Rows", "class Rows(nn.Linear):\n    pass", "inheritance"),
        ("Nobody", "", "inheritance"),
        ("nn.Module, abc.ABC", "import abc", None),
        ("nn.Module, typing.Generic[T]", "import typing\nT = typing.TypeVar('T')", None),
        ("Rows", "if torch.cuda.is_available():\n    class Rows(nn.Module):\n        pass", None),
        (
            "Rows",
            "class Rows(Model):\n    pass\nclass Other(Rows):\n    pass\n"
            "class Rows(nn.Module):\n    pass",
            "inheritance",
        ),
        (
            "Rows",
            "class Rows(nn.Module):\n    def go(self):\n        try:\n            pass\n"
            "        except E:\n            pass",
            "try_except",
        ),
    ],
)
def test_a_base_is_torchs_own_or_made_of_it_here(base, before, rule):
    text = KERNEL.format(line="pass", before=before)
    text = text.replace("ModelNew(nn.Module)", f"ModelNew({base})")
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
    found = check_candidate(candidate, Policy())
    assert (found.rule if found else None) == rule


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("#include <thread>", True),
        ("#  include  <dlfcn.h>", True),
        ("// #include <thread>", False),
        ("#include <cuda_bf16.h>", False),
        ("std :: thread t;", True),
        ("int thread = threadIdx.x; cg::this_thread_block();", False),
        ("#define GLUE(a, b) a##b\nGLUE(cudaDevice, SetLimit)(0);", True),
        ("#define NAME(t) copy_##t\nvoid NAME(float)();", False),
        ("cudaLaunchHostFunc(0, f, 0);", True),
        ("auto now = std::chrono::steady_clock::now();", True),
        ("cudaStreamIsCapturing(stream, &status);", True),
        ("long long now = clock64();", False),
        ('asm volatile("cp.async.wait_all;");', False),
    ],
)
def test_cuda_source(text, refused):
    source = SourceFile(path="kernel.cu", text=text + "\n__global__ void f() {}\n")
    candidate = Candidate(language="cuda", sources=(source,), entry="kernel.cu")
    assert (check_candidate(candidate, Policy()) is not None) == refused


def test_cuda_source_within_python_is_read_too():
    cuda = 'CODE = """\n#include <thread>\n__global__ void f() {}\n"""'
    assert rule_of(before=cuda) == "banned_name"
    assert rule_of(before=cuda.replace("<thread>", "<cstdint>")) is None
    assert rule_of(before='TEXT = "std::thread is not allowed here"') is None
