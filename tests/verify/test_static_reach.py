"""Banned modules and names stay banned by whatever chain the text shows; honest chains pass."""

import ast

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.problem import Policy
from hotloop.verify.static_reach import reason_against
from hotloop.verify.static_rules import check_candidate
from hotloop.verify.static_scope import text_of

RESULT = "y = torch.empty_like(x)"


def rule_of(line: str, before: str = "", **policy: str) -> str | None:
    assert RESULT in DOUBLE
    text = DOUBLE.replace(RESULT, f"{RESULT}\n        {line}")
    text = text.replace("import torch, triton\n", f"import torch, triton\n{before}\n", 1)
    found = check_candidate(candidate(text), Policy(**policy))
    return found.rule if found else None


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", "torch._ops.torch._C._DisableTorchDispatch()"),
        ("a = torch._ops.torch", "a._C._len_torch_dispatch_stack()"),
        ("from torch import _ops as o", "o.torch.cuda.set_stream(x)"),
        ("import torch.utils as u", "u.cpp_extension.os"),
        ("a, b = torch._ops, 1", "a.torch._C"),
        ("a: object = torch._ops", "a.sys"),
        ("", "(a := torch._ops).torch._dynamo"),
        ("", "torch.os.fork()"),
        ("", "torch.os.path.exists('/')"),
        ("", "torch.sys.modules"),
        ("", "torch.cuda.threading.Thread()"),
        ("import logging.config as c", "c.threading.Thread()"),
        ("", "torch.multiprocessing.Process()"),
        ("", "torch.fx.traceback.traceback"),
        ("", "torch.importlib.import_module('os')"),
        ("", "triton._C.libtriton.nvidia.cublas.CublasLt"),
        ("", "triton.compiler.compiler.libtriton"),
        ("import os", "os.execvp('sh', [])"),
        ("import sys", "sys._current_exceptions()"),
        ("import logging", "logging.getLogger().findCaller(True)"),
        ("", "x.__class__.__getattribute__(torch, 'os')"),
        ("", "print.__self__.eval('1')"),
        ("def hidden(m):\n    return m._pop_torch_dispatch_stack()", "hidden(x)"),
    ],
)
def test_a_banned_name_is_found_at_the_end_of_a_chain(before, line):
    assert rule_of(line, before) == "banned_name"


@pytest.mark.parametrize(
    "before",
    [
        "from torch import os",
        "from torch import sys as s",
        "from torch.cuda import threading",
        "from torch._ops import torch as t, _C",
        "from triton import _C",
        "import triton._C.libtriton as lib",
        "from torch import DisableTorchFunction",
        "import posix",
    ],
)
def test_a_banned_module_is_not_imported_from_another(before):
    assert rule_of("pass", before) == "banned_import"


@pytest.mark.parametrize(
    "line",
    [
        'vars(torch)["_C"]',
        'vars(torch)["".join(("_", "C"))]',
        'torch.__dict__["o" + "s"]',
        "names = vars(torch)",
        "names = dict(torch.__dict__)",
        "torch.__dict__.get('os')",
        "vars(torch)[x.name]",
        "getattr(torch, f\"{'_'}{'C'}\")",
        "getattr(torch, '_'.join(('', 'C')))",
        "getattr(torch, x.name)",
        "getattr(torch.nn.functional, f'{x.name}')",
        "torch.__getattr__('os')",
        "(get := getattr)(torch, x.name)",
        "operator.attrgetter('_C._pop')(torch)",
        "operator.attrgetter(x.name)(torch)",
        "found = operator.attrgetter('cuda.threading')",
    ],
)
def test_a_name_in_a_module_is_written_out(line):
    assert rule_of(line, "import operator") == "banned_name"


@pytest.mark.parametrize(
    "line",
    [
        "ev = eval",
        "do = [exec]",
        "load = __import__",
        "globals()['torch']",
        "run = __builtins__",
        "map(open, [])",
        "__loader__.load_module('os')",
    ],
)
def test_a_banned_function_is_not_given_another_name(line):
    assert rule_of(line) == "banned_name"


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", "torch.cuda.get_device_properties(0).multi_processor_count"),
        ("import torch.nn.functional as F", "F.pad(x, (0, 1))"),
        ("from torch.utils.cpp_extension import load_inline", "load_inline"),
        ("", "torch.utils.cpp_extension.load_inline"),
        ("from torch.library import triton_op, wrap_triton", "triton_op('a::b', mutates_args={})"),
        ("", "torch.library.custom_op('a::b', mutates_args=())"),
        ("", "torch.ops.mine.scaled(x)"),
        ("", "torch.signal.windows.hann(8)"),
        ("", "torch.backends.cuda.matmul.allow_tf32 = True"),
        ("", "torch.version.cuda"),
        ("from triton.language.extra import libdevice", "libdevice.tanh"),
        ("import triton.language as tl", "tl.extra.cuda.libdevice.tanh"),
        ("from triton.language.extra.cuda import libdevice", "libdevice.erf"),
        ("from triton.experimental.gluon.language.nvidia.hopper import tma", "tma.store_wait"),
        ("import triton.language as tl", "getattr(tl, str(x.dtype).split('.')[1])"),
        ("", "getattr(torch, 'float' + '16')"),
        ("", "getattr(torch, f\"{'float'}16\")"),
        ("", "vars(torch)['float16']"),
        ("from torch import library as o", "o.__dict__['Library']('a', 'DEF')"),
        ("", "getattr(self, x.name)"),
        ("", "vars(self)[x.name] = 1"),
        ("", "self.__dict__.update(a=1)"),
        ("", "self._C = x.shape[1]"),
        ("", "self.os, self.signal, self.resource = 1, 2, 3"),
        ("import os, sys", "os.path.join('a', sys.version)"),
        ("import operator", "sorted([], key=operator.attrgetter('num_warps'))"),
        ("import re", "re.compile('a')"),
        ("def compile(x):\n    return x\n\nbuilt = compile", "pass"),
        ("", "torch.nn.Linear(2, 2).eval()"),
        ("", "max(x.shape, key=lambda open: open)"),
        ("import warnings, logging", "warnings.warn('slow'); logging.getLogger(__name__)"),
    ],
)
def test_honest_names_pass(before, line):
    assert rule_of(line, before) is None


@pytest.mark.parametrize(
    "line",
    [
        "torch._cdist_forward(x, x, 2.0, None)",
        "torch.ops.aten.cudnn_convolution_relu(x, x)",
        "torch.ops.aten._cudnn_attention_forward(x)",
        "torch.ops.mkldnn._linear_pointwise(x, x)",
        "vars(torch)['matmul'](x, x)",
        "torch.ops.aten._softmax(x, -1, False)",
    ],
)
def test_library_calls_by_the_names_below(line):
    assert rule_of(line, library_calls="none") == "library_call"
    assert rule_of(line, library_calls="anchored") is None


def test_what_shares_a_name_with_a_module_is_none_of_it():
    assert reason_against("torch.signal.windows") is None
    assert reason_against("torch.signal.signal") is not None
    assert reason_against("self.os", imported=False) is None
    assert reason_against("torch.os") is not None
    assert reason_against("torch.cuda.stream") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [("'a' + 'b'", "ab"), ("f'a{\"b\"}'", "ab"), ("'_'.join(['a', 'b'])", "a_b"), ("f'a{b}'", None),
     ("'_'.join(b)", None), ("f'{\"a\":>3}'", None), ("b.join(['a'])", None), ("''.join(())", "")],
)  # fmt: skip
def test_text_put_together(text, found):
    assert text_of(ast.parse(text, mode="eval").body) == found
