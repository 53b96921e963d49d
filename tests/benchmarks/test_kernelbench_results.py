"""The results file of suites: every problem is in it, and nothing that the journals do not say."""

import json
from dataclasses import replace

from benchmarks import kernelbench
from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy, Problem, ProblemInfo, ProblemKind
from hotloop.core.record import to_json
from hotloop.core.verdict import Performance, Stage, Status, Tier, Verdict
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.folder import SUITE_FILE, Begun, Member, SuiteRecord
from hotloop.testing.fakes import make_spec

TIMES = {"eager": 4.0, "compile": 2.0}
ENVIRONMENT = {"gpu": "NVIDIA H200", "driver": "580", "torch": "2.11"}


def write_suite(folder, *, reason="calls", precision=None, starts=None, action="draft"):
    members = [
        Member(name=f"kernelbench/1/{n}", level=1, number=n, title=f"{n}_ReLU", problem_id=f"p{n}")
        for n in (1, 2)
    ]
    options = {"generator": "model", "model": f"dir:{folder}", "device": "cuda", "settings": {}}
    options |= {} if precision is None else {"precision": precision}
    record = SuiteRecord(
        suite="kernelbench", problems=tuple(members), options=options, limits={},
        starts=starts or {},
    )  # fmt: skip
    folder.mkdir()
    (folder / SUITE_FILE).write_text(json.dumps(to_json(record)))
    write_run(folder / members[0].folder, reason, precision or "as_shipped", action)
    return folder


def write_run(folder, reason, precision, action):
    kind, policy = ProblemKind.KERNELBENCH, Policy(precision=precision)
    problem = Problem(name="kernelbench/1/1", kind=kind, source="# x\n", policy=policy)
    info = ProblemInfo(
        problem_id=problem.id, device="cuda", inputs=(), outputs=(), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=4, rankable=True, baselines_ms=TIMES,
        environment=ENVIRONMENT,
    )  # fmt: skip
    source = SourceFile(path="kernel.py", text="x = 1\n")
    candidate = Candidate(language="triton", sources=(source,))
    attempt = Attempt(
        id=1, action=action, point={}, parents=(), generator="model", candidate_id=candidate.id,
        verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip
    performance = Performance(
        latency_ms=1.0, spread_ms=0.0, samples=9, timer="cupti", l2="cold", baselines=TIMES,
        speedup={"eager": 4.0, "compile": 2.0},
        speedup_ci={"eager": (3.9, 4.1), "compile": (1.9, 2.1)},
    )  # fmt: skip
    fast = Verdict(
        status=Status.PASSED, stage=Stage.PERFORMANCE, message="", tier=Tier.FAST, device="cuda",
        candidate_id=candidate.id, problem_id=problem.id, performance=performance,
    )  # fmt: skip
    with SqliteStore(folder) as store:
        store.begin(replace(make_spec(problem), generator="model"), problem)
        store.note("setup", {"info": to_json(info), "setup_s": 1.0})
        store.propose(attempt, candidate)
        store.conclude(replace(attempt, verdict=fast, objective=1.0, finished_s=1.0))
        final = to_json(replace(fast, tier=Tier.FINAL))
        store.note("final", {"attempt_id": 1, "candidate_id": candidate.id, "verdict": final})
        store.note("stopped", {"reason": reason, "message": None})


def test_rows_and_figures_are_those_of_the_suite(tmp_path, capsys):
    suite, out = write_suite(tmp_path / "suite"), tmp_path / "out.json"
    words = ["--suite", str(suite), "--model", "somebody", "--note", "mind", "--out", str(out)]
    assert kernelbench.main(words) == 0
    record = json.loads(out.read_text())
    solved, missing = record["rows"]
    assert (solved["problem"], solved["status"]) == ("kernelbench/1/1", "PASSED")
    assert solved["performance"]["latency_ms"] == 1.0
    assert (missing["status"], missing["performance"]) == ("NO_RUN", None)
    assert record["environment"]["gpu"] == "NVIDIA H200"
    assert record["command"] == "make bench-kernelbench"
    group = record["summary"]["columns"]["model/as_shipped/cuda"]["levels"]["1"]["all"]
    assert (group["problems"], group["correct"]) == (2, 1)
    assert record["summary"]["notes"] == ["mind"]
    assert record["summary"]["suites"][0]["options"]["model"] == "somebody"
    assert str(tmp_path) not in json.dumps(record["summary"]), "no path of the machine"
    assert "2 problems, 0 wait" in capsys.readouterr().out


def test_suites_under_two_precisions_are_two_columns(tmp_path, capsys):
    shipped = write_suite(tmp_path / "shipped")
    strict = write_suite(tmp_path / "strict", precision="strict")
    out = tmp_path / "out.json"
    assert kernelbench.main([f"--suite={shipped}", f"--suite={strict}", f"--out={out}"]) == 0
    record = json.loads(out.read_text())
    assert sorted(record["summary"]["columns"]) == ["model/as_shipped/cuda", "model/strict/cuda"]
    assert [(row["precision"], row["status"]) for row in record["rows"]] == [
        ("as_shipped", "PASSED"), ("as_shipped", "NO_RUN"),
        ("strict", "PASSED"), ("strict", "NO_RUN"),
    ], "a problem that was not run counts where it would have been"  # fmt: skip
    assert len({row["key"] for row in record["rows"]}) == 4
    (side,) = record["summary"]["precision"]
    assert side["problems"] == 2, "the same problems in both"
    assert {name: group["correct"] for name, group in side["policies"].items()} == {
        "as_shipped": 1, "strict": 1
    }  # fmt: skip


def test_rows_of_a_started_suite_say_whose_kernel_the_best_is(tmp_path):
    begun = {"kernelbench/1/1": Begun(candidate_id="0" * 16, author="dir:/home/somebody/answers")}
    for action, is_start in (("start", True), ("draft", None)):
        suite = write_suite(tmp_path / action, starts=begun, action=action)
        out = tmp_path / f"{action}.json"
        assert kernelbench.main([f"--suite={suite}", "--model=me", f"--out={out}"]) == 0
        record = json.loads(out.read_text())
        row, missing = record["rows"]
        assert row.get("best_is_start") is is_start
        assert row.get("start_of") == ("dir:" if is_start else None), "no path, and not `me`"
        assert "best_is_start" not in missing
        (told,) = record["summary"]["suites"]
        assert told["starts"] == {"kernels": 1, "of": ["dir:"], "only": False}
        assert "somebody" not in out.read_text()


def test_what_waits_is_said_and_bad_input_is_one_line(tmp_path, capsys):
    suite = write_suite(tmp_path / "suite", reason="waiting")
    words = ["--suite", str(suite), "--out", str(tmp_path / "out.json")]
    assert kernelbench.main(words) == 1
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["summary"]["unfinished"] == ["1/1"]
    assert kernelbench.main([*words, "--suite", str(suite)]) == 2
    assert "expected one run of 1/1" in capsys.readouterr().err
    assert kernelbench.main(["--suite", str(tmp_path / "gone")]) == 2
    assert "holds no suite" in capsys.readouterr().err
