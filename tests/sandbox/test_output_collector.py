"""What a candidate prints: bounded, never waited for, harmless to show."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.sandbox import OutputCollector, sanitise


@pytest.fixture
def pipe() -> tuple[int, int]:
    return os.pipe()


def test_keeps_head_and_tail_and_counts_the_rest(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    collector = OutputCollector(reader, head_bytes=4, tail_bytes=4)
    for part in (b"abcdef", b"ghijkl", b"mnop"):
        os.write(writer, part)
        assert collector.drain() is False
    os.close(writer)
    assert collector.drain() is True
    assert (collector.total_bytes, collector.dropped_bytes) == (16, 8)
    assert collector.text() == "abcd\n[... 8 bytes dropped ...]\nmnop"
    assert not collector.over_limit
    os.close(reader)


def test_short_output_is_whole(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    collector = OutputCollector(reader, head_bytes=4, tail_bytes=4)
    os.write(writer, "grün\t1\n".encode())
    collector.drain()
    assert collector.text() == "grün\t1\n"
    assert collector.dropped_bytes == 0
    os.close(writer)
    os.close(reader)


def test_empty_pipe_does_not_block(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    collector = OutputCollector(reader)
    assert collector.drain() is False
    assert collector.text() == ""
    os.close(writer)
    assert collector.drain() is True
    os.close(reader)


def test_flood_is_flagged_and_memory_stays_bounded(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    child = os.fork()
    if child == 0:
        os.close(reader)
        block = b"y\n" * 32768
        try:
            while True:
                os.write(writer, block)
        except BrokenPipeError:
            os._exit(0)
    os.close(writer)
    collector = OutputCollector(reader, limit_bytes=8 << 20)
    drains = 0
    while not collector.over_limit:
        collector.drain()
        drains += 1
    assert drains >= 2, "one call must not read a flood to its end"
    assert len(collector.text()) < 200 * 1024
    os.close(reader)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b]52;c;cHduZWQ=\x07after", "after"),
        ("\x1b]52;c;cHduZWQ=\x1b\\after", "after"),
        ("\x9d52;c;cHduZWQ=\x9cafter", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hx", "x"),
        ("\x9b31mred", "red"),
        ("\x1bcreset", "reset"),
        ("\x1b]52;c;unterminated", "52;c;unterminated"),
        ("lie\rtruth\r\nnext", "lie\ntruth\nnext"),
        ("a\x08b\x7f\x00c", "abc"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("plain Grüße 漢字 \t tab\n", "plain Grüße 漢字 \t tab\n"),
    ],
)
def test_sanitise(raw: str, clean: str) -> None:
    assert sanitise(raw) == clean


@settings(database=None)
@given(st.text(st.sampled_from("\x1b\x07\x9b\x9c\x9d\x90[]P\\;0m\r\nab")))
def test_no_control_code_survives(text: str) -> None:
    clean = sanitise(text)
    assert not set(clean) - set("[]P\\;0m\nab")
    assert sanitise(clean) == clean


def test_sanitise_takes_linear_time() -> None:
    assert sanitise("\x9d" * 300_000 + "\x1b]" * 300_000 + "\x1b[" * 300_000).count("\x1b") == 0
