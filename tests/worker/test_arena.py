"""The arena on the host: slots do not overlap, gaps show stray writes, views stay inside."""

import fcntl
import mmap
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scaled_rows import forward, triton, verdict

from hotloop.core.verdict import Status
from hotloop.worker.arena import Arena, Layout, Slot

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64)


@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.integers(0, 300)), max_size=8))
def test_slots_and_gaps_are_disjoint_and_aligned(wanted):
    layout = Layout()
    spans = []
    for dtype, size in wanted:
        slot = layout.place((size,), (1,), dtype)
        assert slot.offset % 512 == 0
        spans.append((slot.offset, slot.offset + slot.span_bytes))
    spans += layout.gaps
    spans.sort()
    for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        assert end <= start
    assert max(end for _, end in spans) <= layout.size_bytes


@pytest.fixture
def board():
    layout = Layout()
    first = layout.place((4, 5), (5, 1), torch.float32)
    second = layout.place((3,), (1,), torch.int64)
    arena = Arena.create("cpu", layout.size_bytes)
    arena.fill_gaps(layout)
    return arena, layout, first, second


def test_another_mapping_of_the_descriptor_sees_the_values(board):
    arena, layout, first, _ = board
    values = torch.randn(4, 5)
    arena.view(first).copy_(values)
    other = Arena.open(arena.token, arena.fd)
    assert torch.equal(other.view(Slot.from_json(first.to_json())), values)
    assert arena.gaps_intact(layout)


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_stray_write_shows(board, where):
    arena, layout, first, _ = board
    place = first.offset - 1 if where == "before" else first.offset + first.span_bytes
    # the bytes before an aligned slot may be padding; the gap pattern lies at its end
    place = layout.gaps[0][1] - 1 if where == "before" else place
    arena.bytes[place] = 0
    assert not arena.gaps_intact(layout)


def test_strides_are_kept(board):
    layout = Layout()
    slot = layout.place_like(torch.randn(4, 6).t())
    arena = Arena.create("cpu", layout.size_bytes)
    view = arena.view(slot)
    assert view.shape == (6, 4)
    assert view.stride() == (1, 6)


def test_a_slot_outside_is_refused(board):
    arena, *_ = board
    with pytest.raises(ValueError, match="outside"):
        arena.view(Slot(arena.bytes.numel() - 4, (4,), (1,), "float32"))
    with pytest.raises(ValueError, match="dtype"):
        arena.view(Slot(0, (4,), (1,), "nonsense"))


@pytest.mark.parametrize(
    "cut",
    [
        lambda fd: os.ftruncate(fd, 0),
        lambda fd: os.ftruncate(fd, 1 << 20),
        lambda fd: os.truncate(f"/proc/self/fd/{fd}", 0),
        lambda fd: os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC),
        lambda fd: fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
    ],
    ids=["shrink", "grow", "by-its-path", "opened-anew", "one-more-seal"],
)
def test_who_holds_the_file_cannot_cut_it_from_under_the_judge(board, cut):
    arena, layout, *_ = board
    theirs = os.dup(arena.fd)
    with pytest.raises(PermissionError):
        cut(theirs)
    os.close(theirs)
    assert os.fstat(arena.fd).st_size == arena.bytes.numel()
    assert arena.gaps_intact(layout)


def test_a_sealed_arena_can_be_mapped_and_written_by_who_holds_it(board):
    arena, _, _, second = board
    theirs = os.dup(arena.fd)
    with mmap.mmap(theirs, arena.bytes.numel()) as mapping:
        mapping[second.offset : second.offset + 8] = (7).to_bytes(8, "little")
    os.close(theirs)
    assert arena.view(second)[0] == 7


CUT = """
def cut():
    for fd in range(3, 64):
        path = f"/proc/self/fd/{fd}"
        if os.path.lexists(path) and "arena" in os.readlink(path):
            os.ftruncate(fd, 0)

class ModelNew"""


def test_a_candidate_that_cuts_the_arena_fails_alone(cpu_judge):
    found = verdict(cpu_judge, triton(("class ModelNew", CUT.lstrip()), forward("cut()")))
    assert found.status is Status.RUNTIME_ERROR
    assert found.message.startswith("PermissionError"), found.message
    assert verdict(cpu_judge, triton()).status is Status.PASSED
