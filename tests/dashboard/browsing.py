"""A headless Chromium that notes what must not happen: errors, and requests to other hosts."""

import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--no-first-run",
)  # fmt: skip
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@contextmanager
def chromium():
    """Yield a browser; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'hotloop[dev]'"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One page of a browser and what went wrong in it."""

    def __init__(self, browser, url, **options):
        self.url = url
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.errors = []
        self.hosts = set()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda asked: self.hosts.add(urlsplit(asked.url).netloc))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.context.close()

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, path):
        """Go to a page and mark it, so that a reload would show."""
        self.page.goto(self.url.rstrip("/") + path)
        self.page.evaluate("window.isTheSame = true")
        return self.page

    def check(self):
        """Nothing went wrong, nothing was asked of another host, and the page was not reloaded."""
        assert self.errors == []
        assert self.hosts == {urlsplit(self.url).netloc}
        assert self.page.evaluate("window.isTheSame === true")


LEAST_CONTRAST = 4.5
"""WCAG 2.2, success criterion 1.4.3 (AA), for text of normal size."""

FAINT_TEXTS = """(least) => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a),
    g: top.g * top.a + below.g * (1 - top.a),
    b: top.b * top.a + below.b * (1 - top.a),
    a: 1,
  });
  const light = ({ r, g, b }) => {
    const part = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const backOf = (element) => {
    const chain = [];
    for (let e = element; e; e = e.parentElement) chain.unshift(e);
    return chain.reduce((below, e) => over(parse(getComputedStyle(e).backgroundColor), below),
                        { r: 255, g: 255, b: 255, a: 1 });
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    if (["SCRIPT", "STYLE", "NOSCRIPT", "TITLE"].includes(element.tagName.toUpperCase())) continue;
    if (element.closest("title, .skip")) continue;
    const style = getComputedStyle(element);
    const isSvg = element instanceof SVGElement;
    if (isSvg && element.classList.contains("on")) continue;
    const back = backOf(element.closest("svg") ? element.closest("svg").parentElement : element);
    const front = over(parse(isSvg ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least) found.push([node.textContent.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return found;
}"""
"""Return the visible texts with less contrast than asked for."""
