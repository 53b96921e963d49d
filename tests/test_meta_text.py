"""Sizes of files and functions, and words that do not belong here."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hotloop"
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
"""Exceptions with their size. They may shrink and disappear; nothing is added."""

# Put together from pieces, so that this file does not hold what it looks for.
FOREIGN = re.compile(
    "|".join(
        (
            r"/(?:wor" + r"k|far" + r"m)/",
            r"(?<!\w)[.]libr" + r"ary\b",
            r"\bC" + r"EO\b",
            r"index" + r"-url",
            r"registry" + r"=http",
            r"\.\./sha" + r"red",
            r"(?:pypi|pythonhosted)\." + r"org",
        )
    ),
    re.IGNORECASE,
)
MAY_NAME_INPUTS = {".ci/run"}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".jinja", ".json", ".svg", ".cu", ".yml", ""}
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "scripts", ".ci")


def texts():
    """Yield the path and text of every file of the project."""
    tops = [p for p in ROOT.iterdir() if p.is_file()]
    below = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file()]
    for path in sorted((*tops, *below)):
        if path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def file_sizes():
    return {
        str(p.relative_to(SOURCE)): len(p.read_text(encoding="utf-8").splitlines())
        for p in SOURCE.rglob("*.py")
    }


def function_sizes():
    return {
        f"{path.relative_to(SOURCE)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


@pytest.mark.parametrize(
    ("sizes", "limit", "allowed"),
    [
        (file_sizes, MAX_FILE_LINES, LONG_FILES),
        (function_sizes, MAX_FUNCTION_LINES, LONG_FUNCTIONS),
    ],
    ids=["files", "functions"],
)
def test_sizes_stay_small(sizes, limit, allowed):
    found = sizes()
    too_long = {k: n for k, n in found.items() if n > max(limit, allowed.get(k, 0))}
    assert too_long == {}
    stale = [k for k in allowed if found.get(k, 0) <= limit]
    assert stale == [], "take these off the list: they are small enough now"


def test_the_project_speaks_of_itself_alone():
    found = [
        f"{path}: {match.group()}"
        for path, text in texts()
        if path not in MAY_NAME_INPUTS
        for match in FOREIGN.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_foreign"),
    [
        ("/wor" + "k/main", True),
        ("see .libr" + "ary/x", True),
        ("a network/path", False),
        ("Sha" + "red memory", False),
        ("torch.libr" + "ary.Library", False),
    ],
)
def test_the_word_list_bites_and_spares_plain_words(text, is_foreign):
    assert bool(FOREIGN.search(text)) is is_foreign
