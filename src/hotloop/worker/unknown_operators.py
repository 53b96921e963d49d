"""Unknown operators: what may be said of torch's operators that the tables of `census.py` lack.

Torch has some 700 beside those, and no list of the ones that do a kernel's work is ever whole. So
it is told which of them do none: they move, make or look at tensors, as the tables here have it, or
are functions of single elements, as torch itself tags them. All others are work.
"""

from __future__ import annotations

from functools import cache

import torch
from torch._ops import OpOverloadPacket

from hotloop.worker.census import (
    ARITHMETIC,
    ELEMENTWISE,
    LIBRARY_PRODUCTS,
    NO_ARITHMETIC,
    WHOLE_LAYERS,
    WITH_PRODUCTS,
)

OF_PARTS = "_of_parts"
"""After the name of an operation that puts places of one tensor together, which is a reduction."""
OF_WIDER = "_of_wider_elements"
"""The same of one that takes several of a tensor's elements for one, of a wider type."""
ACCUMULATING = frozenset(
    {
        "bincount", "index_add", "index_put_accumulate", "index_reduce", "put_accumulate",
        "_index_put_impl_accumulate", "scatter_add", "scatter_reduce",
    }
)  # fmt: skip
"""Sums by indices: reductions, and how torch adds what kernels left in pieces."""
MOVING = frozenset(
    {
        "_cast_Byte", "_cast_Char", "_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int",
        "_cast_Long", "_cast_Short", "_chunk_cat", "_conj_copy", "_copy_from",
        "_copy_from_and_resize", "_dim_arange", "_efficientzerotensor", "_index_put_impl",
        "_lazy_clone", "_neg_view_copy", "_pad_circular", "_pad_enum", "_reshape_alias_copy",
        "_reshape_copy", "_reshape_from_tensor", "_resize_output", "_shape_as_tensor", "_stack",
        "_to_cpu", "_unsafe_index_put", "_unsafe_masked_index", "alias_copy", "argwhere",
        "as_strided_copy", "broadcast_tensors", "bucketize", "cartesian_prod",
        "channel_shuffle", "combinations", "conj", "data", "detach_copy", "diagflat",
        "diagonal_copy", "expand_copy", "fft_fftshift", "fft_ifftshift",
        "fill_diagonal", "flatten_dense_tensors", "isin", "isreal", "lift", "linalg_diagonal",
        "narrow_copy", "native_channel_shuffle", "nonzero_numpy", "nonzero_static", "one_hot",
        "pad_sequence", "permute_copy", "pin_memory", "range", "requires_grad", "reshape_as",
        "resize_as", "searchsorted", "select_copy", "slice_copy", "slice_inverse", "split_copy",
        "split_with_sizes_copy", "squeeze_copy", "t_copy", "to_dense", "transpose_copy",
        "unbind_copy", "unflatten_dense_tensors", "unfold_copy", "unique_consecutive",
        "unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy",
    }
)  # fmt: skip
"""Operations that move values, look for places or make indices, beside those of the census."""
FUNCTIONS = frozenset(
    {
        "__and", "__iand", "__ilshift", "__ior", "__irshift", "__ixor", "__lshift", "__or",
        "__rshift", "__xor", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
        "arctanh", "fix",
        "log_sigmoid", "special_digamma", "special_erf", "special_erfc", "special_erfinv",
        "special_exp2", "special_expit", "special_expm1", "special_gammaln", "special_i0",
        "special_log1p", "special_logit", "special_round", "special_sinc", "special_xlogy",
    }
)  # fmt: skip
"""Functions of single elements that are other names of tagged ones, seen in inference mode."""
_KNOWN = (
    NO_ARITHMETIC | ELEMENTWISE | ARITHMETIC | WHOLE_LAYERS | LIBRARY_PRODUCTS | WITH_PRODUCTS
    | MOVING | FUNCTIONS
)  # fmt: skip


def base_of(name: str) -> str:
    """Return an operation's name without what is said after it of the places that it reads."""
    return name.removesuffix(OF_PARTS).removesuffix(OF_WIDER)


def is_unknown(name: str) -> bool:
    """Whether an operation is work that no table has: neither a move nor one of single elements.

    Args:
        name: without the underscore of those in place; with a namespace where it is none of
            `dispatched.NAMESPACES`, and then no table's.
    """
    plain = base_of(name)
    return plain not in _KNOWN and not _is_elementwise(plain)


def is_of_a_library(name: str) -> bool:
    """Whether an operation is of a library that came with torch, and not among its own."""
    return "::" in name


@cache
def _is_elementwise(name: str) -> bool:
    """Whether torch says of an operator that each element of its result is made of one of each."""
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    if not isinstance(packet, OpOverloadPacket):
        return False
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return any(torch.Tag.pointwise in overload.tags for overload in overloads)
