"""Small turns on long kernels: a diff is allowed, and given up where it does not fit."""

import difflib

import pytest
from prompt_cases import norm_task
from runs import Run, broken, fast, kernel

from hotloop.core.attempt import Action
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.model import Finish
from hotloop.prompts.extract import NoCode, NoCodeReason, extract
from hotloop.prompts.prompt_writer import DIFF_LINES
from hotloop.testing.scripted_model import told

OFFER = "a unified diff against the file above"
SMALL = pytest.mark.parametrize(
    ("action", "ends"), [(Action.OPTIMISE, fast()), (Action.REPAIR, broken())]
)
PADDING = "\n".join(f"# line {n} of a long comment" for n in range(DIFF_LINES))
LONG = kernel("as it was", tunables=PADDING)
FASTER = LONG.replace("as it was", "as it is now").replace("BLOCK = 1024", "BLOCK = 2048")
CUDA = """/* {"inputs": {}, "outputs": {}, "kernels": []} */

extern "C" __global__ void k(const float* x, float* y) {
  int i = threadIdx.x;
  int j = 1;
  y[i] = x[i] * j;
}
"""


def block(text, language="python"):
    return f"I change the block.\n\n```{language}\n{text}```\n"


def diff(old, new, *, moved=0, path="kernel.py"):
    """Return a unified diff whose line numbers are `moved` lines off."""
    lines = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True), path, path))
    for at, line in enumerate(lines):
        if line.startswith("@@"):
            start = int(line.split("-")[1].split(",")[0])
            lines[at] = line.replace(f"-{start},", f"-{start + moved},", 1)
    return "".join(lines)


def long_run(*replies, ends):
    """A run whose first kernel is long and ended so; the replies are for attempts from 2."""
    run = Run({1: block(LONG), **dict(enumerate(replies, 2))})
    run.step(1, ends)
    return run


@SMALL
def test_a_long_kernel_may_be_changed_by_a_diff(action, ends):
    run = long_run(block(diff(LONG, FASTER, moved=40), "diff"), ends=ends)
    written = run.step(2, fast(), action, 1)
    assert OFFER in run.prompt(2)
    assert written.candidate.text() == FASTER
    assert "a diff was applied" in written.notes


@SMALL
def test_the_whole_file_may_come_all_the_same(action, ends):
    run = long_run(block(FASTER), ends=ends)
    assert run.step(2, fast(), action, 1).candidate.text() == FASTER


@SMALL
def test_a_short_kernel_is_asked_for_whole(action, ends):
    run = Run({1: block(kernel()), 2: block(kernel("b"))})
    run.step(1, ends)
    run.step(2, fast(), action, 1)
    assert "unified diff" not in run.prompt(2)


def test_other_turns_ask_for_the_whole_file():
    run = long_run(block(FASTER), block(FASTER), ends=fast())
    run.step(2, fast(), Action.REGENERATE, 1)
    run.step(3, fast(), Action.DRAFT)
    assert "unified diff" not in run.prompt(2)
    assert "unified diff" not in run.prompt(3)


@SMALL
def test_after_a_diff_that_does_not_fit_the_whole_file_is_asked_for(action, ends):
    wrong = diff(LONG, FASTER).replace("-BLOCK = 1024", "-BLOCK = 512")
    run = long_run(block(wrong, "diff"), "What now?", block(FASTER), ends=ends)
    nothing = run.step(2, None, action, 1)
    assert nothing.no_code.details["reason"] == "diff_failed"
    run.step(3, None, Action.REPAIR, 2)
    assert "send the whole file instead of a diff" in run.prompt(3)
    assert "unified diff" not in run.prompt(3)
    assert "# line 7 of a long comment" in run.prompt(3)
    assert run.step(4, fast(), Action.REPAIR, 3).candidate.text() == FASTER
    assert OFFER in run.prompt(4), "the last reply was prose, so a diff may be tried again"


def test_a_diff_that_was_cut_off_is_not_applied():
    whole = diff(LONG, FASTER)
    cut = block(whole[: whole.rindex("as it is now")], "diff").removesuffix("```\n")
    run = long_run(told(cut, finish=Finish.LENGTH), ends=fast())
    nothing = run.step(2, None, Action.OPTIMISE, 1)
    assert "ended inside its diff" in nothing.no_code.message


def test_a_whole_diff_may_lack_the_end_of_its_fence():
    run = long_run(block(diff(LONG, FASTER), "diff").removesuffix("```\n"), ends=fast())
    assert run.step(2, fast(), Action.OPTIMISE, 1).candidate.text() == FASTER


def parent(text, path, language):
    source = SourceFile(path=path, text=text)
    return Candidate(language=language, sources=(source,), entry=path)


@pytest.mark.parametrize("fence", ["diff", "", "python", "cuda"])
@pytest.mark.parametrize(
    ("old", "new", "path", "language"),
    [
        (LONG, FASTER, "kernel.py", "triton"),
        (CUDA, CUDA.replace("j = 1", "j = 2"), "kernel.cu", "cuda"),
    ],
)
def test_a_diff_is_one_whatever_its_fence_says(old, new, path, language, fence):
    reply = block(diff(old, new, path=path), fence)
    found = extract(reply, language=language, parent=parent(old, path, language))
    assert not isinstance(found, NoCode), found
    assert found.candidate.text() == new
    alone = extract(reply, language=language)
    assert isinstance(alone, NoCode)
    assert alone.reason is NoCodeReason.DIFF_WITHOUT_PARENT


def test_a_cuda_file_is_offered_a_diff_too():
    long = CUDA.replace("  int j", "".join(f"  // {n}\n" for n in range(DIFF_LINES)) + "  int j")
    new = long.replace("j = 1", "j = 2")
    run = Run(
        {1: block(long, "cuda"), 2: block(diff(long, new, path="kernel.cu"), "diff")},
        task=norm_task("cuda"),
    )
    run.step(1, fast())
    written = run.step(2, fast(), Action.OPTIMISE, 1)
    assert OFFER in run.prompt(2)
    assert written.candidate.text() == new
