"""Replies of many shapes: each file of `replies/` starts with what to expect of it."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.prompts.extract import MAX_REPLY_CHARS, Extracted, NoCode, extract

REPLIES = sorted((Path(__file__).parent / "replies").glob("*.md"))
WHOLE = (Path(__file__).parent / "replies" / "no_fence_code_alone.md").read_text().split("\n", 1)[1]
PARENT = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=WHOLE),))
NEWLINES = {"crlf": "\r\n", "cr": "\r", None: "\n"}


def read_case(path):
    header, reply = path.read_text(encoding="utf-8").split("\n", 1)
    expected = json.loads(re.fullmatch(r"<!-- (.*) -->", header)[1])
    return reply.replace("\n", NEWLINES[expected.get("newline")]), expected


def test_there_are_many_shapes():
    assert len(REPLIES) >= 40


@pytest.mark.parametrize("path", REPLIES, ids=lambda p: p.stem)
def test_a_reply_gives_what_it_should(path):
    reply, expected = read_case(path)
    parent = PARENT if expected.get("parent") else None
    result = extract(reply, language=expected.get("language", "triton"), parent=parent)
    if expected["outcome"] != "candidate":
        assert isinstance(result, NoCode), result
        assert result.reason == expected["outcome"]
        assert len(result.message) > 20
        return
    assert isinstance(result, Extracted), result
    candidate = result.candidate
    assert candidate.language == expected.get("language", "triton")
    assert candidate.entry == expected.get("entry", "kernel.py")
    assert expected["contains"] in candidate.text()
    assert candidate.text().startswith(expected.get("starts", ""))
    if expected.get("same"):
        assert candidate.text() == WHOLE
    if "files" in expected:
        assert [s.path for s in candidate.sources] == expected["files"]
    if "space" in expected:
        space = result.space and {d.name: list(d.choices) for d in result.space.dimensions}
        assert space == expected["space"]
    assert expected.get("note", "") in " ".join(result.notes)


def test_the_same_kernel_has_one_id_however_it_is_wrapped():
    wrapped = [
        extract(*read_case(p)[:1])
        for p in REPLIES
        if read_case(p)[1].get("same") and not read_case(p)[1].get("parent")
    ]
    assert len(wrapped) > 15
    assert len({r.candidate.id for r in wrapped}) == 1


def test_a_reply_of_ten_megabytes_is_refused_at_once():
    result = extract("```python\n" + "x = 1\n" * (MAX_REPLY_CHARS // 5))
    assert isinstance(result, NoCode)
    assert result.reason == "too_large"


@pytest.mark.parametrize(
    "bomb",
    ["(" * 5000, "-" * 50_000 + "1", "x" + ".a" * 50_000, "1" + "+1" * 30_000, "[" * 150 + "1",
     "'" * 9999, '"""', "\\" * 999, "\x00", "\ud800", "f'" + "{" * 400],
    ids=range(11),
)  # fmt: skip
def test_code_that_hurts_parsers_is_data(bomb):
    for reply in (f"```python\nclass ModelNew:\n  {bomb}\n```", bomb, f"TUNABLES = {bomb}"):
        assert isinstance(extract(reply), (Extracted, NoCode))


def test_nothing_of_a_reply_is_run(tmp_path):
    trap = tmp_path / "trap"
    code = f"open({str(trap)!r}, 'w')\nTUNABLES = {{'A': [open({str(trap)!r}, 'w')]}}\n"
    result = extract(f"```python\n{code}{WHOLE}```")
    assert isinstance(result, Extracted)
    assert result.space is None
    assert not trap.exists()


PIECES = st.sampled_from(
    ["```", "```python", "~~~", "````", "\n", "\n\n", "    ", "\t", "class ModelNew", WHOLE, '"""',
     "@@ -1,3 +1,3 @@\n", "+x\n", "-x\n", "--- a\n+++ b\n", "import torch\n", "<think>", "</think>",
     "/* {", "} */", "__global__", "TUNABLES = {'A': [1]}", "kernel.py\n", "\r\n", "load_inline",
     "def forward(self):\n", "\x00", "\u2028", "É", '{"kernels": []}']
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=200),
    st.sampled_from(["triton", "cuda", "gluon"]),
    st.booleans(),
)
def test_no_reply_raises(reply, language, with_parent):
    result = extract(reply, language=language, parent=PARENT if with_parent else None)
    if isinstance(result, Extracted):
        assert result.candidate.text().strip()
        assert result.candidate.id
    else:
        assert result.message


PROSE = st.text(
    st.characters(exclude_characters="`~<\r", exclude_categories=["Cs", "Cc"]), max_size=80
)


@settings(max_examples=60, deadline=None)
@given(
    PROSE,
    PROSE,
)
def test_prose_around_a_fence_changes_nothing(before, after):
    result = extract(f"{before}\n```python\n{WHOLE}```\n{after}")
    assert isinstance(result, Extracted)
    assert result.candidate.text() == WHOLE


def test_a_megabyte_of_fences_is_read_in_linear_time():
    start = time.monotonic()
    extract("```\n" * (MAX_REPLY_CHARS // 4))
    assert time.monotonic() - start < 10  # quadratic work takes half a minute
