"""What an agent is told: capped, and nothing that is held out."""

from dataclasses import replace

from hotloop.agent.answers import MAX_CHARS, capped, problem_text, source_text, verdict_answer
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import FakeVerifier, fake_candidate, fake_verdict, make_problem


def test_a_long_text_is_cut_in_its_middle_and_says_so():
    text = "a" * MAX_CHARS + "b" * MAX_CHARS
    cut = capped(text)
    assert len(cut) < MAX_CHARS + 100
    assert cut.startswith("aaa")
    assert cut.endswith("bbb")
    assert f"{MAX_CHARS:,} characters left out" in cut
    assert capped("short") == "short"


def test_a_problem_on_a_cpu_has_no_time():
    problem = make_problem(source="# the reference\n")
    info = FakeVerifier(device="cpu").load(problem)
    text = problem_text(problem, info)
    assert "# the reference" in text
    assert "never timed" in text
    assert "ms" not in text.replace("times", "")


def test_a_problem_is_shown_as_in_a_prompt_without_how_it_is_judged():
    source = (
        "N = 8\nworkloads = [dict(N=77, role='held_out')]\ntolerances = {'rtol': 1e-5}\nM = 9\n"
    )
    problem = make_problem(source=source)
    text = problem_text(problem, FakeVerifier(device="cpu").load(problem))
    assert "N = 8" in text
    assert "M = 9" in text
    assert "77" not in text
    assert "rtol" not in text


def test_a_problem_from_a_prompt_is_shown_in_its_own_words():
    problem = replace(make_problem(source="# code"), prompt="Please make\nthis fast.")
    text = problem_text(problem, FakeVerifier(device="cpu").load(problem))
    assert "Please make\nthis fast." in text
    assert "# code" not in text


def test_a_verdict_is_told_as_to_a_model():
    problem, candidate = make_problem(), fake_candidate({"BLOCK": 16})
    info = FakeVerifier().load(problem)
    for outcome, word in ((1.0, "PASSED"), (Status.INCORRECT_NUMERICAL, "INCORRECT_NUMERICAL")):
        verdict = fake_verdict(outcome, candidate.id, tier=Tier.FAST, device="cuda")
        told = verdict_answer(verdict, candidate, problem, info)
        assert told.startswith(f"{word} (fast tier): ")


def test_each_file_of_a_candidate_has_its_block():
    sources = (SourceFile(path="kernel.py", text="x = 1"), SourceFile(path="k.cu", text="int y;"))
    candidate = Candidate(language="cuda", sources=sources, entry="kernel.py", pins={"BLOCK": 8})
    told = source_text(candidate)
    assert "```python\nx = 1\n```" in told
    assert "```cuda\nint y;\n```" in told
    assert "BLOCK" in told
