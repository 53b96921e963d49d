"""The package as a user meets it: public names, a light import, a drawn error tree."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import hotloop
from hotloop import errors

ROOT = Path(__file__).parents[1] / "src" / "hotloop"
MAX_IMPORT_S = 0.4
QUESTION = """
import json, sys, time
start = time.perf_counter()
import hotloop
took_s = time.perf_counter() - start
hotloop.optimize, hotloop.verify
heavy = sorted({"torch", "triton"} & set(sys.modules))
print(json.dumps([took_s, heavy]))
"""


def test_there_are_few_public_names_and_each_exists():
    assert len(hotloop.__all__) <= 20
    assert len(set(hotloop.__all__)) == len(hotloop.__all__)
    assert set(hotloop.__all__) <= set(dir(hotloop))
    for name in hotloop.__all__:
        assert getattr(hotloop, name) is not None
        assert name == "__version__" or not name.startswith("_")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        hotloop.no_such_name  # noqa: B018


def test_private_names_stay_in_their_file():
    crossing = [
        f"{path.relative_to(ROOT)}: {alias.name}"
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hotloop")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert crossing == []


def test_importing_is_fast_and_loads_no_torch():
    best_s, heavy = min(
        json.loads(subprocess.check_output([sys.executable, "-c", QUESTION], text=True))
        for _ in range(3)
    )
    assert heavy == []
    assert best_s < MAX_IMPORT_S


def test_the_error_tree_is_drawn_as_it_is():
    drawn = re.findall(r"^( *)((?:\|  )*)(?:\+- )?(\w+Error|\w+)\b", errors.__doc__, re.MULTILINE)
    depth = {name: len(rest) // 3 + (name != "HotloopError") for _, rest, name in drawn}
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.HotloopError)
    }
    assert set(classes) <= set(depth)
    for name, value in classes.items():
        assert value.__doc__, name
        assert value.mro().index(errors.HotloopError) == depth[name], name


def test_every_error_has_an_exit_code_of_its_side():
    assert errors.ConfigError("x").exit_code == 2
    assert errors.ProblemError("x").exit_code == 2
    assert errors.InfraError("x").exit_code == 3
    assert errors.DeviceLost("x").exit_code == 3


def test_an_uninstalled_checkout_finds_the_same_plug_ins(tmp_path):
    script = ROOT.parents[1] / "scripts" / "entry_points.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    (found,) = importlib.metadata.distributions(name="hotloop", path=[str(tmp_path)])
    installed = importlib.metadata.distribution("hotloop")

    def names(distribution):
        return {(e.group, e.name, e.value) for e in distribution.entry_points}

    assert names(found) == names(installed)
    assert found.version == installed.version == hotloop.__version__


@pytest.mark.parametrize(
    "before",
    ["hotloop.optimize", "import hotloop.verify", "from hotloop.verify import LocalVerifier"],
)
def test_a_subpackage_of_the_same_name_does_not_hide_a_function(before):
    question = f"import hotloop; {before}; print(hotloop.verify.__module__)"
    answer = subprocess.check_output([sys.executable, "-c", question], text=True)
    assert answer.strip() == "hotloop.api"


def test_no_two_modules_of_the_tests_have_one_name():
    # Their folders all lie on the import path: the first to be imported would stand for both.
    found = Counter(p.stem for p in Path(__file__).parent.glob("*/*.py") if p.stem != "conftest")
    assert len(found) > 100
    assert [name for name, count in found.items() if count > 1] == []
