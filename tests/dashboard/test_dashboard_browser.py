"""The dashboard in a real browser: live, drawn, reachable by keyboard, readable, alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import FAINT_TEXTS, LEAST_CONTRAST, PHONE, Tab, chromium
from dashboard_runs import Told, open_run, write_run
from dashboard_suites import write_suite
from served import ENVIRONMENT, serving

from hotloop.core.verdict import Status
from hotloop.dashboard.listing import scan

CASES = Path(__file__).parents[1] / "report" / "cases"
MIXED = [Status.COMPILE_ERROR, 2.5, Status.INCORRECT_NUMERICAL, 1.5, 0.8, None]
PARENTS = {2: (1,), 3: (2,), 4: (3,), 5: (4,), 6: (5,)}
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def gpu_run(tmp_path):
    """Return the folder with one run on a made-up GPU, and the run's id."""
    write_run(tmp_path / "gpu", MIXED, parents=PARENTS, finals={5: 0.8})
    return tmp_path, scan(tmp_path).runs[0].id


@pytest.fixture
def suite_id(gpu_run):
    """Return the id of a suite beside the run."""
    return scan(write_suite(gpu_run[0] / "suite").parent).suites[0].id


def is_drawn(page, picture):
    box = page.locator(picture).first.bounding_box()
    return box is not None and box["width"] > 20 and box["height"] > 20


def test_a_new_attempt_appears_without_a_reload(tmp_path, browser):
    with open_run(tmp_path / "r") as writer, serving(tmp_path) as (_, url):
        writer.add(1, Status.TIMEOUT)
        with Tab(browser, url) as tab:
            page = tab.open(f"/run/{scan(tmp_path).runs[0].id}")
            assert page.locator("#attempts tbody tr").count() == 1
            writer.add(2, 1.0, (1,))
            page.locator("#a-2").wait_for()
            assert "2.00x over compile" in page.locator("#a-2").inner_text()
            page.get_by_role("link", name="2 (best)").click()
            page.wait_for_url("**/attempt/2")
            assert tab.errors == []
            assert tab.hosts == {url.split("/")[2]}


@pytest.mark.slow
def test_a_real_run_is_followed_from_the_list_to_a_difference(tmp_path, browser):
    with serving(tmp_path) as (_, url), Tab(browser, url) as tab:
        page = tab.open("/")
        page.get_by_text("no run and no suite below").wait_for()
        run = subprocess.Popen(
            [sys.executable, "-m", "hotloop", "optimize", str(CASES / "relative.py"), "--device",
             "cpu", "--set", "S=64,D=32", "--budget", "120s", "--max-candidates", "3", "--out",
             str(tmp_path / "live")],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            page.locator("#runs tbody a").wait_for(timeout=60_000)
            tab.check()
            page.locator("#runs tbody a").click()
            page.evaluate("window.isTheSame = true")
            page.locator("#a-1").wait_for(timeout=90_000)
            assert "running" in page.locator("#head").inner_text()
            page.locator("#a-2").wait_for(timeout=90_000)
            page.locator("#a-3").wait_for(timeout=90_000)
            tab.check()
            _, err = run.communicate(timeout=100)
        finally:
            run.kill()
        assert run.returncode == 0, err
        page.get_by_text("ended: candidates").wait_for()
        assert "CPU: nothing is timed" in page.locator("#head").inner_text()
        tab.check()
        page.locator("#a-2 a").first.click()
        page.get_by_text("Against attempt 1").wait_for()
        assert page.locator(".diff tr.changed").count() > 0
        assert page.locator(".code .k").count() > 5
        assert not re.search(r"\d x\b|\dx over|\d ms\b", page.locator("main").inner_text())
        assert tab.errors == []
        assert tab.hosts == {url.split("/")[2]}


@pytest.mark.slow
def test_pictures_are_drawn_and_the_table_is_filtered(gpu_run, browser):
    root, run_id = gpu_run
    with serving(root) as (_, url), Tab(browser, url) as tab:
        page = tab.open(f"/run/{run_id}")
        for picture in ("path.line.s1", "svg.natural", ".final circle", ".meter"):
            assert page.locator(picture).count() > 0, picture
        assert is_drawn(page, "svg.natural")
        assert is_drawn(page, "#plots path.line.s1")
        page.get_by_label("Status").select_option("PASSED")
        page.wait_for_url("**status=PASSED*")
        assert page.locator("#attempts tbody tr").count() == 3
        page.get_by_role("link", name="5 (best)").click()
        assert is_drawn(page, "path.roof")
        assert is_drawn(page, "svg:has(.box)")
        tab.open(f"/run/{run_id}/attempt/3")
        assert is_drawn(page, "path.region")
        assert page.locator(".spot").count() == 3
        assert page.locator(".diff mark").count() == 4
        page.get_by_text("Reasoning", exact=True).click()
        assert page.get_by_text("The loads are not coalesced.").is_visible()
        tab.check()


@pytest.mark.slow
def test_a_suite_is_shown_at_once_and_whole_without_a_reload(gpu_run, suite_id, browser):
    with serving(gpu_run[0]) as (_, url), Tab(browser, url) as tab:
        page = tab.open(f"/suite/{suite_id}")
        assert page.locator("#table tbody tr").count() == 3
        page.get_by_text("fast_p, level 1").wait_for()
        assert is_drawn(page, "figure:has-text('fast_p') .picture svg")
        tab.check()
        page.locator("select[name=group]").select_option("matmul")
        page.wait_for_url("**group=matmul*")
        assert page.locator("#table tbody tr").count() == 1
        assert tab.errors == []


@pytest.mark.slow
def test_two_runs_are_compared_by_a_form(gpu_run, browser):
    root, _ = gpu_run
    write_run(root / "other", [Status.TIMEOUT, 1.1])
    with serving(root) as (_, url), Tab(browser, url) as tab:
        page = tab.open("/")
        page.locator("select[name=a]").select_option(label="gpu")
        page.locator("select[name=b]").select_option(label="other")
        page.wait_for_url("**/compare?**")
        page.get_by_role("heading", name="Best kernels").wait_for()
        assert page.locator(".picture path.line").count() == 2
        assert tab.errors == []


@pytest.mark.slow
def test_what_the_reader_opened_and_typed_stays_when_news_come(tmp_path, browser):
    with open_run(tmp_path / "r") as writer, serving(tmp_path) as (_, url):
        writer.add(1, 1.0)
        with Tab(browser, url) as tab:
            page = tab.open(f"/run/{scan(tmp_path).runs[0].id}")
            page.get_by_text("Source of the problem").click()
            page.get_by_label("Words").fill("half a wo")
            page.locator("#a-1 a").focus()
            writer.add(2, 2.0)
            page.locator("#a-2").wait_for()
            assert page.locator("#problem-source").get_attribute("open") is not None
            assert page.get_by_label("Words").input_value() == "half a wo"
            assert page.evaluate("document.activeElement.textContent") == "1 (best)"
            assert "new" in page.locator("#a-2").get_attribute("class")
            tab.check()


@pytest.mark.slow
def test_a_deleted_run_and_a_stopped_server_are_told(gpu_run, browser):
    root, run_id = gpu_run
    with serving(root) as (process, url), Tab(browser, url) as tab:
        page = tab.open(f"/run/{run_id}")
        page.get_by_text("live", exact=True).wait_for()
        shutil.rmtree(root / "gpu")
        page.get_by_text(re.compile("any more|was deleted")).wait_for()
        assert page.evaluate("window.isTheSame === true")
        process.terminate()
        page.get_by_text("connection lost").wait_for()


@pytest.mark.slow
def test_everything_works_without_scripts(gpu_run, browser):
    root, run_id = gpu_run
    with serving(root) as (_, url), Tab(browser, url, java_script_enabled=False) as tab:
        page = tab.page
        page.goto(f"{url}run/{run_id}")
        page.get_by_label("Status").select_option("PASSED")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**status=PASSED*")
        assert page.locator("#attempts tbody tr").count() == 3
        page.locator("#a-4 a").click()
        page.get_by_text("Against attempt 3").wait_for()
        assert tab.errors == []


WAYS_IN = tuple(
    f"(evil) => {{ try {{ {way} }} catch (error) {{ return error.name; }} }}"
    for way in (
        "document.body.insertAdjacentHTML('beforeend', evil)",
        "document.body.setAttribute('onclick', evil)",
        "document.createElement('script').textContent = 'window.evil = 1'",
        "document.createElement('script').src = 'data:text/javascript,window.evil=1'",
    )
)
"""What a mistake in a script of ours could do with foreign text."""


@pytest.mark.slow
def test_foreign_scripts_do_not_run(tmp_path, browser):
    evil = "</code></pre><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"
    told = Told(error=evil, reply=evil, reasoning=evil, prompt=evil, idea=evil, kernel=evil,
                source=f"# {evil}\nx = {{n}}\n")  # fmt: skip
    write_run(tmp_path / "r", [Status.COMPILE_ERROR, 1.0], parents={2: (1,)}, told=told, name=evil)
    (place,) = scan(tmp_path).runs
    with serving(tmp_path) as (_, url), Tab(browser, url) as tab:
        for path in ("/", f"/run/{place.id}", f"/run/{place.id}/attempt/2"):
            page = tab.open(path)
            assert page.evaluate("window.evil") is None
            assert page.locator("main img").count() == 0
            tab.check()
        # The policy holds even where a tag would get through.
        assert [page.evaluate(way, evil) for way in WAYS_IN] == ["TypeError"] * len(WAYS_IN)
        assert page.evaluate("window.evil") is None


PAGES = ("/", "/run/{id}", "/run/{id}/attempt/3", "/run/{id}/attempt/5", "/compare?a={id}&b={id}",
         "/compare", "/nope", "/suite/{suite}")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(gpu_run, suite_id, browser, scheme):
    root, run_id = gpu_run
    with serving(root) as (_, url), Tab(browser, url, color_scheme=scheme) as tab:
        backs = set()
        for path in PAGES:
            page = tab.open(path.format(id=run_id, suite=suite_id))
            page.get_by_text("being read").wait_for(state="detached")
            page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            assert page.evaluate(FAINT_TEXTS, LEAST_CONTRAST) == [], path
            backs.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.evaluate(FAINT_TEXTS, 21.5) != [], "the test can see texts"
    assert backs == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 20, 25)"}


@pytest.mark.slow
def test_a_phone_scrolls_tables_and_not_the_page(gpu_run, suite_id, browser):
    root, run_id = gpu_run
    with serving(root) as (_, url), Tab(browser, url, **PHONE) as tab:
        for path in PAGES:
            page = tab.open(path.format(id=run_id, suite=suite_id))
            page.get_by_text("being read").wait_for(state="detached")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
        page = tab.open(f"/run/{run_id}")
        assert is_drawn(page, "#plots path.line.s1")


@pytest.mark.slow
def test_a_keyboard_reaches_everything(gpu_run, browser):
    root, run_id = gpu_run
    with serving(root) as (_, url), Tab(browser, url) as tab:
        page = tab.open(f"/run/{run_id}")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.locator(".skip").bounding_box()["x"] >= 0, "it is seen when it has the focus"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
            outline = page.evaluate("""() => {
              const style = getComputedStyle(document.activeElement);
              return document.activeElement === document.body || style.outlineStyle !== "none";
            }""")
            assert outline, "the focus can be seen"
        for wanted in ('<select name="status">', '<input type="search"', "<summary>",
                       f'<a href="/run/{run_id}/attempt/3">'):  # fmt: skip
            assert any(html.startswith(wanted) for html in reached), wanted
        page.locator("#a-3 a").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/attempt/3")
        assert tab.errors == []
