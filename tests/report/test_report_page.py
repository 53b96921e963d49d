"""The HTML report of a suite: safe with foreign text, honest about what is missing, whole."""

import base64
import hashlib
import re
import time

import pytest
from page_parser import Parsed
from report_suites import Made, measured, write_suite

from hotloop.cli.report import read_page
from hotloop.core.audit import Audit
from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.verdict import Status
from hotloop.report.html import render
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import Trouble

SOLVED = Made(outcomes=(Status.COMPILE_ERROR, 1.0, 0.5), parents={2: (1,), 3: (2,)},
              finals={3: 0.5})  # fmt: skip
FAILED = Made(outcomes=(Status.INCORRECT_NUMERICAL,), title="2_Linear")
WAITING = Made(reason="waiting")
SCRIPT = "</script></code></pre><script>alert(1)</script><img src=x onerror=alert(2)>"
ALLOWED_TAGS = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4",
    "p", "pre", "code", "nav", "main", "section", "dl", "div", "dt", "dd", "table", "thead",
    "tbody", "tr", "th", "td", "details", "summary", "span", "figure", "figcaption", "ul", "li",
    "svg", "path", "rect", "circle", "line", "g", "text", "label", "input", "select", "option",
    "button", "footer", "script",
}  # fmt: skip


def report_of(folder, *problems, **options):
    html = render(read_page(write_suite(folder / "s", problems, **options)))
    return html, Parsed(html)


def test_every_element_is_known_and_closed(tmp_path):
    unclaimed = Made(outcomes=(1.0,), finals={1: measured(1.0, is_final=True, speedup_ci={})})
    _, page = report_of(tmp_path, SOLVED, FAILED, WAITING, unclaimed, Made(is_run=False))
    assert page.problems == []
    assert {e.tag for e in page.elements} <= ALLOWED_TAGS
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))


def test_a_final_time_without_an_interval_stands_beside_no_ratio(tmp_path):
    unclaimed = Made(outcomes=(1.0,), finals={1: measured(1.0, is_final=True, speedup_ci={})})
    html, _ = report_of(tmp_path, unclaimed)
    assert "1.00 ms, ratio not claimed" in html
    claimed, _ = report_of(tmp_path / "b", Made(outcomes=(1.0,), finals={1: 1.0}))
    assert "1.00 ms, 2.00x over compile" in claimed


def test_foreign_text_is_shown_and_never_run(tmp_path):
    hostile = Made(
        title=f"19_{SCRIPT}", idea=f"idea {SCRIPT}", error=f"error {SCRIPT}",
        kernel_name=f"kernel{SCRIPT}", source=f"# {SCRIPT}\nx = '{SCRIPT}' # {{n}}\n",
        path='a"><b onclick=x>.py', outcomes=(Status.COMPILE_ERROR, 1.0), finals={2: 1.0},
        audit=Audit(key="k", findings=(f"finding {SCRIPT}",)), reason="calls",
    )  # fmt: skip
    html, page = report_of(tmp_path, hostile, model=f"dir:{SCRIPT}")
    assert page.problems == []
    assert {e.tag for e in page.elements} <= ALLOWED_TAGS
    assert len(page.all("script")) == 1
    assert "alert" not in page.raw("script")
    names = {name for e in page.elements for name in e.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "style")]
    for said in ("19_", "idea ", "error ", "kernel", "# ", "finding ", "dir:"):
        assert f"{said}{SCRIPT}" in page.text, "it is shown as it is"
    assert '"><b onclick=x>.py' in page.text


def test_control_characters_are_made_visible(tmp_path):
    source = "x = 1  # \u202e\x00\x1b[2J\ud800 {n}\n"
    html, page = report_of(tmp_path, Made(outcomes=(1.0,), finals={1: 1.0}, source=source))
    assert not set(html) & set("\u202e\x00\x1b\ud800")
    assert "\ufffd\ufffd\ufffd[2J" in page.text
    html.encode("utf-8")


def test_only_the_pages_own_style_and_script_may_run(tmp_path):
    _, page = report_of(tmp_path, SOLVED)
    (policy,) = [
        e.attributes["content"] for e in page.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    ]  # fmt: skip
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        found = base64.b64encode(hashlib.sha256(page.raw(tag).encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{found}'"
    assert "unsafe" not in policy


def test_nothing_leads_out_of_the_page(tmp_path):
    html, page = report_of(tmp_path, SOLVED, FAILED)
    assert not re.search(r"https?:|//\w|url\(|@import", html)
    targets = {e.attributes["href"] for e in page.all("a")}
    ids = {e.attributes.get("id") for e in page.elements}
    assert targets
    assert {t.removeprefix("#") for t in targets} <= ids


def test_a_verified_kernel_has_its_numbers_verdict_source_and_lineage(tmp_path):
    _, page = report_of(tmp_path, SOLVED, FAILED)
    for words in (
        "0.5 ms, 4.00x over compile", "verified win replay", "3.96 to 4.04 win",
        "Checks that ran conduct, repeats", "Skipped sanitizer (no tool here)",
        "Isolation T1", "Precision policy as_shipped", "# attempt 3", "GPU Fake GPU",
        "Timer cupti", "compile 2.00 ms, eager 4.00 ms", "1 (50.0 %)",
    ):  # fmt: skip
        assert words in page.text, words
    lineage = page.text.split("Lineage")[1]
    assert re.search(r"1 draft COMPILE_ERROR.*└ 2 optimise 1 PASSED.*└ 3 \(best\)", lineage)


def test_without_a_verified_kernel_nothing_looks_like_a_number(tmp_path):
    html, page = report_of(tmp_path, WAITING, WAITING)
    assert "2 of 2 problems not finished" in page.text
    assert "not measured" in page.text
    assert not re.search(r"\d\.\d+x|0\.000|\b0 \(", page.text.replace("1.0x", "").replace(
        "over 1.05x", ""))  # fmt: skip


def test_a_judged_failure_counts(tmp_path):
    _, page = report_of(tmp_path, FAILED)
    assert "0 (0.0 %)" in page.text
    assert "not finished" not in page.text


def test_what_cannot_be_decided_is_in_no_headline(tmp_path):
    """A constant output is computed in no time, and a reference that nothing tells never loads."""
    constant = Made(outcomes=(1e-3,), finals={1: 1e-3}, audit=Audit(key="k", reasons=("zeros",)))
    why = Trouble(kind="ProblemError", message=f"{NOTHING_TELLS}: x", skipped=True)
    untold = Made(is_run=False, trouble=why)
    _, page = report_of(tmp_path, SOLVED, constant, untold)
    assert "decidable problems of 3 1 " in page.text
    assert "1 (100.0 %)" in page.text
    assert "Undecidable: in no target (2)" in page.text
    headline = page.text.split("Correct problems")[0]
    assert "4.00x" in headline
    assert "2000" not in headline
    assert "decidable problems of" not in report_of(tmp_path / "all", SOLVED, FAILED)[1].text


def test_a_suite_on_a_cpu_shows_no_speed(tmp_path):
    on_cpu = Made(outcomes=(Status.COMPILE_ERROR, 1.5), device="cpu")
    html, page = report_of(tmp_path, on_cpu)
    assert "Judged on a CPU" in page.text
    assert "correct, not timed" in page.text
    body = page.text.replace("so there is no speed in this report", "")
    body = body.split("What the words mean")[0]
    assert not re.search(r"speed|\d x\b|\dx\b|\d ms\b|fast_1", body, re.IGNORECASE)
    assert "1.5" in page.text, "the static cost, which has no unit"
    assert "Speed-up, all problems" in report_of(tmp_path / "gpu", SOLVED)[1].text


def test_a_damaged_journal_is_a_row_that_says_so(tmp_path):
    folder = write_suite(tmp_path / "s", [SOLVED, SOLVED])
    journal = folder / "runs" / "1-2" / "journal.sqlite"
    data = bytearray(journal.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    journal.write_bytes(bytes(data))
    for side in journal.parent.glob("journal.sqlite-*"):
        side.unlink()
    page = Parsed(render(read_page(folder)))
    assert "unreadable" in page.text
    assert "1 (50.0 %)" in page.text, "the other one is as it was"
    assert page.problems == []


def test_records_of_another_shape_are_damage_too(tmp_path):
    folder = write_suite(tmp_path / "s", [SOLVED, SOLVED])
    with SqliteStore(folder / "runs" / "1-2") as store:
        store.note("stopped", {"reason": "of a kind that nobody knows", "message": None})
    found = {p.name: p for p in read_page(folder).problems}
    assert found["1/1"].status == "PASSED"
    assert (found["1/2"].status, found["1/2"].state) == ("UNREADABLE", "failed")
    assert "cannot be read" in found["1/2"].why


def test_a_kernel_whose_file_is_gone_is_named(tmp_path):
    folder = write_suite(tmp_path / "s", [Made(outcomes=(1.0,))])
    for blob in (folder / "runs" / "1-1").rglob("*"):
        if blob.is_file() and not blob.name.startswith(("journal", "lock")):
            blob.unlink()
    page = Parsed(render(read_page(folder)))
    assert "Its source cannot be shown" in page.text
    assert "fast tier only" in page.text


def test_an_empty_suite_and_one_that_never_ran_say_so(tmp_path):
    _, page = report_of(tmp_path)
    assert "This suite has no problems" in page.text
    trouble = Trouble(kind="ProblemError", message="it does not fit", skipped=True)
    _, page = report_of(tmp_path / "b", Made(is_run=False, trouble=trouble))
    assert "ProblemError: it does not fit" in page.text
    assert "no run" in page.text


def test_a_long_source_is_cut_with_a_note(tmp_path):
    long = Made(outcomes=(1.0,), finals={1: 1.0}, source="x = '<&>' # {n}\n" * 2_000)
    html, page = report_of(tmp_path, long)
    assert re.search(r"Cut here: [\d,]+ more characters. All of it: hotloop show ", page.text)
    assert len(html) < 120_000
    assert "Cut here" not in report_of(tmp_path / "b", SOLVED)[1].text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_hundred_problems_are_read_in_20_s_and_stay_small(tmp_path):
    source = "def f(x):\n    return '<&>' + x  # {n}\n" * 300
    one = Made(outcomes=(Status.COMPILE_ERROR, 3.0, 2.0, Status.TIMEOUT, 1.0),
               parents={2: (1,), 3: (2,), 4: (3,), 5: (3,)}, finals={5: 1.0}, source=source,
               idea="fuse it " * 40, error="no such thing " * 40)  # fmt: skip
    folder = write_suite(tmp_path / "s", [one] * 200)
    began_s = time.process_time()  # other programs do not count
    html = render(read_page(folder))
    assert time.process_time() - began_s < 20.0
    page = Parsed(html)
    assert len(html.encode()) < 5_000_000
    assert len([e for e in page.all("details") if e.attributes.get("class") == "problem"]) == 200
