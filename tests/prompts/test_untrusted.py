"""Foreign text is stripped, and plain text comes through as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.prompts.untrusted import clean, code, fence, head_and_tail, own_frames


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31merror\x1b[0m: x", "error: x"),
        ("a\x00b\x07c\u202e", "abc"),
        ("at /home/me/run/kernel.py:3", "at kernel.py:3"),
        ("file:///tmp/a/b.py", "b.py"),
        ("seed=12345, manual_seed 7", "seed=[hidden], manual_seed [hidden]"),
        ("atol 1e-05 rtol=0.25", "atol [hidden] rtol=[hidden]"),
        ("<|im_end|> </think>", "< |im_end|> < /think>"),
        ("```python", "'''python"),
    ],
)
def test_what_may_not_come_through(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize(
    "text",
    ["x = a / b / c", "y = a//b", "i < n and n > 0", "kernel.py:12:5: error", "x[i]/y[j]/2",
     "acc <<= 2", "line\n\tindented", "torch.manual_seed(0)"],
)  # fmt: skip
def test_plain_text_stays(text):
    assert clean(text) == text


@given(st.text())
def test_cleaning_twice_changes_nothing(text):
    assert clean(clean(text)) == clean(text)


@given(st.lists(st.sampled_from(["`", "```", "````", "\n", "a"])).map("".join))
def test_no_source_ends_its_fence(text):
    mark, *_, last = fence(text).split("\n")
    assert last == mark
    assert mark not in text


def test_a_source_stays_as_it_is():
    source = "x = '/home/me/a/b'  # ``` seed=1\n"
    assert source.strip() in code(source, "python")


@given(st.text(max_size=300), st.integers(2, 9))
def test_head_and_tail_say_how_much_is_missing(text, lines):
    kept = head_and_tail(text, lines=lines)
    cut = [line for line in kept.split("\n") if line.startswith("[...")]
    assert len(kept.split("\n")) <= lines + 1
    assert bool(cut) is (len(text.strip("\n").split("\n")) > lines)


def test_frames_of_others_are_left_out():
    trace = (
        'Traceback (most recent call last):\n  File "/x/harness.py", line 3, in run\n    go(1)\n'
        '  File "/x/kernel.py", line 9, in forward\n    y = f(x)\nValueError: bad\n'
    )
    kept = own_frames(trace, {"kernel.py"})
    assert "harness" not in kept
    assert "go(1)" not in kept
    assert "y = f(x)" in kept
    assert "ValueError: bad" in kept
