"""What index probes tell of kernels that read wrong elements, and that they tell nothing of others.

Real kernels, in the interpreter, through the judge.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scaled_rows import candidate, forward, spoilt, triton, verdict
from test_smaller import KERNEL as ATTENTION_KERNEL

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Status
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
CURVE = (
    HEAD
    + """@triton.jit
def curve(x_ptr, y_ptr, n, M, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = i // N
    c = i % N
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, 1.0 / (1.0 + tl.exp(-x)), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        curve[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), x.shape[0], x.shape[1], 64)
        return y
"""
)
PRODUCT = (
    HEAD
    + """@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    rm = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rn = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        rk = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :])
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :])
        acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        M, K = x.shape
        N = y.shape[1]
        c = torch.empty((M, N), dtype=x.dtype, device=x.device)
        product[(M // 8, N // 8)](x, y, c, M, N, K, 8)
        return c
"""
)
ATTENTION = """B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""
X = "    x = tl.load(x_ptr + i, mask=i < n)"
A = "a_ptr + rm[:, None] * K + rk[None, :]"
B = "b_ptr + rk[:, None] * N + rn[None, :]"
V = "tl.load(v_ptr + base + keys[:, None] * D + d[None, :]"
K = "tl.load(k_ptr + base + keys[:, None] * D + d[None, :]"


def judge_of(folder: Path, text: str) -> Iterator[LocalVerifier]:
    (folder / "problem.py").write_text(text)
    judge = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        judge.load(load_problem_spec(folder / "problem.py", device="cpu"))
        yield judge
    finally:
        judge.close()


@pytest.fixture(scope="module")
def wide_curve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    text = MODEL.format(names="x", result="torch.sigmoid(x)", inputs="torch.randn(12, 20)")
    yield from judge_of(tmp_path_factory.mktemp("wide"), text)


@pytest.fixture(scope="module")
def short_curve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    drawn = "torch.randn(12, 20, dtype=torch.bfloat16)"
    text = MODEL.format(names="x", result="torch.sigmoid(x)", inputs=drawn)
    yield from judge_of(tmp_path_factory.mktemp("short"), text)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    drawn = "torch.randn(16, 32), torch.randn(32, 24)"
    text = MODEL.format(names="x, y", result="torch.matmul(x, y)", inputs=drawn)
    yield from judge_of(tmp_path_factory.mktemp("product"), text)


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    yield from judge_of(tmp_path_factory.mktemp("attention"), ATTENTION)


def details_of(judge: LocalVerifier, kernel: Candidate) -> dict:
    found = verdict(judge, kernel)
    assert found.status is Status.INCORRECT_NUMERICAL, found.message
    assert found.evidence is not None
    return dict(found.evidence.details)


def probe_of(judge: LocalVerifier, kernel: str, *changes: tuple[str, str]) -> dict | None:
    return details_of(judge, candidate(spoilt(kernel, *changes), "kernel.py")).get("probe")


def law_of(judge: LocalVerifier, kernel: str, *changes: tuple[str, str]) -> dict:
    probe = probe_of(judge, kernel, *changes)
    assert probe is not None
    assert probe["share"] >= 0.95
    assert probe["examples"]
    return {k: v for k, v in probe.items() if k not in ("share", "examples", "shape")}


def loads(offset: str) -> tuple[str, str]:
    """Return the change by which the curve's kernel loads from another offset."""
    return X, X.replace("x_ptr + i", f"x_ptr + {offset}")


COLUMN = loads("r * N + (c + 1) % N")
LAST_BLOCK = loads("tl.where(r >= 8, i - 4 * N, i)")
NEXT = (X, "    x = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)")
LAYOUT = loads("c * M + r")
TILES = loads("(r // 4 * 4 + c % 4) * N + c // 4 * 4 + r % 4")
STRIDE = loads("r * 16 + c")
NOISE = (X, X + "\n    x += tl.sin(i * 12.9898)")
ANYWHERE = loads("(i * 97 + i * i * 13) % n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (COLUMN, {"kind": "shift", "dim": 1, "by": 1, "wraps": True}),
        (LAST_BLOCK, {"kind": "shift", "dim": 0, "by": -4}),
        (NEXT, {"kind": "flat", "by": 1}),
        (LAYOUT, {"kind": "layout", "dims": [0, 1]}),
        (TILES, {"kind": "tile", "dims": [0, 1], "tile": 4, "within": True}),
        (STRIDE, {"kind": "stride", "dim": 0, "stride": 16, "right": 20}),
        (loads("5 * N + c"), {"kind": "constant", "dim": 0, "index": 5}),
    ],
)
def test_a_law_of_an_elementwise_kernel(
    wide_curve: LocalVerifier, change: tuple[str, str], expected: dict
) -> None:
    assert law_of(wide_curve, CURVE, change) == {"tensor": "x"} | expected


@pytest.mark.parametrize("change", [COLUMN, LAYOUT])
def test_indices_survive_a_16_bit_dtype(
    short_curve: LocalVerifier, change: tuple[str, str]
) -> None:
    assert law_of(short_curve, CURVE, change)["kind"] in ("shift", "layout")


@pytest.mark.parametrize(
    "change",
    [NOISE, ANYWHERE, ("tl.exp(-x)", "tl.exp(-1.3 * x)"), ("tl.exp(-x)", "tl.exp(0.2 - x)")],
)
def test_nothing_is_claimed_of_noise_and_wrong_constants(
    wide_curve: LocalVerifier, short_curve: LocalVerifier, change: tuple[str, str]
) -> None:
    for judge in (wide_curve, short_curve):
        assert probe_of(judge, CURVE, change) is None


def test_a_kernel_that_is_right_passes_after_probes(
    wide_curve: LocalVerifier, product: LocalVerifier
) -> None:
    assert probe_of(wide_curve, CURVE, COLUMN) is not None
    assert verdict(wide_curve, candidate(CURVE, "kernel.py")).status is Status.PASSED
    assert verdict(product, candidate(PRODUCT, "kernel.py")).status is Status.PASSED


def test_a_parameter_that_is_read_elsewhere_is_named(cpu_judge: LocalVerifier) -> None:
    offset = ("scale_ptr + i % COLUMNS)", "scale_ptr + (i + 1) % COLUMNS)")
    probe = details_of(cpu_judge, triton(offset))["probe"]
    assert (probe["tensor"], probe["kind"], probe["by"]) == ("scale", "shift", 1)


def test_a_kernel_that_is_too_slow_is_not_probed_to_the_end(cpu_judge: LocalVerifier) -> None:
    offset = ("scale_ptr + i % COLUMNS)", "scale_ptr + (i + 1) % COLUMNS)")
    assert "probe" not in details_of(cpu_judge, triton(offset, forward("time.sleep(2.2)")))


def test_an_output_that_tells_its_cause_is_not_probed(cpu_judge: LocalVerifier) -> None:
    store = "    tl.store(y_ptr + i, y, mask=inside)"
    moved = (store, "    tl.store(y_ptr + (i + COLUMNS) % n, y, mask=inside)")
    details = details_of(cpu_judge, triton(moved))
    assert details["origin"]["kind"] == "shift"
    assert "probe" not in details


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((A, A.replace("rk[None, :]", "(rk[None, :] - start)")),
         {"kind": "repeats", "dim": 1, "block": 8}),
        (("rn[None, :], acc)", "rn[None, :], tl.trans(acc))"),
         {"kind": "crossed", "dim": 0, "out_dims": [0, 1], "tile": 8}),
    ],
)  # fmt: skip
def test_a_law_of_a_sum(product: LocalVerifier, change: tuple[str, str], expected: dict) -> None:
    assert law_of(product, PRODUCT, change) == {"tensor": "x"} | expected


def test_indices_of_a_sum_that_do_not_meet(product: LocalVerifier) -> None:
    next_row = (B, B.replace("rk[:, None]", "((rk[:, None] + 1) % K)"))
    probe = probe_of(product, PRODUCT, next_row)
    assert probe is not None
    assert {k: probe[k] for k in ("kind", "tensor", "other", "dims", "by", "share")} == {
        "kind": "pair", "tensor": "x", "other": "y", "dims": [1, 0], "by": -1, "share": 1.0,
    }  # fmt: skip


def test_nothing_is_claimed_of_a_term_that_is_left_out(product: LocalVerifier) -> None:
    short = (B, B + ", mask=(rk[:, None] % 5) > 0, other=0.0")
    assert probe_of(product, PRODUCT, short) is None


def test_nothing_is_claimed_of_a_noisy_sum(product: LocalVerifier) -> None:
    noisy = ("rn[None, :], acc)", "rn[None, :], acc + tl.sin(rm[:, None] * 13.0 + rn[None, :]))")
    assert probe_of(product, PRODUCT, noisy) is None


def test_a_head_of_v_that_is_read_for_another(attention: LocalVerifier) -> None:
    other = (V, V.replace("base", "0 * S * D"))
    expected = {"tensor": "v", "kind": "index", "dim": 1, "reads": 0, "belongs": 1}
    assert law_of(attention, ATTENTION_KERNEL, other) == expected


def test_rows_of_k_that_meet_the_wrong_rows_of_q(attention: LocalVerifier) -> None:
    next_row = (K, K.replace("keys[:, None]", "((keys[:, None] + 1) % S)"))
    expected = {"tensor": "k", "meets": True, "kind": "shift", "dim": 2, "by": -1}
    assert law_of(attention, ATTENTION_KERNEL, next_row) == expected


def test_nothing_is_claimed_of_a_wrong_softmax(attention: LocalVerifier) -> None:
    no_rescale = ("out = out * rescale[:, None] + ", "out = out + ")
    assert probe_of(attention, ATTENTION_KERNEL, no_rescale) is None
