import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.llm.thinking import split_thinking

CODE = "```python\nTAG = '<think>'\nEND = '</think>'\n```"


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("x = 1", "", "x = 1"),
        ("<think>why</think>x = 1", "why", "x = 1"),
        ("\n <think>\nwhy\n</think>\n\nx = 1\n", "why", "x = 1\n"),
        ("<thinking>why</thinking>x", "why", "x"),
        ("<think>a</think>\n<think>b</think>x", "a\n\nb", "x"),
        ("<think>never closed ```python\nx = 1\n```", "never closed ```python\nx = 1\n```", ""),
        ("<think></think>x", "", "x"),
        ("the template opened it</think>\n\nx = 1", "the template opened it", "x = 1"),
        (CODE, "", CODE),
        (f"<think>why</think>{CODE}", "why", CODE),
        ("Use the <think> tag.", "", "Use the <think> tag."),
    ],
)
def test_reasoning_and_answer_come_apart(text, reasoning, answer):
    assert split_thinking(text) == (reasoning, answer)


def test_a_lone_closing_tag_is_text_when_the_reasoning_came_apart():
    assert split_thinking("a</think>b", reasoned_apart=True) == ("", "a</think>b")


@given(st.text(alphabet="ab\n", max_size=20), st.text(alphabet="xy`", max_size=20))
def test_nothing_of_an_answer_is_lost(thought, answer):
    found, rest = split_thinking(f"<think>{thought}</think>{answer}")
    assert (found, rest) == (thought.strip(), answer)
