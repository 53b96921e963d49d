"""The README's table of the model pilot says what its results file says."""

from pathlib import Path

from benchmarks import readme_pilot

GROUP = {
    "rows": 12,
    "correct": 11,
    "rounds_to_first_correct": {"median": 1.0, "distribution": {"1": 11}, "never": 1},
    "speedup": {
        "eager": {"geometric_mean": 2.341, "wins": 9, "rows": 12},
        "fastest": {"geometric_mean": 1.234, "wins": 7, "rows": 12},
    },
}
RESULTS = {
    "command": "make pilot-report",
    "date": "2026-01-01",
    "environment": {"gpu": "NVIDIA H200", "torch": "2.13.0", "triton": "3.9.0"},
    "rows": [
        {"arm": "main", "status": "PASSED", "calls": 6, "model": None},
        {"arm": "main", "status": "PASSED", "calls": 5, "model": "somebody answering"},
        {"arm": "sample", "status": "NO_FINAL", "calls": 5, "model": None},
    ],
    "summary": {
        "ablation": {"problems": [], "arms": {}},
        "by_level": {"attention": GROUP, "level 1": GROUP, "level 2": GROUP},
        "cuda": GROUP | {"rows": 0},
    },
}
SOURCE = Path("benchmarks/results/model_pilot_h200.json")


def test_each_group_has_its_figures_and_the_model_its_name():
    text = readme_pilot.pilot_section(RESULTS, SOURCE)
    assert "| KernelBench level 1 | 11 of 12 | 1 (median) | 2.34 | 1.23 | 7 of 12 |" in text
    assert "somebody answering" in text
    assert "at most 6 calls" in text
    assert "CUDA" not in text
    assert "not complete" not in text
    open_rows = [row | {"status": "NO_FINAL"} for row in RESULTS["rows"]]
    told = readme_pilot.pilot_section(RESULTS | {"rows": open_rows}, SOURCE)
    assert "not complete: 2 runs have no final verdict" in told


def test_the_ablation_shows_each_arm_at_the_same_number_of_calls():
    arms = {
        "main": {
            "speedup_after": [1.0, 1.5, 9.9],
            "speedup": {"geometric_mean": 1.4},
            "correct": 2,
        },
        "sample": {"speedup_after": [1.0, 1.6], "speedup": {"geometric_mean": 1.7}, "correct": 1},
    }
    summary = RESULTS["summary"] | {"ablation": {"problems": ["a", "b"], "arms": arms}}
    text = readme_pilot.pilot_section(RESULTS | {"summary": summary}, SOURCE)
    assert "| nothing: independent drafts | 1.00 | 1.60 | 1.70 | 1 of 2 |" in text
    assert "| and what was tried, failed and won | 1.00 | 1.50 | 1.40 | 2 of 2 |" in text
    assert "9.9" not in text


def test_kernels_in_cuda_are_a_line_of_their_own():
    # Only some of its six kernels were measured beside eager: no average of those is shown.
    speedup = {"eager": {"geometric_mean": 9.9, "rows": 2}} | {
        "fastest": {"geometric_mean": 1.5, "wins": 3, "rows": 6}
    }
    group = GROUP | {"rows": 6, "correct": 5, "speedup": speedup}
    text = readme_pilot.pilot_section(
        RESULTS | {"summary": RESULTS["summary"] | {"cuda": group}}, SOURCE
    )
    assert "| 6 of these in CUDA C++ | 5 of 6 | 1 (median) |  | 1.50 | 3 of 6 |" in text


def test_without_results_nothing_is_claimed():
    assert readme_pilot.pilot_section(None, SOURCE) == readme_pilot.NO_RESULTS
