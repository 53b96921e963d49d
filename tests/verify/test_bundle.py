"""The files between a search and its judge: whole, or refused with a line that says why."""

import gzip
import json
import re
from dataclasses import replace

import pytest

from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict
from hotloop.errors import ConfigError
from hotloop.verify.bundle import (
    Bundle,
    Item,
    JudgeError,
    Verdicts,
    read_bundle,
    read_verdicts,
    write_bundle,
    write_verdicts,
)

PROBLEM = Problem(name="p", kind=ProblemKind.KERNELBENCH, source="# gru\u00df\n")
OTHER = Problem(name="q", kind=ProblemKind.NATIVE, source="# other\n", settings={"M": 3})


def candidate(text="x = 1\n"):
    sources = (SourceFile(path="kernel.py", text=text),)
    return Candidate(language="triton", sources=sources, pins={"BLOCK": 64})


def info(problem=PROBLEM):
    return ProblemInfo(
        problem_id=problem.id,
        device="cuda",
        inputs=(),
        outputs=(),
        parameters=(),
        graph=None,
        attention=None,
        flops=None,
        io_bytes=4,
        rankable=True,
        baselines_ms={"eager": 1.5},
        environment={"gpu": "a GPU", "isolation": "T1"},
    )


def passed(problem=PROBLEM, tier=Tier.FAST, kernel=None):
    return Verdict(
        status=Status.PASSED,
        stage=Stage.PERFORMANCE,
        message="passed",
        candidate_id=(kernel or candidate()).id,
        problem_id=problem.id,
        tier=tier,
        device="cuda",
        performance=Performance(
            latency_ms=0.5, spread_ms=0.01, samples=7, timer="cupti", l2="cold"
        ),
    )


def failed(problem=PROBLEM, kernel=None):
    return Verdict(
        status=Status.COMPILE_ERROR,
        stage=Stage.COMPILE,
        message="no",
        candidate_id=(kernel or candidate("bad\n")).id,
        problem_id=problem.id,
        tier=Tier.FAST,
        device="cuda",
        evidence=Evidence(kind="compile_error", message="no"),
    )


BUNDLE = Bundle(
    problems={PROBLEM.id: PROBLEM, OTHER.id: OTHER},
    items=(
        Item(problem_id=PROBLEM.id, candidate=candidate(), tier=Tier.FAST, incumbent_ms=0.25),
        Item(problem_id=PROBLEM.id, candidate=candidate(), tier=Tier.FINAL),
        Item(problem_id=OTHER.id),
    ),
    audits={OTHER.id: Audit(key="0123456789abcdef", reasons=("ones pass",))},
)
VERDICTS = Verdicts(
    infos={PROBLEM.id: info()},
    verdicts=(passed(), failed()),
    errors=(
        JudgeError(problem_id=OTHER.id, candidate_id=None, error="ProblemError", message="no"),
    ),
)


def newer(head):
    return re.sub(r'("hotloop_\w+":)4', r"\g<1>5", head)


def test_both_files_come_back_as_they_were(tmp_path):
    write_bundle(tmp_path / "b", BUNDLE)
    write_verdicts(tmp_path / "v", VERDICTS)
    assert read_bundle(tmp_path / "b") == BUNDLE
    assert read_verdicts(tmp_path / "v") == VERDICTS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "v"]  # nothing half-written


def test_compressed_files_hold_the_same(tmp_path):
    for write, read, content in (
        (write_bundle, read_bundle, BUNDLE),
        (write_verdicts, read_verdicts, VERDICTS),
    ):
        plain, packed = tmp_path / "file", tmp_path / "file.gz"
        write(plain, content)
        write(packed, content)
        assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
        assert read(packed) == content
        before = packed.read_bytes()
        write(packed, content)
        assert packed.read_bytes() == before  # no time of writing in it
        for damage in (before[:-9], before[:40] + b"\0\0\0\0" + before[44:], plain.read_bytes()):
            packed.write_bytes(damage)
            with pytest.raises(ConfigError, match="damaged") as caught:
                read(packed)
            assert str(packed) in str(caught.value)


def test_an_error_knows_whose_fault_it_is():
    def error(name, candidate_id=None):
        return JudgeError(problem_id="p", candidate_id=candidate_id, error=name, message="")

    assert error("UnsupportedOp").problem_error.__name__ == "UnsupportedOp"
    assert error("WorkerDied").problem_error is None
    assert error("nobody_knows").problem_error is None
    assert error("ProblemError", "some candidate").problem_error is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: lines[:-1], "cut off or joined"),
        (lambda lines: lines + lines[-1:], "cut off or joined"),
        (lambda lines: [*lines[:2], lines[2][:40], *lines[3:]], "line 3 is damaged"),
        (lambda lines: [*lines[:2], "[1]", *lines[3:]], "line 3 is damaged"),
        (lambda lines: [*lines[:2], '{"what": 1}', *lines[3:]], "line 3 is damaged"),
        (lambda lines: [], "an empty file"),
        (lambda lines: ["PK\x03\x04", *lines], "expected a file of hotloop"),
        (lambda lines: ['{"some": "json"}'], "something else"),
        (lambda lines: [newer(lines[0]), *lines[1:]], "expected version 4"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, why):
    for write, read, content in (
        (write_bundle, read_bundle, BUNDLE),
        (write_verdicts, read_verdicts, VERDICTS),
    ):
        path = tmp_path / "file"
        write(path, content)
        lines = path.read_text().splitlines()
        path.write_text("\n".join(change(lines)))
        with pytest.raises(ConfigError, match=why) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_each_file_is_refused_in_the_place_of_the_other(tmp_path):
    write_bundle(tmp_path / "b", BUNDLE)
    write_verdicts(tmp_path / "v", VERDICTS)
    with pytest.raises(ConfigError, match="got a bundle"):
        read_verdicts(tmp_path / "b")
    with pytest.raises(ConfigError, match="got a verdict file"):
        read_bundle(tmp_path / "v")


@pytest.mark.parametrize("name", ["problem_id", "candidate_id"])
def test_an_id_that_is_not_its_contents_is_refused(tmp_path, name):
    write_bundle(tmp_path / "b", BUNDLE)
    lines = [json.loads(line) for line in (tmp_path / "b").read_text().splitlines()]
    line = next(line for line in lines if name in line)
    line[name] = "0123456789abcdef"
    (tmp_path / "b").write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(ConfigError, match=f"{name} 0123456789abcdef does not fit"):
        read_bundle(tmp_path / "b")


def test_files_that_cannot_be_read_or_written_are_one_line(tmp_path):
    for read in (read_bundle, read_verdicts):
        with pytest.raises(ConfigError, match="No such file"):
            read(tmp_path / "none")
        with pytest.raises(ConfigError, match="Is a directory"):
            read(tmp_path)
    with pytest.raises(ConfigError, match="No such file"):
        write_bundle(tmp_path / "none" / "b", BUNDLE)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_bundle(tmp_path / "bytes")


def test_a_bundle_that_contradicts_itself_cannot_be_made():
    with pytest.raises(ValueError, match="not in it"):
        Bundle(items=(Item(problem_id="abc"),))
    with pytest.raises(ValueError, match="not in it"):
        Bundle(audits=BUNDLE.audits)
    with pytest.raises(ValueError, match="filed as"):
        Bundle(problems={"abc": PROBLEM})
    with pytest.raises(ValueError, match="candidate and a tier"):
        Item(problem_id=PROBLEM.id, candidate=candidate())


def test_counters_are_read_of_what_beats_its_own_run_and_only_where_they_are_shown():
    first = Item(problem_id=PROBLEM.id, candidate=candidate(), tier=Tier.FAST)
    assert first.profile_below_ms > 1e9
    assert replace(first, incumbent_ms=0.25).profile_below_ms == 0.25
    assert replace(first, incumbent_ms=0.25, wants_counters=False).profile_below_ms == 0.0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_of_an_earlier_version_is_read(tmp_path, version):
    path = tmp_path / "bundle"
    without = replace(BUNDLE, audits={})
    write_bundle(path, without)
    head, *rest = path.read_text().replace(',"short":false', "").splitlines()
    old = head.replace('"hotloop_bundle":4', f'"hotloop_bundle":{version}').replace(
        '"audit":0,', ""
    )
    assert old != head
    assert "audit" not in old
    path.write_text("\n".join([old, *rest]) + "\n")
    assert read_bundle(path) == without


def test_an_audit_of_a_problem_that_is_not_there_is_damage(tmp_path):
    path = tmp_path / "bundle"
    write_bundle(path, BUNDLE)
    text = path.read_text()
    assert text.count(f'"problem_id":"{OTHER.id}"') == 3  # its own, its item's, its audit's
    last = text.rindex(OTHER.id)
    path.write_text(text[:last] + "0" * len(OTHER.id) + text[last + len(OTHER.id) :])
    with pytest.raises(ConfigError, match="not in the file before it"):
        read_bundle(path)
