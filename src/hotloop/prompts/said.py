"""What a model says of its own kernel: the sentence that every prompt asks for beside the code.

It is how a run remembers what an attempt tried. A model's own words: whoever shows them to another
prompt cuts and cleans them (`untrusted.py`), and nothing is decided by them.
"""

from __future__ import annotations

from hotloop.prompts.untrusted import one_line

MARK = "said: "
"""What a note of an attempt begins with when it holds such a sentence."""
MAX_CHARS = 200
_SENTENCE_ENDS = (". ", "! ", "? ", ".\n")


def said_note(reply: str) -> str | None:
    """Return the note that keeps what a reply says; None when it is code alone."""
    answer = reply.rsplit("</think>", 1)[-1]
    prose = [text for text in answer.split("```")[::2] if text.strip()]
    for text in prose:
        for paragraph in text.split("\n\n"):
            bare = paragraph.strip().strip("*_# ")
            if bare and not paragraph.lstrip().startswith(("#", "---")):
                return MARK + one_line(_first_sentence(bare), MAX_CHARS)
    return None


def said_in(notes: tuple[str, ...]) -> str | None:
    """Return the sentence that an attempt's notes hold."""
    return next((note.removeprefix(MARK) for note in notes if note.startswith(MARK)), None)


def _first_sentence(text: str) -> str:
    ends = [at for mark in _SENTENCE_ENDS if (at := text.find(mark, 20)) >= 0]
    return text[: min(ends) + 1] if ends else text
