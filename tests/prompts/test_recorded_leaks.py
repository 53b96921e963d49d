"""No prompt of a recorded run holds what a model must not see.

Each kind of leak has a check; each check is shown to find a planted one.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from hotloop.core.verdict import Tier
from hotloop.llm.recording import read_recording
from hotloop.verify.bundle import read_verdicts

ROOT = Path(__file__).parents[2]
VERDICTS = ROOT / "benchmarks/recordings/model_pilot_verdicts.jsonl"
RECORDINGS = sorted(
    p
    for folder in ("benchmarks/recordings", "examples/recordings")
    for pattern in ("*.jsonl", "*.jsonl.gz")
    for p in (ROOT / folder).glob(pattern)
    if "verdicts" not in p.name
)
MIN_LINE = 40
"""Characters; shorter lines of the harness (`return out`) are everybody's."""
EVERYBODYS = {"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"}
"""Longer lines that stand in half of all Triton kernels, and in the canary's too."""
WORDS = {
    "a path of the host": r"(?<![\w.])/(?:home|tmp|root|usr|opt|var|proc|dev)/\S",
    "a file of the harness": r"(?:site|dist)-packages|hotloop[./](?:worker|verify|sandbox)",
    "a seed": r"(?i)(?<![a-z_])seeds?\b",
    "a threshold": r"(?i)\b(?:tolerances?|thresholds?|atol|rtol)\b",
    "what is held out": r"(?i)\bheld[- ]out\b|\bfinal tier\b|\bhidden (?:inputs?|shapes?)\b",
}


@cache
def prompts() -> tuple[str, ...]:
    calls = [call for path in RECORDINGS for call in read_recording(path).calls]
    said = [call.prompt.messages for call in calls if call.prompt is not None]
    return tuple("\n".join(m.text for m in messages) for messages in said)


@cache
def harness_lines() -> frozenset[str]:
    # Prompts are written from `prompts`, and show kernels that `templates` could have written.
    parts = ("worker", "verify", "sandbox", "engine", "store", "search")
    files = [f for part in parts for f in (ROOT / "src/hotloop" / part).rglob("*.py")]
    lines = {line.strip() for f in files for line in f.read_text("utf-8").splitlines()}
    return frozenset(line for line in lines - EVERYBODYS if len(line) >= MIN_LINE)


@cache
def final_messages() -> tuple[str, ...]:
    verdicts = read_verdicts(VERDICTS).verdicts
    final = [v for v in verdicts if v.tier is Tier.FINAL and v.evidence is not None]
    return tuple({v.evidence.message for v in final if v.evidence and v.evidence.message})


def leaks(text: str) -> set[str]:
    """Return the kinds of leaks in a prompt."""
    found = {kind for kind, pattern in WORDS.items() if re.search(pattern, text)}
    if any(line.strip() in harness_lines() for line in text.splitlines()):
        found.add("source of the harness")
    if any(message in text for message in final_messages()):
        found.add("evidence of the final tier")
    return found


def test_no_recorded_prompt_leaks():
    assert len(prompts()) > 300
    assert {kind for text in prompts() for kind in leaks(text)} == set()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a path of the host", 'File "/home/somebody/kernel.py", line 3'),
        ("a file of the harness", "in hotloop/worker/compare.py"),
        ("a seed", "wrong on the inputs of seed 1234"),
        ("a threshold", "the tolerance is 1e-4"),
        ("what is held out", "it failed on a held-out shape"),
    ],
)
def test_a_planted_leak_is_found(kind, text):
    assert kind in leaks(prompts()[0] + "\n" + text)


def test_a_planted_line_of_the_harness_is_found():
    line = max(harness_lines(), key=len)
    assert "source of the harness" in leaks(f"{prompts()[0]}\n    {line}\n")


def test_planted_evidence_of_the_final_tier_is_found():
    assert final_messages(), "some recorded final verdicts failed"
    assert "evidence of the final tier" in leaks(prompts()[0] + final_messages()[0])
