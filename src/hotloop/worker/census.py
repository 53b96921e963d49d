"""Census: which operations a reference executes, seen below autograd and composite functions.

It decides what may be asked of a reference: exact integer values only where every operation is a
product or moves data; a second convolution member only where there are convolutions; no foreign
values where an operation would assert on the device (which kills the process's CUDA context).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "dot", "convolution", "linear"})
CONVOLUTIONS = frozenset({"convolution", "_convolution", "cudnn_convolution"})
MOVES = frozenset(
    {
        "view",
        "_unsafe_view",
        "reshape",
        "t",
        "transpose",
        "permute",
        "expand",
        "unsqueeze",
        "squeeze",
        "clone",
        "contiguous",
        "slice",
        "select",
        "cat",
        "stack",
        "split",
        "as_strided",
        "alias",
        "detach",
        "_reshape_alias",
        "triu",
        "tril",
        "unbind",
    }
)
NO_ARITHMETIC = MOVES | frozenset(
    {
        "_local_scalar_dense", "_pin_memory", "_to_copy", "arange", "chunk", "constant_pad_nd",
        "copy", "diagonal", "embedding", "empty", "empty_like", "empty_permuted",
        "empty_strided", "equal",
        "fill", "flip", "full", "full_like", "gather", "index", "index_put", "index_select",
        "isnan", "item", "lift_fresh", "lift_fresh_copy", "movedim", "narrow", "new_empty",
        "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones", "ones_like",
        "record_stream", "repeat", "repeat_interleave", "resize", "roll", "scalar_tensor",
        "set", "set_data", "split_with_sizes", "swapaxes", "unfold", "unsafe_split", "view_as",
        "zero", "zeros", "zeros_like",
        "expand_as", "flatten", "hstack", "tile", "to", "type_as", "unflatten", "vstack",
        "adjoint", "as_strided_scatter", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag",
        "broadcast_to", "column_stack", "concat", "concatenate", "diag", "diag_embed",
        "diagonal_scatter", "dsplit", "dstack", "fliplr", "flipud", "hsplit", "mH", "mT",
        "matrix_H", "meshgrid", "moveaxis", "numpy_T", "pad", "ravel", "rot90", "row_stack",
        "select_scatter", "slice_scatter", "swapdims", "take_along_dim", "tensor_split",
        "unsafe_chunk", "unsafe_split_with_sizes", "vsplit",
    }
)  # fmt: skip
"""Operations that move values or make constants, by names without a trailing underscore."""
WHOLE_LAYERS = frozenset(
    {
        "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_batch_norm_with_update", "_cudnn_rnn",
        "_cudnn_attention_forward", "_efficient_attention_forward", "_flash_attention_forward",
        "_fused_rms_norm", "_masked_softmax",
        "_fused_sdp_choice", "_log_softmax", "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training", "_safe_softmax",
        "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable",
        "_softmax", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "adaptive_max_pool2d",
        "avg_pool1d", "avg_pool2d", "avg_pool3d", "cudnn_batch_norm", "cumprod", "cumsum",
        "gru", "logcumsumexp", "logsumexp", "lstm", "max_pool2d_with_indices",
        "max_pool3d_with_indices", "mkldnn_rnn_layer", "native_batch_norm", "native_group_norm",
        "native_layer_norm", "scaled_dot_product_attention", "sort", "topk",
        # Names of composite operations: in inference mode they are seen whole.
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
        "batch_norm", "group_norm", "instance_norm", "layer_norm", "log_softmax", "max_pool1d",
        "max_pool2d", "max_pool3d", "rms_norm", "softmax",
    }
)  # fmt: skip
"""Operations, each of which is a whole kernel that a problem may ask for."""
REDUCTIONS = frozenset(
    {
        "amax", "amin", "aminmax", "argmax", "argmin", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "count_nonzero", "cummax", "cummin", "histc",
        "huber_loss", "kthvalue", "linalg_vector_norm", "max", "mean", "median", "min", "mode",
        "mse_loss", "multi_margin_loss", "multilabel_margin_loss_forward", "nanmedian", "nansum",
        "native_norm", "nll_loss2d_forward", "nll_loss_forward", "norm", "prod", "smooth_l1_loss",
        "soft_margin_loss", "std", "std_mean", "sum", "var", "var_mean",
    }
)  # fmt: skip
"""Sums, extremes and losses: many elements become few."""
ARITHMETIC = REDUCTIONS | frozenset(
    {
        "_prelu_kernel", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "celu", "cos",
        "cosh", "elu", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "float_power", "gelu",
        "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hypot", "leaky_relu",
        "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid_forward", "logaddexp",
        "logaddexp2", "logit", "mish", "polar", "pow", "prelu", "relu", "relu6", "rsqrt", "selu",
        "sigmoid", "silu", "sin", "sinc", "sinh", "softplus", "softshrink", "sqrt", "tan", "tanh",
        "threshold", "xlogy",
    }
)  # fmt: skip
"""Reductions and functions: the work itself where a problem has no products. Sums and products of
elements are not among them: a scale or a shift may stay outside a kernel."""
LIBRARY_PRODUCTS = (
    PRODUCTS
    | CONVOLUTIONS
    | frozenset(
        {
            "_addmm_activation", "_int_mm", "_scaled_mm", "addbmm", "addmv", "addr", "bilinear",
            "conv_transpose2d", "einsum", "matmul", "mkldnn_linear", "tensordot", "vdot",
            "_trilinear", "mkldnn_convolution", "thnn_conv2d", "_slow_conv2d_forward", "outer",
            "convolution_overrideable", "miopen_convolution", "_grouped_mm", "slow_conv3d_forward",
            "chain_matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose3d",
            "inner", "linalg_multi_dot", "_cdist_forward", "cudnn_convolution_relu",
            "cudnn_convolution_add_relu", "cudnn_convolution_transpose", "_linear_pointwise",
            "_convolution_pointwise", "_euclidean_dist", "_scaled_grouped_mm",
        }
    )
)  # fmt: skip
"""Products and convolutions, under every name that a candidate may reach them by."""
WITH_PRODUCTS = (
    LIBRARY_PRODUCTS
    | frozenset(name for name in WHOLE_LAYERS if "scaled_dot_product" in name or "_sdp_" in name)
    | frozenset(
        {
            "_cudnn_attention_forward", "_cudnn_rnn", "_efficient_attention_forward",
            "_flash_attention_forward", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "gru",
            "lstm", "mkldnn_rnn_layer",
        }
    )
)  # fmt: skip
"""Operations that hold a product inside: a reference with one may ask for products."""
ELEMENTWISE = frozenset(
    {
        "_conj", "_neg_view", "_to_dense", "_unsafe_index", "abs", "absolute", "add", "addcdiv",
        "addcmul", "clip", "divide", "dropout", "greater", "greater_equal", "isclose", "less",
        "less_equal", "multiply", "negative", "not_equal", "subtract",
        "all", "any", "bernoulli", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
        "bitwise_right_shift", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "complex",
        "conj_physical", "copysign", "div", "eq", "exponential", "eye", "floor", "floor_divide",
        "fmax", "fmin", "fmod", "frac", "ge", "gt", "imag", "index_copy", "index_fill", "isfinite",
        "isinf", "le", "lerp", "linspace", "logical_and", "logical_not", "logical_or",
        "logical_xor", "logspace", "lt", "masked_fill", "masked_scatter", "masked_select",
        "maximum", "minimum", "mul", "nan_to_num", "native_dropout", "ne", "neg", "nonzero",
        "normal", "normal_functional", "pixel_shuffle", "pixel_unshuffle", "positive",
        "put", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random",
        "randperm", "real", "reciprocal", "reflection_pad1d", "reflection_pad2d",
        "reflection_pad3d", "remainder", "replication_pad1d", "replication_pad2d",
        "replication_pad3d", "resolve_conj", "resolve_neg", "round", "rsub", "scatter", "sgn",
        "sign", "signbit", "square", "sub", "take", "tril", "tril_indices", "triu", "triu_indices",
        "true_divide", "trunc", "uniform", "view_as_complex", "view_as_real", "where",
        "zeros_like",
    }
)  # fmt: skip
"""Arithmetic of single elements, choices and random numbers: what may prepare a kernel's work."""
GATHERING = frozenset(
    {"_unsafe_index", "embedding", "gather", "index", "index_select", "take", "take_along_dim"}
)
"""Operations that pick elements by indices: with a table of all values, any function."""
REARRANGING = frozenset(
    {
        "_conj", "_neg_view", "_to_dense", "_unsafe_index", "complex", "conj_physical", "imag",
        "index_copy", "masked_scatter", "masked_select", "pixel_shuffle", "pixel_unshuffle",
        "positive", "put", "real", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
        "replication_pad1d", "replication_pad2d", "replication_pad3d", "resolve_conj",
        "resolve_neg", "scatter", "take", "view_as_complex", "view_as_real",
    }
)  # fmt: skip
"""Of those, what puts an operand's values elsewhere: they were made by something else."""
ASSERTING = frozenset({"binary_cross_entropy", "multinomial", "bernoulli"})
"""Operations that check their arguments' range with a device-side assertion."""


VARIANCES = frozenset(
    {
        "_batch_norm_with_update", "_native_batch_norm_legit", "cudnn_batch_norm",
        "native_batch_norm", "native_group_norm", "native_layer_norm", "std", "std_mean", "var",
        "var_mean", "batch_norm", "group_norm", "instance_norm", "layer_norm",
    }
)  # fmt: skip
"""Operations that form a variance, under every name that they are seen by."""
BIAS_PLACE = {"addmm": 0, "baddbmm": 0} | dict.fromkeys(
    (
        "_convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "convolution", "linear",
    ),
    2,
)  # fmt: skip
"""Which argument of a product is its bias."""


class Census(TorchDispatchMode):
    """Collects the names of the ATen operations that run under it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.seeded = False
        self.has_variance_behind_bias = False
        """Whether a product with a bias ran before an operation that forms a variance."""
        self._has_bias = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record `func` and run it unchanged."""
        self.names.add(func.overloadpacket.__name__)
        self._follow_bias(func.overloadpacket.__name__, args)
        self.seeded |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))

    def _follow_bias(self, name: str, args: Any) -> None:
        place = BIAS_PLACE.get(name, len(args))
        self._has_bias |= place < len(args) and args[place] is not None
        self.has_variance_behind_bias |= self._has_bias and name in VARIANCES

    @property
    def multilinear(self) -> bool:
        """Whether there are only products and data movement, and at least one product."""
        return bool(self.names & PRODUCTS) and self.names <= PRODUCTS | MOVES

    @property
    def convolves(self) -> bool:
        """Whether a convolution ran."""
        return bool(self.names & CONVOLUTIONS)

    @property
    def asserts(self) -> tuple[str, ...]:
        """Operations with a range check on the device."""
        return tuple(sorted(self.names & ASSERTING))
