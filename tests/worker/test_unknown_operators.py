"""Operators that no table has are work, unless they only move or are of single elements."""

import pytest
import torch

from hotloop.worker.beside_kernels import refused, refused_on_values
from hotloop.worker.call_rules import uses_library
from hotloop.worker.claims import Observed
from hotloop.worker.unknown_operators import is_of_a_library, is_unknown

LAYER = {"upsample_bilinear2d"}
"""A reference of which nothing is known."""


@pytest.mark.parametrize(
    "name",
    [
        "_upsample_bilinear2d_aa", "conv_tbc", "_embedding_bag", "linalg_solve_triangular",
        "grid_sampler_2d", "_fft_r2c", "index_add", "index_put_accumulate",
        "mkldnn_prepacked::conv2d_run", "static_runtime::view", "no_such_operator", "__class__",
    ],
)  # fmt: skip
def test_what_no_table_has_is_barred_where_little_is_known_of_the_reference(name):
    assert is_unknown(name)
    assert refused({name: 50}, "anchored", LAYER, 100) == name
    assert refused({name: 49}, "anchored", LAYER, 100) is None
    assert refused({name: 100}, "anchored", {"mm"}, 100) is None


@pytest.mark.parametrize(
    "name",
    [
        # Moves and memory, also as inference mode and graphs without views show them.
        "empty", "view", "reshape", "contiguous", "constant_pad_nd", "pad", "cat", "_to_copy",
        "copy", "arange", "full", "index", "index_select", "gather", "nonzero", "searchsorted",
        "broadcast_tensors", "reshape_as", "type_as", "permute_copy", "slice_copy", "_stack",
        "_cast_Float", "_unsafe_index_put", "index_put", "one_hot", "requires_grad", "data",
        # Arithmetic of elements, by a table or by torch's own tag.
        "add", "mul", "where", "clamp", "__and", "ldexp", "frexp", "heaviside", "gcd",
        "mul_of_parts", "mul_of_wider_elements", "reflection_pad2d", "pixel_shuffle",
    ],
)  # fmt: skip
def test_what_prepares_a_kernels_work_is_not(name):
    assert not is_unknown(name)
    assert refused({name: 100}, "anchored", LAYER, 100) is None
    assert refused_on_values({name: 100}, 0, 100) is None


def test_names_of_the_list_are_operators_that_there_are():
    from hotloop.worker import unknown_operators

    listed = unknown_operators.MOVING | unknown_operators.FUNCTIONS
    missing = [
        n for n in listed if not any(hasattr(torch.ops.aten, n + e) for e in ("", "_", "__"))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("done", "applied", "expected"),
    [
        ({"conv_tbc": 5000}, 30000, "conv_tbc"),
        ({"mkldnn_prepacked::conv2d_run": 5000}, 30000, "mkldnn_prepacked::conv2d_run"),
        ({"conv_tbc": 4000}, 30000, None),
        ({"conv_tbc": 4900, "_embedding_bag": 4900, "cov": 4900}, 30000, "conv_tbc"),
        # Arithmetic, parts, functions, sums by indices: together, of what they are applied to.
        ({"mul": 60000, "add_of_parts": 60000}, 30000, "mul"),
        ({"addcmul": 120000}, 30000, "addcmul"),
        ({"mul": 50000, "sum": 30000, "exp": 20000, "index_add": 10000}, 30000, None),
        ({"mul": 50000, "sum": 30000, "exp": 20000, "index_add": 20000}, 30000, "mul"),
        ({"mul": 39000}, 0, None),  # at least of the largest tensor
        ({"mul": 41000}, 0, "mul"),
        ({"index": 10**9, "clone": 10**9, "constant_pad_nd": 10**9}, 30000, None),
    ],
)
def test_on_values_moves_and_a_little_arithmetic_may_stand(done, applied, expected):
    assert refused_on_values(done, applied, 10000) == expected


@pytest.mark.parametrize(
    ("census", "expected"),
    [({"sum"}, "mul_of_parts"), ({"sum", "view_as_complex"}, None), ({"_fft_r2c"}, None)],
)
def test_pairs_that_are_numbers_are_parts_unless_the_reference_has_complex_numbers(
    census, expected
):
    assert refused({"mul_of_wider_elements": 60}, "anchored", census, 100) == expected


def test_what_a_library_alone_names_is_foreign():
    assert is_of_a_library("mkldnn_prepacked::conv2d_run")
    assert not is_of_a_library("_upsample_bilinear2d_aa")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mkldnn_prepacked::conv2d_run", True), ("mm", True), ("_upsample_bilinear2d_aa", False)],
)
def test_a_library_beside_kernels_is_told(name, expected):
    counts = ("launches", "applied", "started", "from_kernels", "python_threads", "tasks")
    operations = [{"name": name, "numel": 100}]
    seen = Observed.read({**dict.fromkeys(counts, 1), "operations": operations})
    assert uses_library(seen) == expected
