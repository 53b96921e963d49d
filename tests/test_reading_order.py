"""The reading order for contributors: what it names is there, and is read in the time it says."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reading-order.md"
WORDS_A_MINUTE, LINES_A_MINUTE = 250, 60
MOST_MINUTES = 20.0
OFF_FRAC = 0.1
"""Of what the page states: it need not be edited with every line of the code."""
ROW = re.compile(r"^\| (\d+\.\d) \| (.*?) \| .* \|$", re.MULTILINE)
ITEM = re.compile(r"`([^`]+)`|\*([^*]+)\*|\b(docstring)\b")


def lines_of(text):
    return sum(bool(line.strip()) for line in text.splitlines())


def named(tree, dotted):
    """Return the class or function of that dotted name."""
    node = tree
    for name in dotted.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef)
        found = [n for n in node.body if isinstance(n, kinds) and n.name == name]
        assert len(found) == 1, f"there is no {dotted}"
        node = found[0]
    return node


def measure(path, parts):
    """Return words and lines of a file, or of those parts of it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE))
        return sum(len(sections[part].split()) for part in parts), 0
    if not parts:
        return 0, lines_of(text)
    tree, words, lines = ast.parse(text), 0, 0
    for part in parts:
        if part == "docstring":
            words += len(ast.get_docstring(tree).split())
        else:
            lines += lines_of(ast.get_source_segment(text, named(tree, part)))
    return words, lines


def rows():
    """Yield the stated minutes, the words and the lines of each row of the table."""
    for minutes, cell in ROW.findall(PAGE.read_text(encoding="utf-8")):
        words = lines = 0
        for entry in cell.split("; "):
            path, *parts = ["".join(groups) for groups in ITEM.findall(entry)]
            found = measure(path, parts)
            words, lines = words + found[0], lines + found[1]
        yield float(minutes), words, lines


def minutes_of(words, lines):
    return words / WORDS_A_MINUTE + lines / LINES_A_MINUTE


def own_words():
    return len(PAGE.read_text(encoding="utf-8").split())


def test_everything_together_is_read_in_twenty_minutes():
    words = own_words() + sum(row[1] for row in rows())
    lines = sum(row[2] for row in rows())
    assert lines > 300, "the rows were found"
    assert minutes_of(words, lines) <= MOST_MINUTES


def test_each_row_says_how_long_it_takes():
    found = [(stated, round(minutes_of(words, lines), 1)) for stated, words, lines in rows()]
    assert len(found) >= 10
    wrong = [(a, b) for a, b in found if abs(a - b) > max(0.3, OFF_FRAC * b)]
    assert wrong == [], "stated and measured"


def test_the_page_states_the_count_and_the_pace():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{WORDS_A_MINUTE} words of prose and {LINES_A_MINUTE} lines of code a minute" in text
    stated = re.search(
        r"comes, this page included, to ([\d,]+) words and ([\d,]+) lines: (\d+) minutes", text
    )
    words, lines, minutes = (int(number.replace(",", "")) for number in stated.groups())
    measured_words = own_words() + sum(row[1] for row in rows())
    assert words == pytest.approx(measured_words, rel=OFF_FRAC)
    assert lines == pytest.approx(sum(row[2] for row in rows()), rel=OFF_FRAC)
    assert minutes == pytest.approx(minutes_of(words, lines), abs=1.0)
    assert minutes <= MOST_MINUTES


@pytest.mark.parametrize("name", ["nothing_of_that_name", "Judge.nothing", "Judge.verify.deeper"])
def test_a_name_that_is_gone_is_found_out(name):
    tree = ast.parse((ROOT / "src/hotloop/worker/judge.py").read_text(encoding="utf-8"))
    with pytest.raises(AssertionError, match="there is no"):
        named(tree, name)
