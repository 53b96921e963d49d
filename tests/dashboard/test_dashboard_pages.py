"""What the dashboard's pages show, and what they say of folders that cannot be shown."""

import re
import shutil
import sqlite3

from dashboard_runs import GPU, Told, unsynced, write_run

from hotloop.core.verdict import Status
from hotloop.dashboard.listing import scan
from hotloop.store.sqlite import SqliteStore

MIXED = [Status.COMPILE_ERROR, 2.5, Status.INCORRECT_NUMERICAL, 1.5, 0.8, None]
PARENTS = {2: (1,), 3: (2,), 4: (3,), 5: (4,), 6: (5,)}


def only_id(root):
    (place,) = scan(root).runs
    return place.id


def text_of(answer):
    words = re.sub(r"<(style|script)[\s\S]*?</\1>|<[^>]*>", " ", answer.text)
    return " ".join(words.replace("&lt;", "<").replace("&gt;", ">").split())


def rows_of(answer):
    return [int(n) for n in re.findall(r'<tr id="a-(\d+)"', answer.text)]


def test_an_empty_folder_says_how_to_begin(browse):
    answer = browse.get("/")
    assert answer.status_code == 200
    assert "no run and no suite below" in text_of(answer)
    assert "hotloop optimize PROBLEM --out" in text_of(answer)


def test_the_list_shows_state_device_best_and_budget(tmp_path, browse):
    write_run(tmp_path / "a" / "gpu", MIXED, parents=PARENTS, finals={5: 0.8})
    write_run(tmp_path / "cpu", [Status.TIMEOUT, 1.25], device="cpu")
    told = text_of(browse.get("/"))
    assert re.search(rf"a/gpu made/relu .* ended: calls {GPU} 6 3 0.8 ms, 2.50x over compile", told)
    assert "calls: 6 of 40 spent" in told
    assert "CPU: nothing is timed 2 1 correct, static cost 1.25" in told


def test_a_run_of_a_cpu_shows_no_time_and_no_speed(tmp_path, browse):
    write_run(tmp_path / "r", [Status.TIMEOUT, 1.25], device="cpu")
    run_id = only_id(tmp_path)
    for path in (f"/run/{run_id}", f"/run/{run_id}/attempt/2", "/"):
        told = text_of(browse.get(path)).replace("there is no speed on this page", "")
        assert not re.search(r"speed|\d x\b|\dx\b|\d ms\b|TFLOP|GB/s", told, re.IGNORECASE), path
        assert "CPU: nothing is timed" in told


def test_a_run_shows_curve_lineage_budget_and_table(tmp_path, browse):
    write_run(tmp_path / "r", MIXED, parents=PARENTS, finals={5: 0.8})
    answer = browse.get(f"/run/{only_id(tmp_path)}")
    told = text_of(answer)
    for words in ("Best speed-up so far over compile, fast tier", "Lineage of the attempts",
                  "Budget left", "0.8 ms, 2.50x over compile", "5 (best)",
                  "3 of 6 passed, 1 never judged", "verified",
                  "compile 2.00 ms, eager 4.00 ms"):  # fmt: skip
        assert words in told, words
    assert answer.text.count('class="step s1"') == 3, "2.5, 1.5 and 0.8 ms were each the best"
    assert answer.text.count('class="mark win"') == 3 + 1, "with the one of the legend"
    assert rows_of(answer) == [6, 5, 4, 3, 2, 1]


def test_a_fast_tier_ratio_is_called_no_result(tmp_path, browse):
    write_run(tmp_path / "r", [1.0])
    assert "2.00x over compile (fast tier, no result)" in text_of(browse.get("/"))


def test_the_table_is_filtered_on_the_server(tmp_path, browse):
    write_run(tmp_path / "r", MIXED, parents=PARENTS, told=Told(error="a bank conflict"))
    path = f"/run/{only_id(tmp_path)}"
    assert rows_of(browse.get(path, params={"status": "PASSED"})) == [5, 4, 2]
    assert rows_of(browse.get(path, params={"status": "never judged"})) == [6]
    assert rows_of(browse.get(path, params={"action": "draft"})) == [1]
    assert rows_of(browse.get(path, params={"text": "BANK"})) == [3, 1]
    assert rows_of(browse.get(path, params={"order": "oldest"})) == [1, 2, 3, 4, 5, 6]
    nothing = browse.get(path, params={"status": "of no kind", "page": "-3", "order": "x"})
    assert (nothing.status_code, rows_of(nothing)) == (200, [])
    assert "No attempt fits these filters" in nothing.text


def test_a_long_table_has_pages(tmp_path, browse):
    with unsynced():
        write_run(tmp_path / "r", [Status.TIMEOUT] * 130)
    path = f"/run/{only_id(tmp_path)}"
    first, second = browse.get(path), browse.get(path, params={"page": "2"})
    assert rows_of(first) == list(range(130, 30, -1))
    assert rows_of(second) == list(range(30, 0, -1))
    assert rows_of(browse.get(path, params={"page": "99"})) == rows_of(second)
    assert 'href="?page=2#attempts-title"' in first.text


def test_an_attempt_shows_verdict_error_map_difference_and_calls(tmp_path, browse):
    write_run(tmp_path / "r", MIXED, parents=PARENTS)
    answer = browse.get(f"/run/{only_id(tmp_path)}/attempt/3")
    told = text_of(answer)
    for words in ("INCORRECT_NUMERICAL at stage correctness", "Where output 0 is wrong",
                  "3,072 of 262,144 elements are far off", "Against attempt 2", "+2 -2",
                  "Write a faster kernel.", "The loads are not coalesced.",
                  "They lie at only index 1 of 4", "needles", "led to 4"):  # fmt: skip
        assert words in told, words
    assert "BLOCK = <mark>2</mark>" in answer.text
    assert "BLOCK = <mark>3</mark>" in answer.text
    assert '<span class="k">class</span> ModelNew' in answer.text


def test_an_attempt_that_passed_shows_its_time_and_roofline(tmp_path, browse):
    write_run(tmp_path / "r", MIXED, parents=PARENTS, finals={5: 0.8})
    told = text_of(browse.get(f"/run/{only_id(tmp_path)}/attempt/5"))
    for words in (
        "Verdict of the final tier PASSED",
        "Verdict of the fast tier PASSED",
        "Median and interquartile range of 40 samples by cupti",
        "600 TFLOP/s",
        "62.5 % of what the roof allows",
        "2.45 to 2.55 win",
        "all 3 that passed",
    ):
        assert words in told, words  # fmt: skip
    failed = text_of(browse.get(f"/run/{only_id(tmp_path)}/attempt/1"))
    assert "Roofline" not in failed


def test_an_attempt_without_a_verdict_or_number_says_so(tmp_path, browse):
    write_run(tmp_path / "r", MIXED, parents=PARENTS)
    path = f"/run/{only_id(tmp_path)}/attempt"
    assert "No verdict yet" in text_of(browse.get(f"{path}/6"))
    for number in ("0", "77", "9" * 30):
        answer = browse.get(f"{path}/{number}")
        assert answer.status_code == 404
        assert "this run has no attempt" in text_of(answer)


def test_two_runs_are_compared(tmp_path, browse):
    write_run(tmp_path / "a", [2.0, 1.0], finals={2: 1.0})
    write_run(tmp_path / "b", [Status.TIMEOUT, 1.6])
    write_run(tmp_path / "c", [1.5], device="cpu")
    a, b, c = (place.id for place in scan(tmp_path).runs)
    told = text_of(browse.get("/compare", params={"a": a, "b": b}))
    for words in ("A: a: best so far B: b: best so far", "Best kernels: attempt 2 of A",
                  "First correct after 5 s 10 s", "Failed 0 1", "Budget spent"):  # fmt: skip
        assert words in told, words
    mixed = text_of(browse.get("/compare", params={"a": a, "b": c}))
    assert "not drawn: one run was timed and the other was not" in mixed
    assert "Choose two runs." in text_of(browse.get("/compare"))
    assert browse.get("/compare", params={"a": a, "b": "gone"}).status_code == 404


def test_a_damaged_journal_is_a_line_that_says_so(tmp_path, browse):
    write_run(tmp_path / "good", [1.0])
    write_run(tmp_path / "bad", [1.0])
    journal = tmp_path / "bad" / "journal.sqlite"
    data = bytearray(journal.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    journal.write_bytes(bytes(data))
    bad, good = (place.id for place in scan(tmp_path).runs)
    listed = text_of(browse.get("/"))
    assert "cannot be read" in listed
    assert "2.00x over compile" in listed, "the other one is as it was"
    answer = browse.get(f"/run/{bad}")
    assert answer.status_code == 503
    assert "the journal is damaged" in text_of(answer)
    assert browse.get(f"/run/{good}").status_code == 200


def test_a_journal_of_another_version_says_so(tmp_path, browse):
    write_run(tmp_path / "r", [1.0])
    connection = sqlite3.connect(tmp_path / "r" / "journal.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    answer = browse.get(f"/run/{only_id(tmp_path)}")
    assert answer.status_code == 503
    assert "newer hotloop (schema 99" in text_of(answer)


def test_records_of_another_shape_are_no_traceback(tmp_path, browse):
    write_run(tmp_path / "r", [1.0])
    with SqliteStore(tmp_path / "r") as store:
        store.note("final", {"candidate_id": "x", "verdict": {"status": "OF_NO_KIND"}})
    answer = browse.get(f"/run/{only_id(tmp_path)}")
    assert answer.status_code == 503
    assert "records of another shape" in text_of(answer)
    assert "Traceback" not in answer.text


def test_a_run_that_has_not_begun_and_one_without_attempts_say_so(tmp_path, browse):
    with SqliteStore(tmp_path / "empty"):
        pass
    answer = browse.get(f"/run/{only_id(tmp_path)}")
    assert "has not begun yet" in text_of(answer)
    shutil.rmtree(tmp_path / "empty")
    write_run(tmp_path / "begun", [], ended=False)
    path = f"/run/{scan(tmp_path).runs[0].id}"
    assert "No attempts yet" in text_of(browse.get(path))


def test_a_run_that_is_deleted_while_it_is_open_says_so(tmp_path, browse):
    write_run(tmp_path / "r", [1.0])
    path = f"/run/{only_id(tmp_path)}"
    assert browse.get(path).status_code == 200
    shutil.rmtree(tmp_path / "r")
    answer = browse.get(path)
    assert answer.status_code == 404
    assert re.search("was deleted while it was open|any more", text_of(answer))


def test_a_missing_source_is_named_and_the_rest_is_shown(tmp_path, browse):
    write_run(tmp_path / "r", [1.0, 2.0], parents={2: (1,)})
    shutil.rmtree(tmp_path / "r" / "blobs")
    answer = browse.get(f"/run/{only_id(tmp_path)}/attempt/2")
    assert answer.status_code == 200
    assert "Its source cannot be shown" in text_of(answer)
    assert "PASSED at stage performance" in text_of(answer)
