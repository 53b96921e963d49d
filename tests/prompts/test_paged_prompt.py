"""What a prompt says of a paged KV cache, and that it says nothing of it elsewhere."""

from dataclasses import replace

import pytest
from prompt_cases import attention_task

from hotloop.core.graph import BufferSpec
from hotloop.prompts.render import first_prompt

SIZES = {"H": 32, "Hkv": 8, "S": 1, "Skv": 8192, "page_size": 64, "pages": 515}


def paged_task(language):
    task = attention_task(language)
    lengths = BufferSpec(name="lengths", shape=(4,), dtype="int32")
    spec = replace(task.info.attention, **SIZES, buffers=(lengths,))
    return replace(task, info=replace(task.info, attention=spec))


@pytest.mark.parametrize("language", ["triton", "cuda", "gluon"])
def test_a_paged_cache_is_described(language):
    text = first_prompt(paged_task(language)).text
    assert "k and v are a paged cache (515 pages, Hkv 8, 64 keys, D 128)" in text
    assert "`page_table`: (4, 128), int32: row i % 64 of page page_table[b, i // 64]" in text
    assert "page_table, lengths" in text  # the buffers, or the state, by their names
    assert "`kv_idx` counts the keys of a batch" in text
    assert "none is in the table twice" in text


@pytest.mark.parametrize("language", ["triton", "cuda", "gluon"])
def test_contiguous_keys_have_no_pages(language):
    assert "page" not in first_prompt(attention_task(language)).text
