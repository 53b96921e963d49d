"""Side streams where there is no GPU: made, entered and waited for, without a word about time."""

from __future__ import annotations

import pytest
from scaled_rows import triton, verdict

from hotloop.verify import LocalVerifier
from hotloop.worker import fake_streams
from hotloop.worker.fake_device import CUDA_PROPERTIES, device_queries

SIDE = """        side = torch.cuda.Stream(priority=-1)
        now = torch.cuda.current_stream()
        side.wait_stream(now)
        with torch.cuda.stream(side):
            x = x * 1
        now.wait_stream(side)
        side.synchronize()
"""


def test_a_kernel_that_uses_a_side_stream_passes(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, triton(("        y =", f"{SIDE}        y =")))
    assert found.passed, found.message
    assert found.resources, "the compile lane followed it too"


def test_what_is_left_undone_on_the_side_is_still_wrong(cpu_judge: LocalVerifier) -> None:
    found = verdict(
        cpu_judge, triton(("        y =", f"{SIDE.replace('x * 1', 'x * 2')}        y ="))
    )
    assert not found.passed


def test_events_have_happened_and_tell_no_time() -> None:
    queries = device_queries()
    stream, event = queries["Stream"](), queries["Event"](enable_timing=True)
    event.record()
    assert stream.record_event(event) is event
    assert isinstance(stream.record_event(), fake_streams.Event)
    stream.wait_event(event)
    assert stream.query()
    assert event.query()
    with pytest.raises(AttributeError):
        event.elapsed_time(event)


def test_the_memory_that_is_free_is_less_than_all() -> None:
    free, total = device_queries()["mem_get_info"]()
    assert 0 < free < total == CUDA_PROPERTIES.total_memory
