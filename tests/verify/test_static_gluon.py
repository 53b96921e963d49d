"""Rules that hold for Triton hold for Gluon: honest kernels pass, the same cheats are refused."""

from __future__ import annotations

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy, Problem, ProblemKind
from hotloop.core.verdict import Status, Tier
from hotloop.verify.static_rules import check_candidate
from hotloop.verify.static_stage import static_verdict

HONEST = """
import torch, triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

@gluon.jit
def load_tile(desc, tile, bar):
    mbarrier.expect(bar, desc.block_type.nbytes)
    tma.async_load(desc, [gl.program_id(0) * 64, 0], bar, tile)
    mbarrier.wait(bar, 0)

@gluon.jit
def double(desc, y, n, layout: gl.constexpr):
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    load_tile(desc, tile, bar)
    row = gl.program_id(0) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))
    at = row[:, None] * 64 + column[None, :]
    gl.store(y + at, tile.load(layout) * 2, mask=(row < n)[:, None])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        desc = TensorDescriptor.from_tensor(x, [64, 64], gl.NVMMASharedLayout(128, 16))
        layout = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
        double[(triton.cdiv(x.shape[0], 64),)](desc, y, x.shape[0], layout)
        return y
"""
LAUNCH = "        double[(triton.cdiv(x.shape[0], 64),)](desc, y, x.shape[0], layout)\n"
TRITON = """
import torch, triton
import triton.language as tl

@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy[(1,)](x, y, 64)
        return y
"""


def rule_of(
    text: str, *, language: str = "gluon", languages: tuple[str, ...] = ("triton",), **policy: str
) -> str | None:
    source = SourceFile(path="kernel.py", text=text)
    candidate = Candidate(language=language, sources=(source,))
    found = check_candidate(candidate, Policy(languages=languages, **policy))
    return found.rule if found else None


def changed(*changes: tuple[str, str]) -> str:
    text = HONEST
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_an_honest_kernel_passes_under_every_policy() -> None:
    assert rule_of(HONEST) is None
    assert rule_of(HONEST, library_calls="none") is None
    assert rule_of(HONEST, language="triton") is None


@pytest.mark.parametrize(
    ("languages", "rule"),
    [
        (("triton",), None),
        (("gluon",), None),
        (("triton", "cuda"), None),
        (("cuda",), "language"),
        ((), "language"),
    ],
)
def test_a_policy_that_allows_triton_allows_its_dialect(
    languages: tuple[str, ...], rule: str | None
) -> None:
    assert rule_of(HONEST, languages=languages) == rule


def test_a_policy_for_gluon_alone_refuses_triton() -> None:
    assert rule_of(TRITON, language="triton", languages=("gluon",)) == "language"
    assert rule_of(TRITON, language="triton", languages=("triton",)) is None


def test_a_refusal_names_the_dialects_that_are_allowed() -> None:
    candidate = Candidate(
        language="cuda", sources=(SourceFile(path="kernel.cu", text="x"),), entry="kernel.cu"
    )
    found = check_candidate(candidate, Policy(languages=("triton",)))
    assert found is not None
    assert "triton or gluon" in found.message


@pytest.mark.parametrize(
    "changes",
    [
        [("from triton.experimental import gluon\n", "from triton.experimental.gluon import jit\n"),
         ("@gluon.jit", "@jit")],
        [("import gluon\n", "import gluon as dialect\n"), ("@gluon.jit", "@dialect.jit")],
        [("from triton.experimental import gluon\n", "import triton.experimental.gluon as g\n"),
         ("@gluon.jit", "@g.jit")],
        [("@gluon.jit", "@gluon.jit(debug=True)")],
        [("@gluon.jit\ndef double", "def double"),
         ("class ModelNew", "double = gluon.jit(double)\n\nclass ModelNew")],
        [("double[(triton.cdiv(x.shape[0], 64),)]", "{'all': double}['all'][(1,)]")],
        [(LAUNCH, "        kernel = double\n        kernel[(1,)](desc, y, 1, layout)\n")],
    ],
)  # fmt: skip
def test_a_kernel_may_be_made_and_launched_in_any_words(changes: list[tuple[str, str]]) -> None:
    assert rule_of(changed(*changes)) is None


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("import torch, triton", "import torch, triton, ctypes", "banned_import"),
        (LAUNCH, "", "no_kernel"),
        ("@gluon.jit", "", "no_kernel"),
        (LAUNCH, f"        try:\n    {LAUNCH}        except Exception:\n            y = x\n",
         "try_except"),
        (LAUNCH, f"        with contextlib.suppress(Exception):\n    {LAUNCH}", "try_except"),
        ("class ModelNew", "TensorDescriptor.from_tensor = print\n\nclass ModelNew", "patching"),
        ("class ModelNew", "gl.store = gl.load\n\nclass ModelNew", "patching"),
        ("class ModelNew", "setattr(gluon, 'jit', triton.jit)\n\nclass ModelNew", "patching"),
        ("class ModelNew", "mbarrier.wait = tma.store_wait\n\nclass ModelNew", "patching"),
        (LAUNCH, "        gl.inline_asm_elementwise('multimem.red.add $0;', '=r', [y])\n" + LAUNCH,
         "banned_name"),
        (LAUNCH, LAUNCH + "        y = torch.compile(double)(y)\n", "banned_name"),
        (LAUNCH, LAUNCH + "        torch.cuda.set_stream(y)\n", "banned_name"),
        (LAUNCH, f"        with torch.cuda.stream(self.side):\n    {LAUNCH}", "unjoined_stream"),
        ("torch.nn.Module", "Model", "inheritance"),
        ("class ModelNew", "class Fast(torch.Tensor):\n    pass\n\nclass ModelNew", "subclass"),
    ],
)  # fmt: skip
def test_a_cheat_is_refused(old: str, new: str, rule: str) -> None:
    text = changed((old, new))
    if "contextlib" in new:
        text = "import contextlib\n" + text
    assert rule_of(text) == rule


def test_a_library_call_beside_a_kernel_is_refused_where_the_policy_has_none() -> None:
    text = changed((LAUNCH, LAUNCH + "        y = torch.matmul(x, x.t())\n"))
    assert rule_of(text, library_calls="none") == "library_call"
    assert rule_of(text, library_calls="anchored") is None


def test_a_gluon_candidate_has_a_gluon_kernel_that_is_named() -> None:
    assert rule_of(TRITON) == "no_kernel"
    unused = TRITON.replace(
        "class ModelNew",
        "from triton.experimental import gluon\n\n@gluon.jit\ndef idle(x):\n    pass\n\n"
        "class ModelNew",
    )
    assert rule_of(unused) == "no_kernel"
    assert rule_of(unused.replace("copy[(1,)](x", "idle[(1,)](x)\n        copy[(1,)](x")) is None


def test_cuda_built_inline_is_no_gluon_kernel() -> None:
    inline = TRITON.replace("class ModelNew", "module = load_inline('m')\n\nclass ModelNew")
    assert rule_of(inline) == "no_kernel"
    assert rule_of(inline, language="triton") is None
    assert rule_of(changed(("class ModelNew", "m = load_inline('m')\n\nclass ModelNew"))) is None


@pytest.mark.parametrize(
    ("device", "gpu", "is_refused"),
    [
        ("cuda", "NVIDIA H100 80GB HBM3", False),
        ("cuda", "NVIDIA H200", False),
        ("cuda", "NVIDIA GH200 480GB", False),
        ("cuda", "NVIDIA A100-SXM4-80GB", True),
        ("cuda", "NVIDIA B200", True),
        ("cuda", "NVIDIA GeForce RTX 4090", True),
        ("cuda", None, False),
        ("cpu", None, False),
    ],
)
def test_gluon_is_refused_on_a_gpu_that_is_no_hopper(
    device: str, gpu: str | None, is_refused: bool
) -> None:
    problem = Problem(name="p", kind=ProblemKind.NATIVE, source="")
    found = {
        language: static_verdict(
            Candidate(language=language, sources=(SourceFile(path="kernel.py", text=text),)),
            problem, Tier.FAST, device=device, environment={"gpu": gpu},
        )
        for language, text in (("gluon", HONEST), ("triton", TRITON))
    }  # fmt: skip
    assert found["triton"] is None
    refused = found["gluon"]
    assert (refused is not None) is is_refused
    if refused is not None:
        assert refused.status is Status.REJECTED_STATIC
        assert f"expected a Hopper GPU (compute capability 9.0) for Gluon, got {gpu}" in (
            refused.message
        )
        assert "\n" not in refused.message
