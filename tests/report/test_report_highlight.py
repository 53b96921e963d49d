"""Marking words never changes the text, never lets markup through, and takes linear time."""

import html
import re
import time

import pytest

from hotloop.report.highlight import highlight, highlight_within

PYTHON = (
    'import torch  # "x"\n@jit\ndef f(x):\n    """a # b"""\n    return x * 1.5e3 + \'it\\\'s\'\n'
)
CUDA = '#include "a.h"\n/* b */ __global__ void f(float* x) { x[0] = 1.0f; } // c\n'
HOSTILE = '<script>\'"""</span>&lt;\x0c`${x}\\'


def text_of(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize("path", ["kernel.py", "kernel.cu"])
@pytest.mark.parametrize("text", [PYTHON, CUDA, HOSTILE, "", "'''", "'", '"\\', "/*", "#"])
def test_the_text_stays_what_it_is(text, path):
    marked = highlight(text, path)
    assert text_of(marked) == text
    assert set(re.findall(r"<[^>]*>", marked)) <= {
        "</span>", *(f'<span class="{c}">' for c in "csnk")
    }  # fmt: skip


def test_words_are_marked_by_language():
    python = highlight(PYTHON, "a.py")
    for css, word in (
        ("k", "import"), ("k", "def"), ("n", "1.5e3"), ("c", '# "x"'), ("s", '"""a # b"""')
    ):  # fmt: skip
        marked = f'<span class="{css}">{html.escape(word)}</span>'.replace("&quot;", "&#34;")
        assert marked in python
    cuda = highlight(CUDA, "a.cu")
    assert '<span class="k">__global__</span>' in cuda
    assert '<span class="c">/* b */</span>' in cuda
    assert '<span class="k">import</span>' not in highlight("import x", "a.cu")


@pytest.mark.parametrize("piece", ["'", '"', '"""', "\\", "/*", "'\\", "r'", "a", "1", "#"])
@pytest.mark.parametrize("path", ["a.py", "a.cu"])
def test_no_text_takes_long(piece, path):
    start = time.process_time()
    highlight(piece * (60_000 // len(piece)), path)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("text", ["<" * 5000, "x = 1\n" * 2000, "\u00e9" * 5000])
def test_what_does_not_fit_is_cut_and_counted(text):
    marked, cut = highlight_within(text, "a.py", 3000)
    kept = text_of(marked)
    assert 1000 < len(marked.encode()) <= 3000
    assert text.startswith(kept)
    assert cut == len(text) - len(kept)


def test_what_fits_is_not_cut():
    assert highlight_within(PYTHON, "a.py", 3000) == (highlight(PYTHON, "a.py"), 0)
