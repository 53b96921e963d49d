"""A kernel that tunes itself runs as it is; the next prompt says what that costs and what to do."""

import pytest
from runs import Run, fast, kernel

from hotloop.core.attempt import Action
from hotloop.prompts.analysis import analyse

CONFIG = 'triton.Config({"BLOCK": 512}, num_warps=4)'
OTHER = 'triton.Config({"BLOCK": 1024}, num_warps=8, num_stages=3)'


def tuned(decorator):
    return kernel().replace("@triton.jit\n", f"{decorator}\n@triton.jit\n")


def told(source):
    return [f.message for f in analyse(source) if f.rule == "autotune"]


@pytest.mark.parametrize(
    ("decorator", "words"),
    [
        (f'@triton.autotune(configs=[{CONFIG}, {OTHER}], key=["n"])', "its 2 configurations"),
        (f'@triton.autotune([{CONFIG}, {OTHER}, {OTHER}], ["n"])', "its 3 configurations"),
        ('@triton.autotune(configs=CONFIGS, key=["n"])', "tries its configurations"),
        (f'@triton.autotune(configs=[{CONFIG}, *MORE], key=["n"])', "tries its configurations"),
        (f'@autotune(configs=[{CONFIG}, {OTHER}], key=["n"])', "its 2 configurations"),
    ],
)
def test_autotuning_is_told_with_its_configurations(decorator, words):
    (message,) = told(tuned(decorator))
    assert words in message
    assert "TUNABLES" in message
    assert len(message) < 300, "longer lines are cut in a prompt"


@pytest.mark.parametrize(
    "decorator",
    [
        f"@triton.autotune(configs=[{CONFIG}], key=[])",
        '@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})',
        "# triton.autotune",
    ],
)
def test_one_configuration_or_none_costs_nothing(decorator):
    assert told(tuned(decorator)) == []


@pytest.mark.parametrize(
    "decorator", ["", f"@triton.autotune(configs=[{CONFIG}, {OTHER}], key=[])"]
)
def test_the_next_prompt_says_so_and_shows_the_kernel_as_it_was(decorator):
    source = tuned(decorator) if decorator else kernel()
    run = Run({1: f"I tune it.\n\n```python\n{source}```\n", 2: "No."})
    written = run.step(1, fast())
    run.step(2, None, Action.OPTIMISE, 1)
    assert written.candidate.text() == source
    assert written.declared is None
    assert ("again in every check" in run.prompt(2)) is bool(decorator)
