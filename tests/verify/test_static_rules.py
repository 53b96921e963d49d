"""Each static rule refuses its cheat and lets the honest kernel pass."""

import pytest
from small_kernels import DOUBLE, candidate

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate


def rule_of(text: str, **policy: str) -> str | None:
    found = check_candidate(candidate(text), Policy(**policy))
    return found.rule if found else None


def test_honest_kernel_passes_under_every_policy():
    assert rule_of(DOUBLE) is None
    assert rule_of(DOUBLE, library_calls="none") is None


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("import torch, triton", "import torch, triton, ctypes", "banned_import"),
        (
            "import torch, triton",
            "import torch, triton\nfrom gc import get_objects",
            "banned_import",
        ),
        (
            "import torch, triton",
            "import torch, triton\nfrom torch import compile",
            "banned_import",
        ),
        ("y = torch.empty_like(x)", "torch.cuda.set_stream(x)", "banned_name"),
        ("y = torch.empty_like(x)", "y = eval('x')", "banned_name"),
        ("torch.nn.Module", "Model", "inheritance"),
        (
            "        return y",
            "        try:\n            return y\n        except E:\n            return x",
            "try_except",
        ),
        ("double[(triton.cdiv(x.numel(), 128),)]", "print", "no_kernel"),
        ("@triton.jit", "", "no_kernel"),
        ("class ModelNew", "class Other", "no_kernel"),
        ("        return y", '        return (y, "cudaMallocManaged")[0]', "banned_name"),
    ],
)
def test_cheat_is_refused(old, new, rule):
    assert old in DOUBLE
    assert rule_of(DOUBLE.replace(old, new)) == rule


GRID = "double[(triton.cdiv(x.numel(), 128),)]"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (GRID, "(go := double)[(1,)]"),
        (GRID, "{'rows': double}['rows'][(1,)]"),
        (GRID, "functools.partial(launch, double)"),
        (GRID, "double.run"),
        ("class ModelNew", "tuned = triton.autotune([], key=[])(double)\n\nclass ModelNew"),
    ],
)
def test_a_kernel_may_be_launched_in_any_words(old, new):
    assert old in DOUBLE
    assert rule_of(DOUBLE.replace(old, new)) is None


@pytest.mark.parametrize(
    "call",
    ["triton.jit(double)", "triton.jit(fn=double)", "triton.jit(debug=True)(double)",
     "triton.JITFunction(double)", "triton.runtime.jit.JITFunction(double)"],
)  # fmt: skip
def test_a_kernel_may_be_made_by_a_call(call):
    text = DOUBLE.replace("@triton.jit\n", "")
    assert rule_of(text) == "no_kernel"
    text = text.replace("class ModelNew", f"double = {call}\n\nclass ModelNew")
    assert rule_of(text) is None


@pytest.mark.parametrize(
    ("before", "decorator"),
    [("from triton import jit as tjit", "tjit"), ("j = triton.jit", "j"), ("", "triton.jit()")],
)
def test_a_kernel_may_be_decorated_in_any_words(before, decorator):
    text = DOUBLE.replace("@triton.jit", f"{before}\n@{decorator}")
    assert rule_of(text) is None


def test_a_kernel_that_only_a_kernel_names_is_not_launched():
    other = "@triton.jit\ndef twice(x, n):\n    double(x, x, n)\n\nclass ModelNew"
    text = DOUBLE.replace("class ModelNew", other).replace(GRID, "print")
    assert rule_of(text) == "no_kernel"


def test_library_call_is_refused_only_where_the_policy_says_so():
    text = DOUBLE.replace("        return y", "        return torch.matmul(y, y)")
    assert rule_of(text, library_calls="none") == "library_call"
    assert rule_of(text, library_calls="anchored") is None


OWN = "def softmax(x):\n    return x\n\nclass ModelNew"


def test_an_own_function_may_have_the_name_of_a_library_call():
    text = DOUBLE.replace("class ModelNew", OWN).replace("        return y", "        return {}")
    assert rule_of(text.format("softmax(y)"), library_calls="none") is None
    assert rule_of(text.format("torch.softmax(y, -1)"), library_calls="none") == "library_call"
    method = text.replace(
        "    def forward", "    def mm(self, x):\n        return x\n\n    def forward"
    )
    assert rule_of(method.format("self.mm(y)"), library_calls="none") is None
    assert rule_of(method.format("y.mm(y)"), library_calls="none") == "library_call"


@pytest.mark.parametrize(
    "before",
    ["from torch import softmax", "from torch import *", "softmax = torch.nn.Softmax(-1)"],
)
def test_a_name_that_is_something_else_too_is_not_the_files_own(before):
    text = DOUBLE.replace("class ModelNew", OWN).replace(
        "        return y", "        return softmax(y)"
    )
    assert rule_of(f"{before}\n{text}", library_calls="none") == "library_call"


def test_comments_may_name_what_code_may_not():
    assert rule_of(f"# no cudaStreamCreate here, nor dlopen\n{DOUBLE}") is None
    named = 'NAME = "#"; CALL = "cudaStreamCreate"  # of a library\n'
    assert rule_of(named + DOUBLE) == "banned_name"
    assert rule_of('"""\n# cudaStreamCreate\n"""\n' + DOUBLE) == "banned_name"
    assert rule_of("x = 1  # \f\ny = 'cudaStreamCreate'\n" + DOUBLE) == "banned_name"


SOURCE = 'SOURCE = r"""\n#include <cuda.h>\n// no {} here\n{}"""\n'


def test_comments_of_cpp_in_a_literal_are_comments():
    assert rule_of(SOURCE.format("cudaStreamCreate", "") + DOUBLE) is None
    code = SOURCE.format("stream", "cudaStreamCreate(0);\n")
    assert rule_of(code + DOUBLE) == "banned_name"
    parts = 'A = "#include <cuda.h> /*" + " cudaStreamCreate */"\n'
    assert rule_of(parts + DOUBLE) == "banned_name"
    assert rule_of('A = f"#include <cuda.h> // cudaStreamCreate{1}"\n' + DOUBLE) == "banned_name"


def test_lines_keep_their_numbers_behind_a_literal():
    text = SOURCE.format("stream", "") + "y = 'dlopen'\n" + DOUBLE
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
    found = check_candidate(candidate, Policy())
    assert found is not None
    assert found.line == 5


def test_dot_inside_a_kernel_is_no_library_call():
    text = DOUBLE.replace("2 * tl.load", "tl.load").replace("n, BLOCK", "n, BLOCK")
    text = text.replace("i < n)\n\nclass", "i < n)\n    z = x @ y\n\nclass")
    assert rule_of(text, library_calls="none") is None


def test_empty_source_is_no_code():
    assert rule_of("  \n") == "no_code"


def test_source_that_does_not_parse_is_left_to_the_compiler():
    assert rule_of("def broken(:\n") is None


def test_finding_names_file_and_line():
    candidate = Candidate(
        language="triton",
        sources=(SourceFile(path="kernel.py", text=DOUBLE + "\nimport socket\n"),),
    )
    found = check_candidate(candidate, Policy())
    assert found is not None
    assert "kernel.py line" in found.message
    assert found.line == DOUBLE.count("\n") + 2


@pytest.mark.parametrize("name", ["cudaMallocManaged", "cuMulticastCreate", "cudaDeviceSetLimit"])
def test_cuda_identifiers(name):
    def rule(text: str) -> str | None:
        source = SourceFile(path="kernel.cu", text=text)
        candidate = Candidate(language="cuda", sources=(source,), entry="kernel.cu")
        found = check_candidate(candidate, Policy())
        return found.rule if found else None

    assert rule(f"void f() {{ {name}(0); }}") == "banned_name"
    assert rule(f"// {name}\n/* {name} */ __global__ void f() {{}}") is None


@pytest.mark.parametrize(
    "text",
    [
        'auto open = "/*"; cudaMallocManaged(0); auto shut = "*/";',
        'auto url = "http://"; cudaMallocManaged(0);',
        'auto raw = R"x(" // )x"; cudaMallocManaged(0);',
        "char slash = '\\''; cudaMalloc\\\nManaged(0);",
    ],
)
def test_cuda_identifier_hidden_from_a_naive_reader(text):
    source = SourceFile(path="kernel.cu", text=f"\n{text}\n")
    candidate = Candidate(language="cuda", sources=(source,), entry="kernel.cu")
    found = check_candidate(candidate, Policy())
    assert found is not None
    assert (found.rule, found.line) == ("banned_name", 2)


def test_lines_stay_true_below_a_continued_macro():
    text = "#define TWO \\\n  2\n/* a\n b */\ncudaMallocManaged(0);\n"
    source = SourceFile(path="kernel.cu", text=text)
    candidate = Candidate(language="cuda", sources=(source,), entry="kernel.cu")
    found = check_candidate(candidate, Policy())
    assert found is not None
    assert found.line == 5


def test_naming_the_extension_builder_is_no_kernel_but_calling_it_is():
    model = "import torch\n{0}\nclass ModelNew(torch.nn.Module):\n    pass\n"
    assert rule_of(model.format("# load_inline, cpp_extension.load()")) == "no_kernel"
    for call in ("load_inline('m', '')", "torch.utils.cpp_extension.load('m', [])", "load('m')"):
        assert rule_of(model.format(f"kernel = {call}")) is None


@pytest.mark.parametrize("name", ["torch._inductor.config as c", "torch._dynamo.eval_frame"])
def test_part_of_a_banned_module_is_banned(name):
    changed = DOUBLE.replace("import torch, triton", f"import torch, triton\nimport {name}")
    assert rule_of(changed) == "banned_import"
    assert rule_of(changed.replace(name, "torch.nn.functional as F")) is None


def test_language_outside_the_policy():
    assert rule_of(DOUBLE, languages=("cuda",)) == "language"
