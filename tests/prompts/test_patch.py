"""Diffs as models write them, against a known file."""

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.prompts.patch import PatchError, apply_diff

FILE = "\n".join(f"line {k}" for k in range(30))
TWICE = "a\nx = 1\nb\n" * 3


def change(diff, text=FILE):
    return apply_diff({"kernel.py": text, "other.py": "p\nq"}, "kernel.py", diff)


@pytest.mark.parametrize("header", ["@@ -3,3 +3,3 @@", "@@ -25,3 +25,3 @@ f", "@@", "@@ .. @@"])
def test_a_hunk_is_found_by_its_lines(header):
    changed = change(f"{header}\n line 2\n-line 3\n+LINE 3\n line 4\n")["kernel.py"]
    assert changed == FILE.replace("line 3\n", "LINE 3\n", 1)


def test_a_named_file_is_changed_and_the_other_is_not():
    files = change("--- a/other.py\n+++ b/other.py\n@@ -1,2 +1,2 @@\n-p\n+P\n q\n")
    assert files == {"kernel.py": FILE, "other.py": "P\nq"}


def test_the_nearest_place_is_taken_and_no_place_is_guessed():
    near = change("@@ -5,1 +5,1 @@\n-x = 1\n+x = 2\n", TWICE)["kernel.py"].split("\n")
    assert [k for k, line in enumerate(near) if line == "x = 2"] == [4]
    with pytest.raises(PatchError, match="3 places"):
        change("@@\n-x = 1\n+x = 2\n", TWICE)


def test_context_keeps_what_the_file_has():
    changed = change("@@ -1,3 +1,2 @@\n line 0   \n-line 1\n line 2\n")["kernel.py"]
    assert changed.startswith("line 0\nline 2\n")


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("no hunk", "at least one hunk"),
        ("@@ -1 +1 @@\n-line 77\n+x\n", "hunk 1 does not fit"),
        ("@@ -1 +1 @@\n-line 1\n+x\n@@ -9 +9 @@\n-line 99\n+x\n", "hunk 2"),
        ("@@\n+only new\n", "names no place"),
    ],
)
def test_what_does_not_apply_is_said(diff, message):
    with pytest.raises(PatchError, match=message):
        change(diff)


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "d"]), min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(LINES, LINES)
def test_a_true_diff_gives_the_new_file(old, new):
    rows = list(difflib.unified_diff(old, new, "a/kernel.py", "b/kernel.py", lineterm=""))
    if rows:
        assert change("\n".join(rows), "\n".join(old))["kernel.py"] == "\n".join(new)


def test_a_removed_line_may_begin_with_dashes():
    text = FILE.replace("line 3", "-- line 3")
    diff = "@@ -3,3 +3,3 @@\n line 2\n--- line 3\n+line 3\n line 4\n"
    assert change(diff, text)["kernel.py"] == FILE
