"""The channel to an untrusted process: deadlines, descriptors, and frames that are none."""

import os
import socket
import struct
import threading
import time

import pytest

from hotloop.worker.channel import Channel, ChannelClosed, ChannelTimeout, FrameTooLarge


@pytest.fixture
def pair():
    ours, theirs = Channel.pair()
    other = Channel(theirs)
    yield ours, other
    ours.close()
    other.close()


def test_messages_and_descriptors_arrive(pair):
    ours, other = pair
    read_end, write_end = os.pipe()
    ours.send({"text": "ü", "n": [1]}, fds=[read_end])
    message, fds = other.receive(1)
    assert message == {"text": "ü", "n": [1]}
    os.write(write_end, b"x")
    assert os.read(fds[0], 1) == b"x"
    for fd in (read_end, write_end, *fds):
        os.close(fd)


def test_silence_ends_at_the_deadline(pair):
    start = time.monotonic()
    with pytest.raises(ChannelTimeout):
        pair[0].receive(0.1)
    assert time.monotonic() - start < 20


def test_half_a_message_ends_at_the_deadline(pair):
    ours, other = pair
    other.sock.sendall(struct.pack(">I", 100) + b"{")
    with pytest.raises(ChannelTimeout):
        ours.receive(0.1)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", 1 << 31),
        struct.pack(">I", 3) + b"xyz",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 200_000) + b"[" * 200_000,
    ],
    ids=["too large", "no json", "no object", "nested bomb"],
)
def test_what_is_no_frame_closes_the_channel(pair, data):
    ours, other = pair
    other.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    other.sock.sendall(data)
    with pytest.raises(ChannelClosed):
        ours.receive(1)


def test_the_other_end_is_gone(pair):
    ours, other = pair
    other.close()
    with pytest.raises(ChannelClosed):
        ours.receive(1)


def test_a_message_that_is_too_large_is_not_sent_and_the_channel_goes_on():
    ours, theirs = Channel.pair()
    small, other = Channel(ours.sock, max_frame_bytes=100), Channel(theirs)
    with pytest.raises(FrameTooLarge, match="at most 100"):
        small.send({"text": "x" * 100})
    small.send({"text": "x"})
    assert other.receive(1)[0] == {"text": "x"}
    small.close()
    other.close()


def test_an_end_that_does_not_read_is_gone():
    ours, theirs = Channel.pair(send_s=1)
    start = time.monotonic()
    with pytest.raises(ChannelClosed):
        ours.send({"text": "x" * (4 << 20)})
    assert time.monotonic() - start < 10
    ours.close()
    theirs.close()


@pytest.mark.parametrize("body", [b"xyz", b"{"], ids=["no json", "unfinished"])
def test_descriptors_beside_what_is_no_frame_are_closed(pair, body):
    ours, other = pair
    read_end, write_end = os.pipe()
    socket.send_fds(other.sock, [struct.pack(">I", 3)], [write_end])
    other.sock.sendall(body)
    os.close(write_end)
    with pytest.raises((ChannelClosed, ChannelTimeout)):
        ours.receive(0.1)
    assert os.read(read_end, 1) == b""  # nobody holds the writing end any more
    os.close(read_end)


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_socket_that_somebody_made_non_blocking_waits_all_the_same(size):
    ours, theirs = Channel.pair()
    other = Channel(theirs)
    got = []
    reader = threading.Thread(target=lambda: got.append(other.receive()[0]))
    try:
        for channel in (ours, other):
            os.set_blocking(channel.sock.fileno(), False)
        reader.start()
        time.sleep(0.05)  # it waits, and nothing is there
        ours.send({"text": "x" * size})
        reader.join(10)
        assert got == [{"text": "x" * size}]
        with pytest.raises(ChannelTimeout):
            ours.receive(0.05)
        other.close()
        with pytest.raises(ChannelClosed, match="is gone"):
            ours.send({"text": "x"})
    finally:
        ours.close()
        other.close()


def test_a_non_blocking_end_that_nobody_reads_from_ends_in_time_too():
    ours, theirs = Channel.pair(send_s=1)
    os.set_blocking(ours.sock.fileno(), False)
    start = time.monotonic()
    with theirs, pytest.raises(ChannelClosed, match="took nothing"):
        ours.send({"text": "x" * 3_000_000})
    assert 0.9 < time.monotonic() - start < 5
    ours.close()
