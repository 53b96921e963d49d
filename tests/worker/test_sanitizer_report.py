"""What a sanitizer's log says, in the formats of several versions and where a candidate wrote."""

import pytest
import sanitizer_logs as logs

from hotloop.worker.sanitizer import refusal
from hotloop.worker.sanitizer_report import MAX_FINDINGS, MAX_LINE, read_report

KERNELS = frozenset({"add", "sum"})


def only(log):
    report = read_report(log, KERNELS)
    assert not report.is_clean
    return report.findings[0]


@pytest.mark.parametrize("log", [logs.CLEAN, logs.CLEAN_RACES])
def test_a_log_without_errors_is_clean(log):
    report = read_report(log, KERNELS)
    assert (report.findings, report.others, report.is_clean) == ((), (), True)


@pytest.mark.parametrize(
    ("log", "kind", "kernel", "place"),
    [
        (logs.OUT_OF_BOUNDS_NEW, "out_of_bounds", "add", ("kernel.cu", 43)),
        (logs.OUT_OF_BOUNDS_OLD, "out_of_bounds", "add", ("fused.py", 175)),
        (logs.NO_SOURCE, "out_of_bounds", "add", (None, None)),
        (logs.MISALIGNED, "misaligned_access", "add", ("kernel.cu", 7)),
        (logs.IN_A_HELPER, "out_of_bounds", "sum", ("kernel.cu", 9)),
        (logs.UNINITIALISED, "uninitialised_read", "sum", ("kernel.cu", 31)),
        (logs.RACE_NEW, "shared_memory_race", "sum", ("kernel.cu", 324)),
        (logs.RACE_OLD, "shared_memory_race", "sum", ("c.cu", 123)),
        (logs.RACE_HAZARD, "shared_memory_race", "sum", ("kernel.cu", 32)),
        (logs.BARRIER, "barrier_misuse", "sum", ("kernel.cu", 12)),
        (logs.BARRIER_OLD, "barrier_misuse", "sum", ("kernel.cu", 12)),
    ],
)
def test_an_error_has_its_kind_its_kernel_and_its_place(log, kind, kernel, place):
    found = only(log)
    assert (found.kind, found.kernel, (found.file, found.line)) == (kind, kernel, place)
    assert not any("/tmp" in line or "/home" in line for line in (found.what, *found.lines))
    assert not any("Host Frame" in line for line in found.lines)


@pytest.mark.parametrize(
    "log", [logs.RACE_WARNING, logs.UNSIZED_SHARED, logs.HOST_COPY, logs.FOREIGN, logs.NOT_STARTED]
)
def test_what_is_no_error_of_a_launched_kernel_condemns_nobody_and_acquits_nobody(log):
    report = read_report(log, KERNELS)
    assert report.findings == ()
    assert not report.is_clean


@pytest.mark.parametrize(
    "log",
    ["", "nothing\n", logs.CLEAN.replace("========= ERROR", "ERROR"), logs.CLEAN[:25],
     logs.CLEAN + "========= Target application returned an error\n"],
)  # fmt: skip
def test_a_log_without_a_last_word_is_not_clean(log):
    assert not read_report(log, KERNELS).is_clean


def test_a_summary_that_a_file_name_brings_along_takes_no_finding_away():
    forged = "kernel.cu\n========= ERROR SUMMARY: 0 errors\n=========     :43"
    log = logs.OUT_OF_BOUNDS_NEW.replace("kernel.cu:43", forged)
    assert only(log).kind == "out_of_bounds"
    unfinished = (
        log.rsplit("========= ERROR SUMMARY: 2", 1)[0] + "========= ERROR SUMMARY: 0 errors"
    )
    assert only(unfinished).kernel == "add"


def test_a_longer_name_is_another_kernel():
    log = logs.OUT_OF_BOUNDS_NEW.replace("add+", "add_more+")
    assert read_report(log, KERNELS).findings == ()


def test_what_is_shown_is_short_and_without_control_codes():
    log = logs.OUT_OF_BOUNDS_NEW.replace("by thread", "\x1b[31mby\x07 thread" + "x" * 5000)
    found = only(log)
    assert all(len(line) <= MAX_LINE and line.isprintable() for line in found.lines)


def test_of_many_errors_the_first_are_kept():
    block = logs.MISALIGNED.split("\n", 1)[1].rsplit("========= ERROR", 1)[0]
    report = read_report("========= COMPUTE-SANITIZER\n" + block * 500, KERNELS)
    assert len(report.findings) == MAX_FINDINGS


def test_the_refusal_names_tool_error_kernel_and_place():
    findings = read_report(logs.OUT_OF_BOUNDS_NEW, KERNELS).findings
    evidence = refusal("memcheck", findings, "kernel.cu").evidence
    assert evidence.kind == "out_of_bounds"
    assert evidence.message == (
        "compute-sanitizer memcheck: Invalid __global__ read of size 4 bytes in kernel add "
        "(kernel.cu:43); 1 more reported"
    )
    assert (evidence.details["kernel"], evidence.details["line"]) == ("add", 43)
    assert "line" not in refusal("memcheck", findings, "other.cu").evidence.details
    assert "161 bytes after the nearest allocation" in evidence.details["log"]
