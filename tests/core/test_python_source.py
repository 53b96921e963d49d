"""Python of others is parsed, or there is one kind of error."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy
from hotloop.core.python_source import PARSES, Unparsable, parse_python
from hotloop.verify.static_rules import check_candidate

TOO_DEEP = "x = " + "+0" * 100_000


def test_python_is_parsed_and_anything_else_is_a_syntax_error():
    assert isinstance(parse_python("x = 1").body[0], ast.Assign)
    with pytest.raises(SyntaxError) as caught:
        parse_python("x = (")
    assert not isinstance(caught.value, Unparsable)


def test_what_is_nested_too_deeply_spoils_nothing_that_comes_after():
    with ThreadPoolExecutor(4) as pool:
        texts = [TOO_DEEP, "y = [1, (2, 3)]"] * 20
        found = list(pool.map(lambda text: _outcome(text), texts))
    assert found == ["Unparsable", "Module"] * 20


def test_null_bytes_are_told_and_their_escapes_are_python():
    with pytest.raises(Unparsable, match="got null bytes; take them out"):
        parse_python("x = 1\0")
    assert parse_python(r"x = '\0'").body


def test_a_failure_of_the_interpreter_is_tried_again(monkeypatch):
    real, calls = ast.parse, []

    def spoilt(times):
        def parse(*arguments):
            calls.append(arguments)
            if len(calls) <= times:
                raise SystemError("AST constructor recursion depth mismatch (before=42, after=65)")
            return real(*arguments)

        return parse

    monkeypatch.setattr(ast, "parse", spoilt(PARSES - 1))
    assert parse_python("x = 1").body
    calls.clear()
    monkeypatch.setattr(ast, "parse", spoilt(PARSES))
    with pytest.raises(Unparsable, match="recursion depth mismatch"):
        parse_python("x = 1")


def test_a_candidate_that_the_rules_cannot_read_is_refused():
    refused = check_candidate(_candidate(TOO_DEEP), Policy())
    assert refused is not None
    assert refused.rule == "unreadable"
    assert check_candidate(_candidate("x = 1\0"), Policy()).rule == "unreadable"
    escaped = check_candidate(_candidate(r"x = '\0'"), Policy())
    assert escaped is None or escaped.rule != "unreadable"
    broken = check_candidate(_candidate("def f(:"), Policy())
    assert broken is None or broken.rule != "unreadable"  # the compiler says it better


def _outcome(text):
    try:
        return type(parse_python(text)).__name__
    except SyntaxError as exc:
        return type(exc).__name__


def _candidate(text):
    return Candidate(
        language="triton", entry="kernel.py", sources=(SourceFile(path="kernel.py", text=text),)
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError(), "got MemoryError; write it flatter"),
        (RecursionError("too deep"), "got too deep; write it flatter"),
    ],
)
def test_what_the_parser_cannot_bear_is_told(monkeypatch, fault, words):
    def parse(*args):
        raise fault

    monkeypatch.setattr("hotloop.core.python_source.ast.parse", parse)
    with pytest.raises(Unparsable, match=words):
        parse_python("x = 1")


def test_text_that_no_file_holds_is_told():
    with pytest.raises(Unparsable, match="save it as UTF-8"):
        parse_python("x = '\udce9'")
