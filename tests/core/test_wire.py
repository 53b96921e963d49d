"""Frames: what is written is read, and what is no frame is refused."""

import io
import struct

import pytest

from hotloop.core.wire import MAX_FRAME_BYTES, read_frame, write_frame


def stream(*frames):
    buffer = io.BytesIO()
    for frame in frames:
        write_frame(buffer, frame)
    buffer.seek(0)
    return buffer


def test_frames_come_back_in_order():
    source = stream({"id": 1}, {"id": 2, "text": "ü"})
    assert read_frame(source) == {"id": 1}
    assert read_frame(source) == {"id": 2, "text": "ü"}
    assert read_frame(source) is None


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_a_stream_that_ends_inside_a_frame_is_refused(cut):
    data = stream({"id": 1}).getvalue()[:-cut] if cut < 4 else stream({"id": 1}).getvalue()[:2]
    with pytest.raises((ValueError, struct.error)):
        read_frame(io.BytesIO(data))


def test_a_frame_that_claims_too_much_is_refused():
    with pytest.raises(ValueError, match="may hold"):
        read_frame(io.BytesIO(struct.pack(">I", MAX_FRAME_BYTES + 1)))


def test_a_frame_that_is_no_object_is_refused():
    with pytest.raises(ValueError, match="object"):
        read_frame(io.BytesIO(struct.pack(">I", 2) + b"[]"))


def test_nan_is_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        write_frame(io.BytesIO(), {"x": float("nan")})
