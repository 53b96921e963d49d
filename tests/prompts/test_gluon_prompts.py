"""What a prompt says of Gluon: its programs compile for sm_90, in the words of the judge's Triton.

For a second Triton, HOTLOOP_TRITON_36 names a folder that holds Triton 3.6.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prompt_cases import attention_task, norm_task

from hotloop.prompts.fences import find_blocks
from hotloop.prompts.gluon_names import gluon_names
from hotloop.prompts.render import first_prompt, ideas_prompt

SOURCE = Path(__file__).parents[2] / "src"
SHARED_BYTES = 227 * 1024  # of one block on sm_90 (CUDA Programming Guide, compute capabilities)


@pytest.fixture(scope="module", params=["installed", "3.6"])
def compiled(request: pytest.FixtureRequest) -> Any:
    folder = os.environ.get("HOTLOOP_TRITON_36", "") if request.param == "3.6" else ""
    if request.param == "3.6" and not folder:
        pytest.skip("HOTLOOP_TRITON_36 does not name a folder with Triton 3.6")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("gluon_child.py"))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (folder, str(SOURCE)) if p)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert request.param == "installed" or report["triton"].startswith("3.6")
    return report["answers"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ring", "attention", "attention_causal", "attention_ragged", "model"]
)
def test_a_program_of_a_prompt_compiles_without_spills(compiled: Any, name: str) -> None:
    answer = compiled[name]
    assert answer["status"] == "ok", answer
    (kernel,) = answer["kernels"]
    assert kernel["spill_bytes"] == 0
    assert kernel["shared_bytes"] <= SHARED_BYTES
    assert kernel["num_stages"] is None  # of no meaning in Gluon
    assert kernel["advice"] == []


@pytest.mark.slow
def test_the_ring_has_warps_of_its_own_for_the_loader(compiled: Any) -> None:
    (kernel,) = compiled["ring"]["kernels"]
    assert kernel["num_warps"] == 8  # 4 that multiply, and a warpgroup with the loader in it


@pytest.mark.parametrize(
    ("version", "load"),
    [
        ("3.6.0", "tma.async_copy_global_to_shared"),
        ("3.7.1", "tma.async_copy_global_to_shared"),
        ("3.8.0", "tma.async_load"),
        ("3.10.0+git1234", "tma.async_load"),
        ("4.0", "tma.async_load"),
        (None, "tma.async_copy_global_to_shared"),
    ],
)
def test_copies_have_the_names_of_the_judges_triton(version: str | None, load: str) -> None:
    assert gluon_names(version)["tma_load"] == load
    task = attention_task("gluon")
    task = replace(task, info=replace(task.info, environment={"triton": version}))
    text = first_prompt(task).text
    assert f"{load}(" in text
    assert ("tma.async_load(" in text) != ("tma.async_copy_global_to_shared(" in text)


@pytest.mark.parametrize("make_task", [attention_task, norm_task])
def test_a_gluon_prompt_speaks_of_gluon(make_task: Any) -> None:
    text = first_prompt(make_task("gluon")).text
    assert "## Language: Gluon" in text
    assert "@triton.jit" not in text
    assert "kernel in Gluon" in ideas_prompt(make_task("gluon")).text


@pytest.mark.parametrize(("language", "is_run"), [("triton", True), ("gluon", False)])
def test_without_a_gpu_only_triton_is_said_to_run(language: str, is_run: bool) -> None:
    task = norm_task(language)
    text = first_prompt(replace(task, info=replace(task.info, device="cpu"))).text
    assert ("interpreter" in text) is is_run
    assert ("not run" in text) is not is_run


def used_and_imported(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a program reads and never makes, and those that it imports."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [n for n in nodes if isinstance(n, ast.Name)]
    made = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | set(dir(builtins))
    made |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    made |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    imported = {
        alias.asname or alias.name
        for n in nodes
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for alias in n.names
    }
    return {n.id for n in names} - made, imported


@pytest.mark.parametrize("make_task", [attention_task, norm_task])
def test_every_name_in_a_program_of_a_prompt_is_imported_there(make_task: Any) -> None:
    text = first_prompt(make_task("gluon")).text
    programs = [b.text for b in find_blocks(text) if "gluon.jit" in b.text]
    assert len(programs) == 2
    for program in programs:
        used, imported = used_and_imported(program)
        assert used <= imported
    _, ring = used_and_imported(programs[0])
    needed = {"mbarrier", "tma", "warpgroup_mma", "warpgroup_mma_wait", "fence_async_shared"}
    assert needed | {"TensorDescriptor", "gl", "gluon"} <= ring


def test_the_attention_imports_the_fence_that_its_rules_ask_for() -> None:
    text = first_prompt(attention_task("gluon")).text
    (skeleton,) = (b.text for b in find_blocks(text) if "class ModelNew" in b.text)
    assert "fence_async_shared" in used_and_imported(skeleton)[1]
