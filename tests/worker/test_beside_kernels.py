"""What may stand beside a kernel follows from the policy and from the reference's operations."""

import pytest

from hotloop.worker.beside_kernels import moves_only, refused

SUMS = {"sum", "mul"}


@pytest.mark.parametrize(
    ("operations", "policy", "census", "expected"),
    [
        # Where the reference holds no product, only moves and plain arithmetic may be large.
        ({"nansum": 100}, "anchored", SUMS, "nansum"),
        ({"index_put_accumulate": 50}, "anchored", SUMS, "index_put_accumulate"),
        ({"mv": 100}, "anchored", SUMS, "mv"),
        ({"_fft_r2c": 100}, "anchored", SUMS, "_fft_r2c"),
        ({"mul": 500, "add": 500, "where": 500, "index_put": 500}, "anchored", SUMS, None),
        ({"cumsum": 40, "bincount": 40}, "anchored", SUMS, None),
        ({"cumsum": 40, "bincount": 40, "sort": 40}, "anchored", SUMS, "cumsum"),
        ({"any": 100}, "anchored", SUMS, None),
        ({"any": 100}, "anchored", {"any"}, "any"),
        # Names of operations that write in place are the same.
        ({"exp": 100}, "anchored", {"sigmoid_", "mul_"}, "exp"),
        # Where it may hold one, products may stand; where nothing is known, as before.
        ({"mm": 100}, "anchored", {"_scaled_dot_product_flash_attention_for_cpu"}, None),
        ({"mm": 100}, "anchored", {"an_unknown_operation"}, None),
        ({"exp": 100}, "anchored", {"an_unknown_operation"}, "exp"),
        ({"mm": 100, "softmax": 100, "nansum": 100}, "anchored", {"addmm", "relu"}, None),
        ({"mm": 100}, "anchored", set(), None),
        # Attention: no product and no layer, under any name.
        ({"_cdist_forward": 60}, "none", set(), "_cdist_forward"),
        ({"_cudnn_attention_forward": 60}, "none", set(), "_cudnn_attention_forward"),
        ({"_linear_pointwise": 60}, "none", set(), "_linear_pointwise"),
        ({"cudnn_convolution_relu": 60}, "none", set(), "cudnn_convolution_relu"),
        ({"exp": 100, "sum": 100, "index_put_accumulate": 100}, "none", set(), None),
        # Host reads count together, and each way of seeing them by itself.
        ({"item": 30, "tolist": 30}, "anchored", {"mm"}, "item"),
        ({"item": 30, "_local_scalar_dense": 30}, "anchored", {"mm"}, None),
        ({"_device_to_host": 30, "_local_scalar_dense": 30}, "none", set(), "_device_to_host"),
    ],
)  # fmt: skip
def test_operations_beside_a_kernel(operations, policy, census, expected):
    assert refused(operations, policy, census, 100) == expected


@pytest.mark.parametrize(
    ("census", "expected"),
    [
        ({"flip", "t", "clone"}, True),
        ({"copy_", "zeros"}, True),
        ({"flip", "mul"}, False),
        (set(), False),  # nothing is known
    ],
)
def test_references_that_only_move(census, expected):
    assert moves_only(census) == expected
