"""The audit of a small paged decode step: fakes are refused, that without the table too."""

import pytest
from audited import audited, trial
from problem_files import attention

from hotloop.core.audit import TrialState

BODY = (
    "def get_buffers(generator):\n"
    "    return {'lengths': torch.randint(100, Skv + 1, (B,), generator=generator)}\n"
    "def mask_mod(b, h, q_idx, kv_idx):\n    return kv_idx < lengths[b]\n"
)
SIZES = {"S": 1, "Hkv": 2, "Skv": 256, "page_size": 16, "D": 64}


@pytest.mark.slow
def test_fakes_of_a_paged_decode_step_are_refused():
    found = audited(attention(BODY, **SIZES))
    assert found.rankable, found.reasons
    name = "pages in their order, without the table"
    assert trial(found, name).state is TrialState.CAUGHT
    assert not [t.name for t in found.trials if t.state is TrialState.ACCEPTED]
    contiguous = audited(attention(BODY, **{**SIZES, "page_size": None}))
    assert name not in {t.name for t in contiguous.trials}
