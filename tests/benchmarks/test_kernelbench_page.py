"""The README's part on KernelBench and docs/kernelbench.md say what the results file says."""

import re
from pathlib import Path

import pytest
from benchmarks.kernelbench_page import tables
from benchmarks.readme_kernelbench import kernelbench_section
from kernelbench_makers import BUILTIN, MODEL, failed_row, made_results, made_row

from benchmarks import kernelbench_figure, kernelbench_problems, readme, readme_kernelbench

SOURCE = Path("benchmarks/results/kernelbench_h200.json")
UNDECIDABLE = "output 0 is zero everywhere"
WAITS = "waiting: candidate 0123 has to be judged (final)"


def results_of(*rows):
    return made_results({MODEL: list(rows)})


def section_of(*rows):
    return kernelbench_section(results_of(*rows), SOURCE)


def test_the_page_and_the_picture_are_what_the_results_file_gives():
    page = readme.KERNELBENCH_PAGE.read_text(encoding="utf-8")
    assert readme.with_kernelbench_tables(page) == page
    results = readme.load_results(readme.KERNELBENCH)
    assert readme.KERNELBENCH_PICTURE.read_text("utf-8") == kernelbench_figure.picture(results)


def test_figures_made_from_rows_are_those_of_the_published_summary():
    results = readme.load_results(readme.KERNELBENCH)
    for name, column in results["summary"]["columns"].items():
        rows = readme_kernelbench.rows_of_column(results, name)
        for level, populations in column["levels"].items():
            mine = [r for r in rows if kernelbench_problems.level_of(r) == level]
            for which, chosen in {
                "all": mine,
                "decidable": [r for r in mine if kernelbench_problems.is_decidable(r)],
            }.items():
                over = populations[which]["speedup"]["better_of_both"]
                mean = kernelbench_problems.mean_over_better(chosen)
                counted = [kernelbench_problems.over_better(row) for row in chosen]
                assert mean == pytest.approx(over["geometric_mean"], rel=1e-12)
                assert sum(one.is_win for one in counted) == over["wins"]


def test_without_results_nothing_is_claimed():
    for text in (kernelbench_section(None, SOURCE), tables(None, SOURCE)):
        assert text == readme_kernelbench.NO_RESULTS
        assert not any(c.isdigit() for c in text)


def test_an_undecidable_problem_is_in_no_headline_and_is_listed_with_its_reason():
    rows = [made_row("1/1", 2.0), made_row("1/2", 8.0)]
    assert "| level 1, model | 2 | 2 | 2 | 4.00 |" in section_of(*rows)
    rows[1]["undecidable"] = UNDECIDABLE
    text = section_of(*rows)
    assert "| level 1, model | 1 | 1 | 1 | 2.00 | 2.00 | 2.00 | 2.00 | 1 |" in text
    assert "With those that are undecidable (1/2) 2 of 2 of level 1 passed." in text
    page = tables(results_of(*rows), SOURCE)
    assert f"| 1/2 | `PASSED` | {UNDECIDABLE} |" in page
    assert "| level 1: activation | 1 | 1 | 2.00 | 1 |" in page
    assert "`PASSED`, undecidable |" in page


def test_a_failed_problem_counts_as_1_and_is_listed():
    rows = [made_row("1/1", 4.0), failed_row("1/2", why="calls: 4 of 4")]
    text = section_of(*rows)
    assert "| level 1, model | 2 | 1 | 1 | 2.00 |" in text
    assert "Not solved: 1/2 (refused by the final tier: INCORRECT_NUMERICAL)." in text
    page = tables(results_of(*rows), SOURCE)
    assert "| level 1: activation | 2 | 1 | 2.00 | 1 |" in page
    assert "| counts as 1.00 | 2 | `FINAL_INCORRECT_NUMERICAL` |" in page
    assert "None is left unsolved." in section_of(rows[0])


def test_the_reason_is_what_the_final_tier_found_and_that_a_run_waits():
    results = results_of(failed_row("1/2", why=WAITS), failed_row("1/3", why=WAITS))
    found = {"status": "INCORRECT_NUMERICAL", "tier": "final", "kind": "nonfinite", "rule": None,
             "attempts": 2, "problems": 1, "unsolved": 1, "examples": ["1/2"]}  # fmt: skip
    results["summary"]["columns"][MODEL]["failures"] = [found, found | {"tier": "fast"}]
    text = kernelbench_section(results, SOURCE)
    assert (
        "1/2 (refused by the final tier: NaN or infinity where the reference has numbers, " in text
    )
    assert "1/3 (another kernel waits for its verdict)" in text
    assert "candidate 0123" not in text
    closed = results_of(failed_row("1/4", why="closed"))
    assert "1/4 (refused by the final tier: INCORRECT_NUMERICAL)" in kernelbench_section(
        closed, SOURCE
    )
    assert "| `INCORRECT_NUMERICAL` | final | nonfinite |  | 2 | 1 | 1 | 1/2 |" in tables(
        results, SOURCE
    )


def test_a_refused_start_is_told_apart_from_what_the_generator_was_asked_for():
    results = results_of(failed_row("1/2", why="calls: 4 of 4"))
    column = results["summary"]["columns"][MODEL]
    assert "Starting kernels" not in tables(results, SOURCE), "results from before have none"
    found = {"status": "INCORRECT_NUMERICAL", "tier": "final", "kind": "nonfinite", "rule": None,
             "attempts": 1, "problems": 1, "unsolved": 1, "examples": ["1/2"]}  # fmt: skip
    column["start_failures"] = [found]
    page = tables(results, SOURCE)
    asked, begun = page.split("#### Starting kernels that were refused")
    row = "| `INCORRECT_NUMERICAL` | final | nonfinite |  | 1 | 1 | 1 | 1/2 |"
    assert (row in asked, row in begun) == (False, True)
    assert "No verdict failed." in asked
    assert "1/2 (refused by the final tier: NaN" in kernelbench_section(results, SOURCE)


def test_a_ratio_that_is_not_claimed_counts_as_1_at_most_and_is_no_win():
    row = made_row("1/1", 3.0)
    assert kernelbench_problems.over_better(row).is_win
    del row["performance"]["speedup_ci"]["eager"]
    counted = kernelbench_problems.over_better(row)
    assert (counted.ratio, counted.interval, counted.is_win) == (1.0, None, False)
    assert "counts as 1.00 | 2 | `PASSED`, ratio not claimed |" in kernelbench_problems.row_line(
        row
    )
    # A baseline that the problem does not have is not asked for.
    for held in (row["performance"]["baselines"], row["performance"]["speedup"]):
        del held["eager"]
    del row["baselines_ms_at_load"]["eager"]
    assert kernelbench_problems.over_better(row).ratio == 3.0


def test_problems_without_a_claim_or_without_a_baseline_are_named_beside_fast_p():
    results = results_of(made_row("1/1"))
    assert "claimed: it counts" not in tables(results, SOURCE)
    speedup = results["summary"]["columns"][MODEL]["levels"]["1"]["decidable"]["speedup"]
    speedup["eager"] |= {"unclaimed": ["1/7"], "without": ["1/8"]}
    text = tables(results, SOURCE)
    assert "1/7 is correct, but its ratio over eager is not claimed: it counts as 1.0" in text
    assert "1/8 is not in the figures over eager: it has none." in text


def test_kernels_with_a_library_call_or_less_work_are_named():
    plain = section_of(made_row("1/1"))
    assert "keeps a library call" in plain
    assert "less work" not in plain
    fast = made_row("1/3", 16.0, library_anchor=True)
    fast["performance"]["roofline_frac"] = 200.0
    text = section_of(made_row("1/1", 2.0), fast)
    assert "The kernels of 1/3 keeps a library call, and count in." not in text
    assert "The kernel of 1/3 keeps a library call, and counts in." in text
    assert "without them the mean of level 1 over the better of both is 2.00." in text
    assert "`PASSED`, library call, less work |" in kernelbench_problems.row_line(fast)


def test_what_runs_once_in_prepare_is_told_beside_the_means():
    packed = made_row("1/1", 4.0)
    packed["performance"]["speedup_with_prepare"] = {
        "eager": {"1": 0.5, "32": 3.0}, "compile": {"1": 1.0, "32": 3.5}
    }  # fmt: skip
    text = section_of(packed, made_row("1/2", 2.0), failed_row("1/3"))
    assert "is 1.00 on level 1 where it runs once for one call" in text
    assert "and 1.82 on level 1 where it runs once for 32 calls" in text
    plain = section_of(made_row("1/2", 4.0))
    assert "is 4.00 on level 1 where it runs once for one call" in plain
    page = tables(results_of(made_row("1/2", 4.0)), SOURCE)
    assert "is 4.00 on level 1 where it runs once for one call" in page


def test_calls_to_the_first_pass_are_known_where_each_call_has_a_verdict():
    assert kernelbench_problems.calls_to_first_pass(made_row("1/1")) == 2
    never = made_row("1/1", statuses=["COMPILE_ERROR", "TIMEOUT"])
    assert kernelbench_problems.calls_to_first_pass(never) is None
    assert kernelbench_problems.calls_to_first_pass(made_row("1/1", calls=0)) is None


def test_another_generator_has_rows_of_its_own_and_says_what_it_covers():
    nothing = failed_row("1/2", status="NO_KERNEL", attempts=0, calls=0, statuses=[])
    nothing["key"] = f"{BUILTIN} 1/2"
    columns = {MODEL: [made_row("1/1", 2.0)],
               BUILTIN: [made_row("1/1", 4.0, column=BUILTIN), nothing]}  # fmt: skip
    text = kernelbench_section(made_results(columns), SOURCE)
    assert "| level 1, model | 1 | 1 | 1 | 2.00 |" in text
    assert "| level 1, builtin | 2 | 1 | 1 | 2.00 |" in text
    assert "it wrote kernels for 1 of 2 problems, and 1 passed the final tier" in text
    page = tables(made_results(columns), SOURCE)
    assert "### Generator: model" in page
    assert "### Generator: builtin" in page
    assert "no model" not in section_of(made_row("1/1"))


def test_a_column_without_a_gpu_has_no_speed():
    results = results_of(made_row("1/1"))
    column = results["summary"]["columns"].pop(MODEL)
    none = {"problems": 1, "correct": None, "speedup": None, "fast_tier_correct": 1}
    column |= {"levels": {"1": {"all": none, "decidable": none}}, "together": {"all": none}}
    results["summary"]["columns"]["model/as_shipped/cpu"] = column
    assert "| level 1, model, cpu | 1 | | | | | | | |" in kernelbench_section(results, SOURCE)
    assert "fast_p" not in tables(results, SOURCE)
    results["summary"]["columns"] = {"model": column}
    with pytest.raises(ValueError, match="generator/precision/device, got 'model'"):
        kernelbench_section(results, SOURCE)


def test_the_section_says_where_its_figures_come_from():
    text = section_of(made_row("1/1"))
    for part in ("somebody", "at most 4 model calls", "Triton", "NVIDIA H200", "torch 2.13.0",
                 "triton 3.6.0 and 3.9.0", "2026-01-01", str(SOURCE), "make bench-kernelbench",
                 "short final tier"):  # fmt: skip
        assert part in text
    assert "a note that a reader must know" in tables(results_of(made_row("1/1")), SOURCE)


def test_the_picture_draws_what_is_known():
    results = results_of(made_row("1/1"))
    drawn = kernelbench_figure.picture(results)
    assert "50.0 % after 1 call, 75.0 % after 3" in drawn
    assert "1.75x after 1 call, 2.25x after 3" in drawn
    assert "Over the decidable problems (1 of level 1)" in drawn
    assert len(re.findall("<path ", drawn)) == 3
    results["summary"]["columns"][MODEL]["curves"]["1"]["calls"]["solve_rate"] = None
    assert kernelbench_figure.picture(results) is None
    assert "not known how many calls" in tables(results, SOURCE)


def test_curves_of_other_than_the_decidable_problems_are_refused():
    rows = [made_row("1/1"), made_row("1/2", undecidable=UNDECIDABLE)]
    results = results_of(*rows)
    assert "Over the decidable problems (1 of level 1)" in kernelbench_figure.picture(results)
    results["summary"]["columns"][MODEL]["curves"]["1"]["calls"]["problems"] = 2
    with pytest.raises(ValueError, match="over the 1 decidable problems of level 1, got 2"):
        kernelbench_figure.picture(results)


@pytest.mark.parametrize("name", ["README", "KERNELBENCH_PAGE", "KERNELBENCH_PICTURE"])
def test_an_edited_readme_page_or_picture_is_noticed(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["readme", "--check"])
    text = getattr(readme, name).read_text(encoding="utf-8")
    copied = tmp_path / getattr(readme, name).name
    copied.write_text(text, encoding="utf-8")
    monkeypatch.setattr(readme, name, copied)
    assert readme.main() == 0
    edited = text.replace("level 1, ", "level 1, better ")
    assert edited != text
    copied.write_text(edited, encoding="utf-8")
    assert readme.main() == 1
    assert "not up to date" in capsys.readouterr().out
    assert readme.written()[copied] == text
