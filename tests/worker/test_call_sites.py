"""Torch inside a launch is the kernel's where the interpreter asks; a candidate's own is noted."""

import sys
import sysconfig
from pathlib import Path

import numpy as np
import torch

from hotloop.worker import call_sites, interpreter_builder, interpreter_maths
from hotloop.worker.library_calls import LibraryCalls

X = torch.rand(6, 40, generator=torch.Generator().manual_seed(0))


def in_a_launch(work):
    calls = LibraryCalls([X], range(0))
    with calls:
        after = calls.before_launch([X])
        work(X)
        after()
    return calls.in_kernels, set(calls.totals)


def test_a_kernel_that_multiplies_with_torch_inside_is_a_kernel():
    eye = np.eye(40, dtype=np.float32)
    assert in_a_launch(lambda x: interpreter_builder._matmul(x.numpy(), eye)) == ({}, set())
    special = interpreter_maths._by_torch(torch.special.i0)
    assert in_a_launch(lambda x: special(x.numpy())) == ({}, set())


def test_what_a_candidates_code_does_inside_a_launch_is_told():
    assert in_a_launch(lambda x: torch.softmax(x, -1)) == ({"_softmax": 240}, {"_softmax"})
    assert in_a_launch(lambda x: list(map(torch.exp, [x]))) == ({"exp": 240}, {"exp"})


def test_memory_that_is_made_inside_a_launch_is_no_work():
    assert in_a_launch(lambda x: torch.empty(8).view(2, 4).clone()) == ({}, set())


def test_a_forged_flag_hides_nothing():
    calls = LibraryCalls([X], range(0))
    with calls:
        calls.is_in_kernel = True
        torch.softmax(X, -1)
        calls.is_in_kernel = False
    assert calls.in_kernels == {"_softmax": 240}


def compiled_at(path):
    return compile("1", str(path), "exec")


def test_packages_lie_wherever_they_were_installed(monkeypatch, tmp_path):
    other, folder = tmp_path / "other", tmp_path / "packages"
    (folder / "some-1.0.dist-info").mkdir(parents=True)
    other.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder), str(other), "relative"])
    found = set(call_sites._package_folders())
    assert str(folder) in found
    assert sysconfig.get_paths()["purelib"] in found
    assert str(other) not in found
    assert "relative" not in found


def test_a_candidate_below_a_folder_of_packages_is_none(monkeypatch):
    folder = Path(sysconfig.get_paths()["purelib"]) / "work"
    monkeypatch.setattr(call_sites, "_candidates", [])
    call_sites.take_folder(folder)
    assert not call_sites.is_librarys(compiled_at(folder / "candidate.py"))
    assert call_sites.is_librarys(compiled_at(folder.parent / "other.py"))
    assert not call_sites.is_librarys(compiled_at("<string>"))
