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
        # Plain arithmetic scales and shifts; more of it is a function, by whatever names.
        ({"mul": 2000, "add": 2000}, "anchored", SUMS, None),
        ({"mul": 2000, "add": 2200}, "anchored", SUMS, "add"),
        ({"mul": 5000}, "anchored", {"mm"}, None),
        ({"add_of_parts": 60}, "anchored", SUMS, "add_of_parts"),
        ({"xlogy": 100}, "anchored", SUMS, "xlogy"),
        # Layers and reductions together.
        ({"_softmax": 49, "_log_softmax": 48}, "anchored", {"_softmax"}, "_softmax"),
        ({"any": 100}, "anchored", SUMS, None),
        ({"any": 100}, "anchored", {"any"}, "any"),
        # Names of operations that write in place are the same.
        ({"exp": 100}, "anchored", {"sigmoid_", "mul_"}, "exp"),
        # Where it may hold one, products may stand; where nothing is known, as before.
        ({"mm": 100}, "anchored", {"_scaled_dot_product_flash_attention_for_cpu"}, None),
        ({"mm": 100}, "anchored", {"an_unknown_operation"}, None),
        ({"exp": 100}, "anchored", {"an_unknown_operation"}, "exp"),
        ({"a_loss": 100}, "anchored", {"an_unknown_operation", "a_loss"}, "a_loss"),
        ({"smooth_l1_loss": 100}, "anchored", {"smooth_l1_loss"}, "smooth_l1_loss"),
        ({"mm": 100, "softmax": 100, "nansum": 100}, "anchored", {"addmm", "relu"}, None),
        ({"mm": 100}, "anchored", set(), None),
        # Attention: no product and no layer, under any name.
        ({"_cdist_forward": 60}, "none", set(), "_cdist_forward"),
        ({"_cudnn_attention_forward": 60}, "none", set(), "_cudnn_attention_forward"),
        ({"_linear_pointwise": 60}, "none", set(), "_linear_pointwise"),
        ({"cudnn_convolution_relu": 60}, "none", set(), "cudnn_convolution_relu"),
        ({"exp": 100, "sum": 100, "index_put_accumulate": 100}, "none", set(), None),
        ({"exp": 200, "sum": 200, "amax": 50}, "none", set(), "exp"),
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


@pytest.mark.parametrize(
    ("census", "answer", "expected"),
    [
        ({"index", "_softmax"}, 4096, "exp"),
        ({"index", "_softmax"}, 64, None),  # partial sums of a small output
        ({"_softmax"}, 4096, None),
    ],
)
def test_of_a_table_only_what_is_picked_counts(census, answer, expected):
    assert refused({"exp": 4096}, "anchored", census, 1 << 20, answer) == expected
