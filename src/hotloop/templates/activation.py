"""Device functions that generated kernels call by name: one Triton function a text.

Each text is a complete `@triton.jit` function that goes to the top of the generated file, only if
something calls it. Formulas are those of the PyTorch documentation of the operation of that name.
`tanh` exists in three precisions; which one a kernel has is part of its schedule.
"""

from __future__ import annotations

TANH_BY_PRECISION = {
    "exact": '''@triton.jit
def tanh(x):
    """tanh of libdevice, within 2 ulp."""
    return libdevice.tanh(x)
''',
    "exp2": '''@triton.jit
def tanh(x):
    """1 - 2 / (exp(2x) + 1), absolute error about 1e-7."""
    return 1.0 - 2.0 / (tl.exp2(x * 2.885390082) + 1.0)
''',
    "approx": '''@triton.jit
def tanh(x):
    """tanh.approx.f32: one instruction, relative error up to 2^-11 (PTX ISA)."""
    return tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )
''',
}
"""How tanh may be computed, by the name of the choice."""

DEVICE_FUNCTIONS: dict[str, str] = {
    "round_to_tf32": '''@triton.jit
def round_to_tf32(x):
    """x to nearest in TF32: tensor cores drop the last 13 bits, which cuts toward zero."""
    return tl.inline_asm_elementwise(
        "cvt.rna.tf32.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
    )
''',
    "floor_div": '''@triton.jit
def floor_div(a, b):
    """Integer division that rounds down, as Python's; Triton's // rounds toward zero."""
    quotient = a // b
    return quotient - ((a % b != 0) & ((a < 0) != (b < 0))).to(tl.int32)
''',
    "floor_mod": '''@triton.jit
def floor_mod(a, b):
    """Remainder with the divisor's sign, as Python's; Triton's % has the dividend's."""
    rest = a % b
    return rest + tl.where((rest != 0) & ((rest < 0) != (b < 0)), b, 0)
''',
    "float_mod": '''@triton.jit
def float_mod(a, b):
    """Remainder with the divisor's sign, as torch.remainder."""
    return a - b * tl.floor(a / b)
''',
    "sign": '''@triton.jit
def sign(x):
    """-1, 0 or 1."""
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))
''',
    "gelu_erf": '''@triton.jit
def gelu_erf(x):
    """x times the normal distribution's cumulative function."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067812))
''',
    "gelu_tanh": '''@triton.jit
def gelu_tanh(x):
    """GELU by its tanh formula."""
    return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
''',
    "softplus": '''@triton.jit
def softplus(x, beta, threshold):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is over the threshold."""
    scaled = x * beta
    return tl.where(scaled > threshold, x, libdevice.log1p(tl.exp(scaled)) / beta)
''',
    "elu": '''@triton.jit
def elu(x, alpha):
    """Return x, or alpha (exp(x) - 1) where x is negative."""
    return tl.where(x > 0, x, alpha * libdevice.expm1(x))
''',
    "selu": '''@triton.jit
def selu(x):
    """Scaled ELU with the two fixed constants."""
    return 1.0507009873554805 * tl.where(x > 0, x, 1.6732632423543772 * libdevice.expm1(x))
''',
    "leaky_relu": '''@triton.jit
def leaky_relu(x, slope):
    """Return x, or slope x where x is negative."""
    return tl.where(x > 0, x, x * slope)
''',
    "hardsigmoid": '''@triton.jit
def hardsigmoid(x):
    """(x + 3) / 6, cut to [0, 1]."""
    return tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0
''',
    "hardswish": '''@triton.jit
def hardswish(x):
    """Return x times hardsigmoid(x)."""
    return x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0
''',
    "mish": '''@triton.jit
def mish(x):
    """Return x tanh(softplus(x)): with e = exp(x), the factor is e(e + 2) / (e(e + 2) + 2)."""
    e = tl.exp(tl.minimum(x, 20.0))
    n = e * (e + 2.0)
    return x * n / (n + 2.0)
''',
}
"""Device functions by name, without `tanh`."""

_CALLS = {"gelu_tanh": ("tanh",)}


def device_functions(used: frozenset[str], *, tanh: str) -> tuple[str, ...]:
    """Return the texts of the functions in `used` and of those that they call, in a fixed order."""
    wanted = set(used)
    for name in used:
        wanted.update(_CALLS.get(name, ()))
    texts = [TANH_BY_PRECISION[tanh]] if "tanh" in wanted else []
    return (*texts, *(text for name, text in DEVICE_FUNCTIONS.items() if name in wanted))
