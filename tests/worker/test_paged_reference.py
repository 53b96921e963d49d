"""A paged KV cache on the trusted side: the table, the order of keys, baselines, bad input."""

import pytest
import torch
from problem_files import attention
from torch.nn.attention.flex_attention import flex_attention

from hotloop.errors import ProblemError
from hotloop.worker import paged
from hotloop.worker.attention_baselines import AttentionBaselines, applicable, probe
from hotloop.worker.attention_file import SPARE_PAGES
from hotloop.worker.attention_math import Mods, exact, visible
from hotloop.worker.audit_reading import reading_fakes
from hotloop.worker.audit_subject import Subject
from hotloop.worker.golden import float64_default
from hotloop.worker.paged_flex import PagedFlex
from hotloop.worker.reference import build_reference
from hotloop.worker.trace import trace_attention
from hotloop.worker.uncompiled_flex import masked_score, uncompiled_flex

SIZES = {"S": 2, "Hkv": 2, "Skv": 64, "page_size": 16}
LENGTHS = (
    "def get_buffers(generator):\n"
    "    return {'lengths': torch.randint(1, Skv + 1, (B,), generator=generator)}\n"
    "def mask_mod(b, h, q_idx, kv_idx):\n    return kv_idx < lengths[b]\n"
)
BIAS = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + 0.1 * (h + 1) * b - kv_idx\n"


@pytest.fixture(scope="module")
def reference():
    return build_reference(attention(LENGTHS, **SIZES))


def pages_by_hand(cache, table, page_size):
    """Return keys in their order, one key at a time."""
    batch, columns = table.shape
    rows = [
        torch.stack(
            [
                cache[int(table[b, i // page_size]), :, i % page_size]
                for i in range(columns * page_size)
            ],
            dim=1,
        )
        for b in range(batch)
    ]
    return torch.stack(rows)


def test_gathered_keys_are_those_that_the_table_names():
    sizes = attention("", **SIZES).sizes
    table = paged.draw_page_table(sizes, 5, "cpu")
    cache = torch.randn(sizes.kv_shape)
    assert torch.equal(paged.gather_pages(cache, table), pages_by_hand(cache, table, 16))


def test_what_is_written_is_what_is_gathered_and_other_pages_hold_values_too():
    sizes = attention("", **SIZES).sizes
    table = paged.draw_page_table(sizes, 5, "cpu")
    cache = torch.full(sizes.kv_shape, float("nan"))
    keys = torch.randn(2, 2, 64, 16)
    paged.write_pages(cache, table, keys, torch.Generator().manual_seed(0))
    assert torch.equal(paged.gather_pages(cache, table), keys)
    assert bool(torch.isfinite(cache).all())
    unused = set(range(sizes.kv_shape[0])) - set(table.flatten().tolist())
    assert len(unused) == SPARE_PAGES


@pytest.mark.parametrize("changes", [{}, {"B": 1, "Skv": 16}, {"page_size": 64}])
def test_no_page_is_in_its_natural_place_and_none_is_named_twice(changes):
    sizes = attention("", **{**SIZES, **changes}).sizes
    tables = [paged.draw_page_table(sizes, seed, "cpu") for seed in range(20)]
    for table in tables:
        numbers = table.flatten()
        assert table.dtype == torch.int32
        assert table.shape == (sizes.B, sizes.Skv // sizes.page_size)
        assert numbers.unique().numel() == numbers.numel()
        assert int(numbers.max()) < sizes.kv_shape[0]
        assert not bool((numbers == torch.arange(numbers.numel())).any())
    assert len({tuple(t.flatten().tolist()) for t in tables}) > 1


def test_the_golden_is_attention_over_the_keys_in_their_order(reference):
    draw = reference.draw(3, "normal")
    q, k, v = draw.inputs
    assert k.shape == (2 * 4 + SPARE_PAGES, 2, 16, 16)
    keys, values = (pages_by_hand(t, draw.state["page_table"], 16) for t in (k, v))
    lengths = draw.state["lengths"]
    mods = Mods(None, lambda b, h, i, j: j < lengths[b], 16**-0.5)
    with float64_default():
        want = exact(q, keys, values, mods)
    assert torch.equal(reference.golden(draw)[0], want)
    assert float((reference.eager(draw)[0].double() - want).abs().max()) < 0.02


def test_a_table_is_drawn_for_each_seed_also_where_timed_calls_pin_captured_tensors(
    reference, monkeypatch
):
    monkeypatch.setattr(reference.loaded, "buffer_seed", 1)
    one, two = (reference.draw(seed, "normal", timed=True).state for seed in (1, 2))
    assert torch.equal(one["lengths"], two["lengths"])
    assert not torch.equal(one["page_table"], two["page_table"])


def test_needles_and_other_profiles_are_drawn_in_the_order_of_the_keys(reference):
    assert "needles" in reference.profiles
    q, k, _ = reference.in_order(reference.draw(3, "sorted"))
    assert bool((k[..., -1].diff(dim=-1) >= 0).all())


def test_bytes_count_the_keys_that_some_query_sees(reference):
    lengths = reference._home["lengths"]
    state, q = 8 * 2 + 4 * 2 * 4, 2 * (2 * 4 * 2 * 16)
    assert reference.useful_bytes == 2 * 2 * 2 * 16 * int(lengths.sum()) + state + 2 * q


def test_what_must_fit_in_memory_is_the_whole_cache_whatever_is_seen_of_it(reference):
    _, k, v = reference.draw(3, "normal").inputs
    assert reference.io_bytes > reference.useful_bytes
    assert reference.io_bytes > k.nbytes + v.nbytes


def test_a_mask_that_hides_keys_from_some_heads_only_leaves_them_to_be_read():
    mods = Mods(None, lambda b, h, i, j: (j < 8) | ((h == 1) & (j < 16)), 1.0)
    assert visible(mods, 2, (1, 4, 2, 32), "cpu") == (0.3125, 0.375)
    assert visible(Mods(None, None, 1.0), 2, (1, 4, 2, 32), "cpu") == (1.0, 1.0)


@pytest.mark.parametrize(("score", "per_head"), [("", False), (BIAS, True)])
def test_flex_over_pages_is_flex_over_gathered_keys(score, per_head):
    mask = LENGTHS.replace("lengths[b]", "lengths[b] - h") if per_head else LENGTHS
    loaded = attention("lengths = torch.tensor([40, 64])\n" + score + mask, **SIZES)
    loaded.namespace["lengths"] = torch.tensor([37, 64])
    sizes, mods = loaded.sizes, Mods(loaded.score_mod, loaded.mask_mod, 0.25)
    table = paged.draw_page_table(sizes, 1, "cpu")
    q, k, v = torch.randn(2, 4, 2, 16), torch.randn(sizes.kv_shape), torch.randn(sizes.kv_shape)
    flex = PagedFlex(mods, sizes, table)
    block_mask, elapsed_ms = flex.block_mask(probe(sizes, "cpu"))
    assert elapsed_ms > 0
    got = flex_attention(
        flex.view_query(q), flex.view_pages(k), flex.view_pages(v), score_mod=flex.score_mod,
        block_mask=block_mask, scale=0.25, enable_gqa=True,
    )  # fmt: skip
    gathered = [paged.gather_pages(t, table) for t in (k, v)]
    want = uncompiled_flex(q, *gathered, masked_score(mods), 0.25)
    torch.testing.assert_close(got.view(q.shape), want)


def test_baselines_of_a_paged_cache_are_named():
    loaded = attention(LENGTHS, **SIZES)
    loaded.namespace["lengths"] = torch.tensor([37, 64])
    mods = Mods(None, loaded.mask_mod, 0.25)
    assert applicable(mods, loaded.sizes, "cpu") == (
        "eager", "flex", "flex_max_autotune", "flex_gather",
    )  # fmt: skip
    assert applicable(Mods(None, None, 1.0), loaded.sizes, "cpu")[-1] == "flex_gather"


def test_eager_reads_the_values_now_in_the_pages(reference):
    draw = reference.draw(3, "normal")
    call = AttentionBaselines(reference).build("eager", draw)
    before = call()
    reference.redraw_inputs(draw, 4)
    assert not torch.equal(call(), before)
    assert torch.equal(call(), reference.eager(draw)[0])


def test_the_audit_has_a_fake_without_the_table(reference):
    draw = reference.draw(3, "normal")
    subject = Subject(reference, None, draw, reference.golden(draw), reference.eager(draw))
    (fake,) = [f for f in reading_fakes(subject) if "without the table" in f.name]
    (made,) = fake.make(subject).values()
    assert float((made - reference.eager(draw)[0]).abs().max()) > 0.1


def test_the_traced_problem_states_pages():
    spec = trace_attention(attention("", **SIZES))
    assert (spec.page_size, spec.pages, spec.buffers) == (16, 11, ())
    plain = trace_attention(attention("", S=2, Skv=64))
    assert (plain.page_size, plain.pages) == (None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"page_size": 48}, "p: page_size is one of 16, 32, 64, 128, 256, or None; got 48"),
        ({"page_size": 8}, "got 8"),
        ({"page_size": 512}, "got 512"),
        ({"page_size": 16.0}, "got 16.0"),
        ({"page_size": 32, "Skv": 80}, "page_size 32 must divide the number of keys, got Skv 80"),
    ],
)  # fmt: skip
def test_a_page_size_that_does_not_fit(changes, message):
    with pytest.raises(ProblemError) as caught:
        attention("", **{**SIZES, **changes})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_line_of_a_page_size_is_named():
    with pytest.raises(ProblemError, match="p line 4: page_size is one of"):
        attention("Skv = 64\npage_size = 63\n")


def test_the_tables_name_is_taken():
    own = {"page_table": torch.zeros(3)}
    with pytest.raises(ProblemError, match="'page_table' is drawn for a file with a page_size"):
        paged.with_page_table(own, attention("", **SIZES), 1)
    assert paged.with_page_table(own, attention("", S=2, Skv=64), 1) is own
    assert set(paged.with_page_table({}, attention("", **SIZES), 1)) == {"page_table"}
