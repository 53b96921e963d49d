import ast

import pytest

from hotloop.errors import ConfigError
from hotloop.problems.tracing_rules import check_traceable, modification_kind

HONEST = [
    "return (q_idx >= kv_idx) & ((q_idx - kv_idx < 64) | (h == 0))",
    "if CAUSAL:\n        return q_idx >= kv_idx\n    return kv_idx < 8",
    "return torch.where(b == 0, q_idx > kv_idx, ~(q_idx > kv_idx))",
    "return (q_idx >= kv_idx) if CAUSAL and WIDE else (q_idx > kv_idx)",
    "if q_idx.dtype is None or doc is None:\n        pass\n    return max(1, W) > q_idx",
]
FORBIDDEN = [
    ("return q_idx >= kv_idx and h > 0", 2, "`and` cannot be traced; use `&`"),
    ("return q_idx >= kv_idx or h > 0", 2, "`or` cannot be traced; use `|`"),
    ("return not (q_idx >= kv_idx)", 2, "`not` cannot be traced; use `~`"),
    ("if q_idx > kv_idx:\n        return True\n    return h == 0", 2, "`if` cannot be traced"),
    ("return True if q_idx > kv_idx else False", 2, "torch.where"),
    ("return 0 <= q_idx - kv_idx < 64", 2, "a chained comparison"),
    ("d = q_idx - kv_idx\n    e = d * 2\n    return e > 0 and True", 4, "`and`"),
    ("return max(q_idx, kv_idx) > 3", 2, "`max()` cannot be traced; use torch.maximum"),
    ("while kv_idx > 0:\n        kv_idx -= 1\n    return h == 0", 2, "`while`"),
]


def mask(body: str) -> ast.Module:
    return ast.parse(f"def mask_mod(b, h, q_idx, kv_idx):\n    {body}\n")


@pytest.mark.parametrize("body", HONEST)
def test_traceable_code_passes(body):
    check_traceable(mask(body), "p")


@pytest.mark.parametrize(("body", "line", "message"), FORBIDDEN)
def test_control_flow_on_tensors_is_refused(body, line, message):
    with pytest.raises(ConfigError) as info:
        check_traceable(mask(body), "p")
    assert str(info.value).startswith(f"p: mask_mod line {line}: ")
    assert message in str(info.value)


def test_functions_made_by_a_factory_are_checked():
    source = (
        "def make(w):\n"
        "    def window(b, h, q, k):\n"
        "        return q >= k and q - k < w\n"
        "    return window\n"
    )
    with pytest.raises(ConfigError, match="window line 3"):
        check_traceable(ast.parse(source), "p")


def test_other_functions_may_use_control_flow():
    check_traceable(ast.parse("def get_buffers(generator):\n    return generator and {}\n"), "p")


@pytest.mark.parametrize(
    ("signature", "kind"),
    [
        ("f(score, b, h, q_idx, kv_idx)", "score_mod"),
        ("f(score, batch, head, token_q, token_kv)", "score_mod"),
        ("score_mod(s, x, y, z, w)", "score_mod"),
        ("f(b, h, q_idx, kv_idx)", "mask_mod"),
        ("f(b, h, i, j)", "mask_mod"),
        ("mask_mod(a, b, c, d)", "mask_mod"),
        ("attention(q, k, v, scale)", None),
        ("f(x, w, b, eps, dim)", None),
        ("forward(self, q, k, v)", None),
        ("f(b, h, q_idx, kv_idx=0)", None),
        ("f(b, h, q_idx, *kv_idx)", None),
    ],
)
def test_modifications_are_known_by_their_signature(signature, kind):
    (function,) = ast.parse(f"def {signature}: ...").body
    assert isinstance(function, ast.FunctionDef)
    assert modification_kind(function) == kind
