"""Which baselines an attention problem has, and the time of a block mask."""

import pytest
import torch
from problem_files import attention, mask_mod, score_mod
from torch.nn.attention.flex_attention import create_block_mask

from hotloop.errors import ProblemError
from hotloop.worker import attention_baselines, block_masks
from hotloop.worker.approximate_tanh import uses_tanh
from hotloop.worker.attention_math import Grid, Mods
from hotloop.worker.attention_reference import AttentionReference

GRID = Grid.ranges(torch.device("cpu"), (0, 2), (0, 4), (0, 32), (0, 32))


def mods_of(loaded):
    sigmoid = loaded.sizes.normalize == "sigmoid"
    return Mods(loaded.score_mod, loaded.mask_mod, 0.25, sigmoid=sigmoid)


def names_of(loaded):
    return attention_baselines.applicable(mods_of(loaded), loaded.sizes, "cpu")


@pytest.mark.parametrize(
    ("expression", "used"),
    [
        ("20 * torch.tanh(score / 20)", True),
        ("20 * (score / 20).tanh()", True),
        ("20 * torch.nn.functional.tanh(score / 20)", True),
        ("torch.where(q_idx > 3, score, torch.tanh(score))", True),
        ("score + (q_idx - kv_idx)", False),
        ("torch.sigmoid(score)", False),
    ],
)
def test_a_tanh_is_found_however_it_is_written(expression, used):
    assert uses_tanh(mods_of(score_mod(expression)), "cpu") is used


def test_without_a_score_mod_there_is_no_tanh():
    assert not uses_tanh(Mods(None, None, 1.0), "cpu")


def test_each_problem_has_the_baselines_that_compute_it():
    plain = ("eager", "flex", "flex_max_autotune", "flex_flash")
    vendor = ("sdpa_flash", "cudnn")
    assert names_of(attention("")) == (*plain, *vendor)
    assert names_of(mask_mod("q_idx >= kv_idx")) == (*plain, *vendor)
    assert names_of(mask_mod("q_idx > kv_idx")) == plain
    assert names_of(score_mod("score + (q_idx - kv_idx)")) == plain
    assert set(names_of(score_mod("20 * torch.tanh(score / 20)"))) == {
        *plain, "flex_approx", "flex_approx_max_autotune",
    }  # fmt: skip
    assert names_of(attention("normalize = 'sigmoid'")) == ("eager", "compile")


def test_the_flash_back_end_is_missing_with_a_reason_or_used(tmp_path, monkeypatch):
    with pytest.raises(ProblemError, match="flash-attn-4 is not installed"):
        attention_baselines.require_flash()
    (tmp_path / "flash_attn" / "cute").mkdir(parents=True)
    for folder in ("flash_attn", "flash_attn/cute"):
        (tmp_path / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    attention_baselines.require_flash()


def test_timed_calls_have_the_profile_that_a_file_names():
    assert attention("timed_profile = 'needles'").timed_profile == "needles"
    with pytest.raises(ProblemError, match="must be a name, got 3"):
        attention("timed_profile = 3")
    reference = AttentionReference.__new__(AttentionReference)  # set-up takes seconds
    reference.loaded, reference.profiles = attention(""), ("normal", "needles")
    assert reference.timed_profile == "normal"
    reference.loaded.timed_profile = "needles"
    assert reference.timed_profile == "needles"
    reference.loaded.timed_profile = "nowhere"
    with pytest.raises(ProblemError, match="expected one of normal, needles, got 'nowhere'"):
        _ = reference.timed_profile


@pytest.mark.parametrize(
    ("expression", "over"),
    [
        ("q_idx >= kv_idx", (False, False)),
        ("q_idx >= kv_idx * b", (True, False)),
        ("q_idx >= kv_idx - h", (False, True)),
        ("q_idx + b >= kv_idx - h", (True, True)),
    ],
)
def test_whether_a_mask_depends_on_batch_and_head(expression, over):
    assert block_masks.depends_on(mask_mod(expression).mask_mod, GRID) == over


def test_a_mask_is_made_once_for_the_same_captured_tensors():
    loaded = mask_mod("q_idx >= kv_idx")
    masks = block_masks.BlockMasks(loaded.mask_mod, loaded.sizes, "cpu")
    state, other = {}, {}
    mask, elapsed_ms = masks.of(state, GRID)
    assert elapsed_ms > 0
    assert masks.of(state, GRID)[0] is mask
    assert masks.of(other, GRID)[0] is not mask


def made(mod):
    return create_block_mask(mod, None, None, 256, 256, device="cpu")


def test_the_quickest_way_to_the_same_mask_counts_and_no_other():
    causal, full = made(lambda b, h, q, k: q >= k), made(lambda b, h, q, k: q >= 0)
    times = {"slow": (causal, 3.0), "quick": (made(lambda b, h, q, k: q >= k), 1.0),
             "wrong": (full, 0.1)}  # fmt: skip

    def timed(make, device):
        if make == "broken":
            raise RuntimeError("the compiler failed")
        return times[make]

    assert block_masks.quickest(["slow", "quick"], "cpu", timed) == (causal, 1.0)
    assert block_masks.quickest(["slow", "wrong", "broken"], "cpu", timed) == (causal, 3.0)
    with pytest.raises(RuntimeError, match="compiler"):
        block_masks.quickest(["broken", "slow"], "cpu", timed)


def test_masks_are_compared_by_their_blocks():
    causal, again = made(lambda b, h, q, k: q >= k), made(lambda b, h, q, k: q >= k)
    assert block_masks.same_blocks(causal, again)
    assert not block_masks.same_blocks(causal, made(lambda b, h, q, k: q >= k - 128))
