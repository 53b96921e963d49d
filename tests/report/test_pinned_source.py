import pytest

from hotloop.report.pinned_source import with_settings

SOURCE = '''"""Doc."""
from __future__ import annotations

B, S = 4, 4096  # sizes
HALF = S // 2
def f():
    S = 7
    return S
'''


def run(source):
    namespace = {}
    exec(compile(source, "problem.py", "exec"), namespace)
    return namespace


def test_derived_constants_follow_a_set_value():
    values = run(with_settings(SOURCE, {"S": 64}))
    assert (values["B"], values["S"], values["HALF"]) == (4, 64, 32)
    assert values["f"]() == 7


def test_a_name_the_file_never_binds_is_set_before_the_rest():
    pinned = with_settings(SOURCE, {"dtype": "float32"})
    assert run(pinned)["dtype"] == "float32"
    assert pinned.index("__future__") < pinned.index("dtype") < pinned.index("B, S")


def test_nothing_set_changes_nothing():
    assert with_settings(SOURCE, {}) == SOURCE


def test_comments_stay():
    assert "# sizes" in with_settings(SOURCE, {"B": 1})


def test_text_that_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        with_settings("def", {"S": 1})
