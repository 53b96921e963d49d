"""Links lead somewhere, commands in the docs exist, and the docs' Python runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from hotloop.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda page: page.as_posix()
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^(?:\$ )?hotloop ([a-z][a-z-]*)(.*)$", re.MULTILINE)
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*)")


def named(page):
    return page.relative_to(ROOT).as_posix()


def slugs(text):
    """Return the anchors that GitHub and Sphinx make of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken_links(page):
    for groups in LINK.findall(FENCE.sub("", page.read_text())):
        link = groups[0] or groups[1]
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in slugs(target.read_text())):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    assert list(broken_links(page)) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One head\n[a](page.md#one-head) [b](page.md#two) [c](gone.md) ![d](gone.png)\n"
        "[e](https://example.org)\n```\n[f](code.md)\n```\n"
    )
    assert list(broken_links(page)) == ["page.md#two", "gone.md", "gone.png"]


def unknown_options(text):
    """Yield what commands in a text's code name and the command line does not have."""
    commands = typer.main.get_command(app).commands
    code = "\n".join([*FENCE.findall(text), *INLINE.findall(FENCE.sub("", text))])
    for name, rest in COMMAND.findall(code.replace("\\\n", " ")):
        if name not in commands:
            yield name
            continue
        known = {option for p in commands[name].params for option in getattr(p, "opts", ())}
        yield from (o for o in OPTION.findall(rest.split("#")[0]) if o not in known | {"--help"})


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_the_docs_exist(page):
    assert list(unknown_options(page.read_text())) == []


def test_an_unknown_command_or_option_is_found():
    text = (
        "hotloop turns a reference into a kernel\n```\nhotloop show RUN --diff\nhotloop shaw RUN\n"
        "hotloop verify P K --warn # --not-this\n```\nor `hotloop optimize P --budgets 3m`\n"
    )
    assert list(unknown_options(text)) == ["shaw", "--warn", "--budgets"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_python_page_runs(tmp_path):
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S
    )
    assert len(blocks) == 3
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True ")
