"""docs/verifier.md: its links, files, tests and make lines exist, its catalogue is complete."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from benchmarks.attack_programs import programs
from benchmarks.verifier_quality import PAGE, main
from benchmarks.verifier_quality_page import BEGIN, END

ROOT = PAGE.parents[1]
TEXT = PAGE.read_text(encoding="utf-8")
WRITTEN = re.sub(f"{BEGIN}.*?{END}", "", TEXT, flags=re.DOTALL)
ENTRIES = 50
ROW = re.compile(r"^\| ([0-9, ]+) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def catalogue() -> list[tuple[list[int], str, str, list[str]]]:
    """Return numbers, what, where and tests of each row."""
    return [
        ([int(n) for n in numbers.split(",")], what, where, re.findall(r"`([^`]+)`", tests))
        for numbers, what, where, tests in ROW.findall(WRITTEN)
    ]


def test_the_numbers_are_what_the_results_files_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_every_entry_of_the_catalogue_stands_once() -> None:
    numbers = [number for row in catalogue() for number in row[0]]
    assert numbers == list(range(1, ENTRIES + 1))
    assert all(what and where for _, what, where, _ in catalogue())


def test_every_test_of_the_catalogue_exists(tmp_path: Path) -> None:
    of_own = {p.name: p.numbers for p in programs(tmp_path) if p.corpus == "own"}
    table = tomllib.loads((ROOT / "tests" / "attacks" / "catalogue.toml").read_text("utf-8"))
    for numbers, _, _, tests in catalogue():
        elsewhere = [table[str(n)] for n in numbers if str(n) in table]
        assert tests or (elsewhere and "tests" not in elsewhere[0]), numbers
        for name in tests:
            path, _, function = name.partition("::")
            if function:
                text = (ROOT / path).read_text(encoding="utf-8")
                assert re.search(rf"^def {function}\b", text, re.MULTILINE), name
            else:
                assert set(of_own[name]) & set(numbers), f"{name} stands for {of_own[name]}"


def test_links_and_files_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", WRITTEN)
    assert links
    for link in links:
        assert (PAGE.parent / link).exists(), link
    for name in re.findall(r"`(worker/\w+\.py)`", WRITTEN):
        assert (ROOT / "src" / "hotloop" / name).exists(), name
    for name in re.findall(r"`(tests/[\w/.]+)", WRITTEN):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(\w+)`\s+in `tests/attacks/blind`", WRITTEN):
        assert (ROOT / "tests" / "attacks" / "blind" / "programs" / f"{name}.py").exists()


def test_make_lines_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)", TEXT))
    assert {"bench-attacks", "verifier-quality"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_a_sceptic_gets_through_it() -> None:
    assert len(WRITTEN.splitlines()) <= 250
