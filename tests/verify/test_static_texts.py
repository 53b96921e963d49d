"""Ways to have a text executed, and the compiler's other names; what looks like them passes."""

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate

RESULT = "y = torch.empty_like(x)"


def rule_of(line: str, before: str = "") -> str | None:
    assert RESULT in DOUBLE
    text = DOUBLE.replace(RESULT, f"{RESULT}\n        {line}")
    text = text.replace("import torch, triton\n", f"import torch, triton\n{before}\n", 1)
    found = check_candidate(candidate(text), Policy())
    return found.rule if found else None


@pytest.mark.parametrize(
    "name", ["timeit", "pydoc", "doctest", "cProfile", "profile", "trace", "unittest", "sympy"]
)
def test_a_module_that_executes_texts_is_not_imported(name):
    assert rule_of("pass", f"import {name}") == "banned_import"
    assert rule_of("pass", f"from {name} import run") == "banned_import"


@pytest.mark.parametrize("before", ["import torch.utils.benchmark as b", "import numpy.testing"])
def test_nor_one_of_another(before):
    assert rule_of("pass", before) == "banned_import"


ARRAY = "class A:\n    def __cuda_array_interface__(self):\n        return {}"


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", "torch.utils.benchmark.Timer('1')"),
        ("import numpy as np", "np.testing.measure('1')"),
        ("", "torch.jit.CompilationUnit('')"),
        ("from torch import jit", "jit.script_method(x)"),
        ("", "torch.jit._script.CompilationUnit"),
        ("def unit(m):\n    return m.CompilationUnit", "unit(torch.jit)"),
        ("", "self.layer.compile()"),
        ("", "torch.nn.Linear(1, 1).compile()"),
        ("", "torch.nn.Module.compile(self)"),
        ("", "getattr(self, 'comp' + 'ile')()"),
        ("", "torch.compiler.compile(x)"),
        ("", "x.untyped_storage()._write_file(0, False, False, 4)"),
        (ARRAY, "pass"),
        ("class A:\n    __array_interface__ = {}", "pass"),
        ("", "x.__cuda_array_interface__"),
    ],
)
def test_a_text_or_memory_that_is_not_torchs_is_refused(before, line):
    assert rule_of(line, before) == "banned_name"


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("import time", "time.perf_counter()"),
        ("", "triton.testing.do_bench(lambda: x)"),
        ("import re", "re.compile('a').match('a')"),
        ("import re as r", "r.compile('a')"),
        ("", "torch.trace(x[:2, :2])"),
        ("", "torch.jit.is_scripting()"),
        ("", "self.compile = None"),
        ("", "x.untyped_storage().data_ptr()"),
        ("import numpy as np", "np.trace(np.eye(2))"),
        ("import operator", "self.profile = operator.index(1)"),
        ("", "torch.autograd.profiler.profile"),
        ("", "torch.compiler.is_compiling()"),
    ],
)
def test_honest_lines_that_look_alike_pass(before, line):
    assert rule_of(line, before) is None


def test_a_call_does_the_same_at_any_time_and_where_it_is_captured():
    assert rule_of("busy = torch.cuda.is_current_stream_capturing()") == "banned_name"
    assert rule_of("pass", "from datetime import datetime") == "banned_import"
    assert rule_of("now = os.times()", "import os") == "banned_name"
    late = 'late = "mov.u64 $0, %globaltimer;"'
    assert rule_of(late) == "banned_name"
    assert rule_of("begun = time.perf_counter()", "import time") is None  # to tune itself
    assert rule_of("busy = torch.cuda.is_available()") is None
