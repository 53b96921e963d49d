"""A suite that began from another one's kernels goes on with the same, whatever is found there."""

import shutil
from dataclasses import replace

import pytest
from suite_figure_runs import Made, write_run
from test_suite_starting import (
    MODEL,
    NAMES,
    REFUSED,
    UNCONFIRMED,
    VERIFIED,
    earlier,
    plan,
    write_suite,
)

from hotloop.errors import ConfigError, ForeignRun
from hotloop.suite.folder import Suite, check_suite

__all__ = ["earlier", "plan"]  # the fixtures
FOUND_MORE = Made(outcomes=(3.0, 1.0, 0.5), finals={2: 1.0, 3: 0.5})
"""`VERIFIED`, and a better kernel since."""


def test_a_suite_goes_on_with_its_kernels_whatever_its_source_finds_later(earlier, plan, tmp_path):
    first = plan(earlier, model=MODEL, out=tmp_path / "s")
    by_default = plan(earlier, model=MODEL).folder
    with Suite(tmp_path / "s", first.record):
        pass
    shutil.rmtree(earlier / "runs" / "1-1")
    write_run(earlier / "runs" / "1-1", FOUND_MORE, NAMES[0])
    write_run(earlier / "runs" / "1-4", replace(VERIFIED, language="gluon"), NAMES[3])
    later = plan(earlier, model=MODEL, out=tmp_path / "s")
    check_suite(tmp_path / "s", later.record)
    assert later.without_start == first.without_start == tuple(NAMES[1:])
    starts = [{j.member.name: j.plan.start for j in p.jobs} for p in (first, later)]
    assert starts[0] == starts[1], "the kernel that was best then, and nothing for 1/4"
    fresh = plan(earlier, model=MODEL)
    assert sorted(fresh.starts.kernels) == [NAMES[0], NAMES[3]]
    assert fresh.starts.kernels[NAMES[0]].kernel.id != first.record.starts[NAMES[0]].candidate_id
    assert fresh.folder == by_default, "what was found since is no other suite, in no language"


def test_the_default_folder_goes_on_with_its_kernels_too(earlier, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = plan(earlier, model=MODEL)
    with Suite(first.folder, first.record):
        pass
    write_run(earlier / "runs" / "1-4", VERIFIED, NAMES[3])
    later = plan(earlier, model=MODEL)
    assert later.folder == first.folder
    assert sorted(later.starts.kernels) == NAMES[:1]
    check_suite(first.folder, later.record)


def test_a_suite_does_not_go_on_from_another_source(earlier, plan, tmp_path):
    first = plan(earlier, model=MODEL, out=tmp_path / "s")
    with Suite(tmp_path / "s", first.record):
        pass
    same_asked = write_suite(tmp_path / "o", REFUSED, REFUSED, UNCONFIRMED, None)
    with pytest.raises(ConfigError, match="has not the kernel .* that this suite began from"):
        plan(same_asked, model=MODEL, out=tmp_path / "s")
    other = replace(VERIFIED, source="import torch\nother = {n}\n")
    fresh = plan(write_suite(tmp_path / "p", other, None, None, None), model=MODEL)
    assert fresh.record.options == first.record.options
    with pytest.raises(ForeignRun, match="began from other kernels than those of --start"):
        check_suite(tmp_path / "s", fresh.record)


def test_a_suite_in_two_languages_goes_on_from_start_only(tmp_path, plan):
    source = write_suite(tmp_path / "g", None, None, replace(VERIFIED, language="gluon"), None)
    only = plan(source, start_only=True)
    search = plan(source, model=MODEL)
    assert only.record.options == search.record.options
    assert only.record.options["language"] == "gluon"
    assert {j.plan.spec.language for j in search.jobs} == {"triton", "gluon"}
    assert only.folder == search.folder


def test_a_builtin_suite_goes_on_from_start_only(tmp_path, plan):
    source = write_suite(tmp_path / "b", None, VERIFIED, None, generator="builtin", model=None)
    assert plan(source, start_only=True).record.options == plan(source).record.options


def test_start_only_does_not_go_back_behind_a_search(earlier, plan, tmp_path):
    only = plan(earlier, start_only=True, out=tmp_path / "s")
    with Suite(tmp_path / "s", only.record) as suite:
        assert suite.record.start_only
    assert plan(earlier, start_only=True, out=tmp_path / "s").jobs, "it goes on"
    with Suite(tmp_path / "s", plan(earlier, model=MODEL, out=tmp_path / "s").record) as suite:
        assert not suite.record.start_only
    with pytest.raises(ConfigError, match="--start-only: .*s has gone on to search; leave"):
        plan(earlier, start_only=True, out=tmp_path / "s")
