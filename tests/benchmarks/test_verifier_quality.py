"""Merging what was measured of the verifier: met, missed, not measured, missing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.verifier_quality import KINDS, NAME, main, merged, summarise
from benchmarks.verifier_quality_page import BEGIN, END, section, shown
from benchmarks.verifier_quality_targets import KEPT, SECONDS, SHARE, TARGETS, worst_class

PERCENTILES = {"p50": 1.28, "p90": 2.37, "max": 2.9, "n": 75}
SUMMARIES: dict[str, dict[str, Any]] = {
    "attacks_cpu.json": {
        "attacks": 250, "attacks_refused": 250, "attacks_passed": [], "honest": 46,
        "honest_passed": 46, "honest_refused": [], "attacks_refused_with_another_status": [],
        "refused_at_the_final_tier_only": [], "by_corpus": {}, "attacks_by_stage": {"static": 250},
        "attacks_by_status": {}, "settled": {"blind/a": "PASSED"}, "without_a_result": [],
        "needs_a_gpu": ["gpu/burns"],
    },
    "honest_h200.json": {
        "runs": 604, "kernels": 151, "problems": 40, "passed": 604, "refused": 0,
        "refused_kernels": [], "inconclusive": 0, "errors": 0, "refusal_rate_upper_95": 0.005,
    },
    "verifier_quality_h200.json": {
        "device": "cuda", "mutants": 1000, "rules": 90, "kernels": 80,
        "total": {"counted": 800, "killed": 790, "score_frac": 0.9875},
        "by_group": {"masks": {"counted": 9, "score_frac": 0.95},
                     "none": {"counted": 0, "score_frac": None}},
        "final": {"total": {"counted": 300, "killed": 299, "score_frac": 299 / 300}},
    },
    "audit_h200.json": {
        "problems": 200, "ranked": 180, "not_ranked": 20, "errors": 0, "refused": 1,
        "with_a_fake_that_passes_nominal_values": 60,
    },
    "timing_h200.json": {
        "kernels": 16, "empty_ms": 0.0011, "understated": [], "control_outside": ["add-1Ki"],
        "control_worst": 0.011,
    },
    "final_cost_h200.json": {
        "problems": 6, "within_limits": 6, "full": {"limit_s": 60, "longest_s": 41.0},
        "short": {"limit_s": 20, "longest_s": 12.0}, "tools_ran": 12, "tools_skipped": 4,
    },
    "verify_throughput_h200.json": {
        "problems": 25, "new_passed": 75, "gpu_s": PERCENTILES, "wall_s": PERCENTILES,
        "early_failure_s": {"compile": PERCENTILES, "static": PERCENTILES},
    },
    "isolation.json": {"attacks": {"T1": {"refused": 64, "OPEN": 0}}, "open": []},
}  # fmt: skip
SUMMARIES["attacks_h200.json"] = SUMMARIES["attacks_cpu.json"]
SUMMARIES["verifier_quality_cpu.json"] = SUMMARIES["verifier_quality_h200.json"]
MACHINE = {"gpu": "NVIDIA H200", "driver": "580.1", "torch": "2.11.0", "triton": "3.6.0"}


def write(folder: Path, name: str, **changes: Any) -> None:
    summary = copy.deepcopy(SUMMARIES[name]) | changes
    record = {"command": "make bench", "commit": "0123abcd", "date": "2026-01-01", "rows": []}
    text = json.dumps(record | {"environment": MACHINE, "summary": summary})
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in SUMMARIES:
        write(tmp_path, name)
    return tmp_path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(f"# Page\n\n{BEGIN}\nold\n{END}\n\nafter\n", encoding="utf-8")
    return path


def found_in(folder: Path) -> tuple[dict[str, Any], str]:
    rows = merged(folder)
    summary = summarise(rows)
    return summary, section(rows, summary)


def target(summary: dict[str, Any], name: str) -> dict[str, Any]:
    return next(t for t in summary["targets"] if t["name"] == name)


def test_every_kind_has_targets_and_says_what_is_kept() -> None:
    names = {kind.name for kind in KINDS}
    assert set(TARGETS) == names
    assert {name.replace("gpu", "cpu") for name in names} == set(KEPT)


def test_with_all_files_every_target_is_met_and_every_source_named(folder: Path) -> None:
    summary, text = found_in(folder)
    assert summary["missed"] == summary["not_measured"] == []
    assert summary["missing"] == {}
    assert summary["met"] == len(summary["targets"]) == 26
    for name in SUMMARIES:
        assert f"- `{name}` (NVIDIA H200, driver 580.1, torch 2.11.0, triton 3.6.0; `make" in text
    assert "commit 0123abcd, 2026-01-01" in text
    assert text.startswith("26 targets met, 0 missed, 0 without a figure; 0 results files are")
    assert "**no**" not in text
    assert "Left out, they need a GPU: gpu/burns." in text
    assert "Passed by the rules, against their authors' expectation: blind/a." in text


@pytest.mark.parametrize(
    ("file", "changes", "name"),
    [
        ("attacks_cpu.json", {"attacks": 59, "attacks_refused": 59}, "attacks"),
        ("attacks_h200.json", {"attacks_refused": 249}, "attacks_not_refused"),
        ("attacks_cpu.json", {"honest_refused": ["honest/a"]}, "look_alikes_refused"),
        ("honest_h200.json", {"runs": 299}, "honest_runs"),
        ("honest_h200.json", {"kernels": 59}, "honest_kernels"),
        ("honest_h200.json", {"refused": 1, "refused_kernels": ["a"]}, "honest_rejected"),
        ("verifier_quality_h200.json", {"total": {"counted": 100, "killed": 94,
         "score_frac": 0.94}}, "mutation_fast"),
        ("verifier_quality_cpu.json", {"mutants": 999}, "mutants"),
        ("verifier_quality_h200.json", {"final": {"total": {"counted": 299, "killed": 299,
                                                  "score_frac": 1.0}}}, "final_mutants"),
        ("verifier_quality_cpu.json", {"by_group": {"masks": {"counted": 9, "score_frac": 8 / 9}}},
         "mutation_worst_class"),
        ("verifier_quality_h200.json", {"final": {"total": {"counted": 400, "killed": 392,
         "score_frac": 0.98}}}, "mutation_final"),
        ("final_cost_h200.json", {"full": {"longest_s": 60.0}}, "final_full_s"),
        ("final_cost_h200.json", {"short": {"longest_s": 21.0}}, "final_short_s"),
        ("final_cost_h200.json", {"within_limits": 5}, "final_not_in_time"),
        ("verify_throughput_h200.json", {"gpu_s": PERCENTILES | {"p50": 1.6}}, "fast_p50_s"),
        ("verify_throughput_h200.json", {"gpu_s": PERCENTILES | {"p90": 6.1}}, "fast_p90_s"),
    ],
)  # fmt: skip
def test_a_missed_target_is_said_to_be_missed(
    folder: Path, file: str, changes: dict[str, Any], name: str
) -> None:
    write(folder, file, **changes)
    summary, text = found_in(folder)
    missed = [t for t in summary["targets"] if t["met"] is False]
    assert [(t["name"], t["file"]) for t in missed] == [(name, file)]
    assert summary["missed"] == [f"{file}: {missed[0]['what']}"]
    assert f"Missed: {summary['missed'][0]}." in text
    assert sum("| **no** |" in line for line in text.splitlines()) == 1


def test_mutants_out_of_bounds_and_the_worst_class_are_told(folder: Path) -> None:
    total = SUMMARIES["verifier_quality_h200.json"]["total"]
    _, text = found_in(folder)
    assert "Worst class: masks, 95 % of 9." in text
    assert "out of bounds" not in text
    write(folder, "verifier_quality_h200.json", total=total | {"out_of_bounds_passed": 7})
    _, text = found_in(folder)
    assert "7 more read or wrote out of bounds without a wrong value, and passed." in text


def test_names_of_who_passed_stand_in_the_text(folder: Path) -> None:
    write(folder, "attacks_cpu.json", attacks_refused=249, attacks_passed=["blind/sneaky"])
    _, text = found_in(folder)
    assert "Passed, and should not have: blind/sneaky." in text


def test_a_figure_that_was_not_taken_is_neither_met_nor_missed(folder: Path) -> None:
    write(folder, "verifier_quality_h200.json", final=None)
    write(folder, "final_cost_h200.json", short={"longest_s": None})
    summary, text = found_in(folder)
    assert target(summary, "mutation_final")["met"] is None
    assert target(summary, "final_short_s")["met"] is None
    assert len(summary["not_measured"]) == 3
    assert text.count("| - | not measured |") == 3
    assert summary["missed"] == []


def test_a_missing_file_is_named_and_nothing_is_filled_in(folder: Path) -> None:
    for name in ("honest_h200.json", "attacks_cpu.json"):
        (folder / name).unlink()
    summary, text = found_in(folder)
    assert set(summary["missing"]) == {"honest_GPU.json", "attacks_cpu.json"}
    assert not any(t["kind"] in ("honest", "attacks_cpu") for t in summary["targets"])
    assert "nothing is claimed: `attacks_cpu.json` (`make bench-attacks" in text
    assert "604" not in text


def test_without_any_file_nothing_is_claimed(tmp_path: Path) -> None:
    summary, text = found_in(tmp_path)
    assert len(summary["missing"]) == len(KINDS)
    assert text.startswith("0 targets met, 0 missed, 0 without a figure; 10 results files are")
    assert "|" not in text


def test_files_of_two_gpus_are_both_held_to_the_targets(folder: Path) -> None:
    slow = SUMMARIES["final_cost_h200.json"] | {"full": {"longest_s": 80.0}}
    record = json.loads((folder / "final_cost_h200.json").read_text())
    (folder / "final_cost_h100.json").write_text(json.dumps(record | {"summary": slow}))
    summary, _ = found_in(folder)
    assert [t["met"] for t in summary["targets"] if t["name"] == "final_full_s"] == [False, True]


def test_a_file_of_another_form_is_refused_in_one_line(
    folder: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "honest_h200.json").write_text('{"summary": []}')
    assert main(["--results", str(folder), "--page", str(page)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("verifier_quality: expected honest_h200.json to be a results file")
    assert not (folder / NAME).exists()


def test_file_and_page_are_written_and_then_up_to_date(folder: Path, page: Path) -> None:
    options = ["--results", str(folder), "--page", str(page)]
    assert main([*options, "--check"]) == 1
    assert main(options) == 0
    assert main([*options, "--check"]) == 0
    record = json.loads((folder / NAME).read_text(encoding="utf-8"))
    assert record["command"] == "make verifier-quality"
    assert all(row["commit"] == "0123abcd" for row in record["rows"])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Page\n")
    assert text.endswith("after\n")
    assert "old" not in text
    write(folder, "honest_h200.json", refused=3)
    assert main([*options, "--check"]) == 1


def test_a_page_without_markers_is_refused(folder: Path, capsys) -> None:
    path = folder / "bare.md"
    path.write_text("# bare\n")
    assert main(["--results", str(folder), "--page", str(path)]) == 2
    assert "expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.98999, SHARE, "98.99 %"), (0.95, SHARE, "95 %"), (1.0, SHARE, "100 %"),
        (59.996, SECONDS, "60.00 s"), (None, SECONDS, "-"), (0, "count", "0"),
    ],
)  # fmt: skip
def test_figures_for_people(value: float | None, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_classes_in_which_nothing_counts_have_no_score() -> None:
    assert worst_class({"by_group": {"a": {"counted": 0, "score_frac": None}}}) is None
    groups = {"a": {"counted": 3, "score_frac": 2 / 3}, "b": {"counted": 1, "score_frac": 1.0}}
    assert worst_class({"by_group": groups}) == 2 / 3
