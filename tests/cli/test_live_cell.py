"""The notebook's live cell: escaped, throttled, and drawn by a real kernel."""

import pytest

from hotloop.cli.progress import Progress
from hotloop.core.event import Event
from hotloop.notebook import html_of

IPYTHON = "needs IPython: pip install ipython"
NOTEBOOK = """
import torch, hotloop
from hotloop.notebook import LiveCell

def squash(x):
    return torch.nn.functional.softplus(x) * 0.5

result = hotloop.optimize(
    squash, [torch.randn(4, 100)], budget="60s", device="cpu", max_candidates=2,
    out={folder!r}, listen=LiveCell(),
)
print("passed:", result.passed)
"""


def test_foreign_text_is_escaped():
    progress = Progress()
    progress.take(Event(kind="warning", payload={"message": "<script>alert(1)</script>"}))
    html = html_of(progress)
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert html.startswith("<pre ")


def test_it_draws_what_matters_at_once_and_the_rest_a_few_times_a_second(monkeypatch):
    display = pytest.importorskip("IPython.display", reason=IPYTHON)
    from hotloop import notebook

    drawn = []

    class Output:
        def update(self, picture):
            drawn.append(picture.data)

    monkeypatch.setattr(display, "display", lambda picture, display_id: Output())
    now_s = [0.0]
    cell = notebook.LiveCell(clock=lambda: now_s[0])
    for spent_s in range(100):
        cell(Event(kind="budget", payload={"spent_s": float(spent_s), "limit_s": 200.0}))
    assert drawn == []
    now_s[0] = 1.0
    cell(Event(kind="budget", payload={"spent_s": 100.0, "limit_s": 200.0}))
    assert "budget 100 of 200 s (50%)" in drawn[-1]
    cell(Event(kind="stopped", payload={"reason": "budget", "message": None}))
    assert "stopped: budget" in drawn[-1]
    assert len(drawn) == 2


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_real_notebook_shows_the_run(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    cell = nbformat.v4.new_code_cell(NOTEBOOK.format(folder=str(tmp_path / "run")))
    book = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(book, timeout=180, kernel_name="python3").execute()
    outputs = book.cells[0].outputs
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert "passed: True" in printed
    (shown,) = (o for o in outputs if o.output_type == "display_data")
    assert "best so far: attempt" in shown.data["text/html"]
    assert "not timed" in shown.data["text/html"]
