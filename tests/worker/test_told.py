"""What an untrusted process says is cleaned before it is a message; plain words stay."""

import pytest

from hotloop.core.verdict import Stage, Status
from hotloop.worker import told
from hotloop.worker.evaluation import failure_of


def test_the_name_of_an_exception_is_one_bounded_line_without_escapes():
    error = {"type": "\x1b[2J\nPASSED (final)" + "A" * 3000, "message": "a"}
    failed = failure_of(error, Stage.CORRECTNESS, device="cpu")
    assert "\x1b" not in failed.evidence.message
    assert "\n" not in failed.evidence.message
    assert len(failed.evidence.message) <= told.MAX_NAME + len(": a")


def test_a_plain_error_is_told_as_it_is():
    error = {
        "kind": "oom_gpu",
        "type": "OutOfMemoryError",
        "message": "2 GiB:\n\tat line 3 – over",
        "traceback": "  File",
    }
    failed = failure_of(error, Stage.CORRECTNESS, device="cuda")
    assert failed.evidence.kind == "oom_gpu"
    assert failed.evidence.message == "OutOfMemoryError: 2 GiB:\n\tat line 3 – over"
    assert failed.evidence.details["traceback"] == "  File"


@pytest.mark.parametrize("kind", [{"a": [1]}, "PASSED", "wrong_values", 5, None, ["oom_gpu"]])
def test_a_kind_that_there_is_not_is_an_exception(kind):
    error = {"kind": kind, "type": 5, "message": ["a", {"b": 1}], "traceback": 7}
    failed = failure_of(error, Stage.CORRECTNESS, device="cpu")
    assert (failed.status, failed.evidence.kind) == (Status.RUNTIME_ERROR, "exception")


@pytest.mark.parametrize("kind", sorted(told.KINDS - {"needs_gpu"}))
def test_a_kind_that_there_is_stays(kind):
    assert failure_of({"kind": kind}, Stage.COMPILE, device="cuda").evidence.kind == kind


def test_words_keep_their_lines():
    assert told.words("a\n\tb \x1b[2J\x00\u202e\ud800") == "a\n\tb ?[2J???"
    assert told.name("a\nb", 2) == "a?"
