"""Generated attention kernels, run in Triton's interpreter against float64."""

from __future__ import annotations

import numpy as np
import pytest
import variants
from attention_check import check
from expressions import make_spec

SMALL = {"BLOCK_M": 64, "BLOCK_N": 32}


def test_each_variant_of_the_examples(interpreter):
    documents = np.sort(np.random.default_rng(0).integers(0, 4, 128)).astype(np.int32)
    for name in ("full", "causal", "relative", "alibi", "document", "softcap"):
        score, mask = getattr(variants, name)()
        buffers = {"doc": documents} if name == "document" else {}
        spec = make_spec(score=score, mask=mask)
        check(interpreter, spec, score=score, mask=mask, buffers=buffers, **SMALL)
