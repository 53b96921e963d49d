import ast

import pytest

from hotloop.errors import ConfigError
from hotloop.problems import parse_settings
from hotloop.problems.constants import fold_constants
from hotloop.problems.settings import check_settings


def test_values_become_numbers_where_they_are():
    assert parse_settings("S=16384, D=64,slope=0.5,dtype=float16,causal=True") == {
        "S": 16384,
        "D": 64,
        "slope": 0.5,
        "dtype": "float16",
        "causal": 1,
    }
    assert parse_settings("") == {}


@pytest.mark.parametrize("text", ["S", "S=", "=3", "1S=3", "S=1,S=2", "a b=1"])
def test_malformed_settings_are_refused(text):
    with pytest.raises(ConfigError, match="--set: "):
        parse_settings(text)


def test_unknown_names_are_refused_and_known_ones_named():
    tree = ast.parse("batch_size = 4\nrows, columns = 2, 3\n")
    check_settings({"batch_size": 8, "columns": 5}, tree)
    with pytest.raises(ConfigError, match=r"did you mean batch_size\?.*known: batch_size, columns"):
        check_settings({"batchsize": 8}, tree)
    with pytest.raises(ConfigError, match="no constant S"):
        check_settings({"S": 8}, tree)
    check_settings({"S": 8}, tree, always=("S",))


def test_text_and_numbers_are_not_exchanged():
    tree = ast.parse("N = 4\ndtype = 'float32'\n")
    with pytest.raises(ConfigError, match="N is a number in the file"):
        check_settings({"N": "many"}, tree)
    with pytest.raises(ConfigError, match="dtype is text in the file"):
        check_settings({"dtype": 32}, tree)
    check_settings({"N": 5, "dtype": "float16"}, tree)


def test_tuples_are_set_whole():
    tree = ast.parse("N = 4\nkernel_size = (3, 7)\nshape = (N * 8,)\n")
    settings = parse_settings("kernel_size=(5, 9),N=2,shape=(64,)")
    assert settings == {"kernel_size": "(5, 9)", "N": 2, "shape": "(64,)"}
    check_settings(settings, tree)
    for text in ("kernel_size=(5,)", "kernel_size=(5 9)", "kernel_size=(a, b)", "kernel_size=big"):
        with pytest.raises(ConfigError, match=r"kernel_size is a tuple of 2 in the file \(\(3, 7"):
            check_settings(parse_settings(text), tree)


def test_lists_are_set_whole():
    tree = ast.parse("N = 4\nsizes = [3, N]\n")
    settings = parse_settings("sizes=[5, 9],N=2")
    assert settings == {"sizes": "[5, 9]", "N": 2}
    check_settings(settings, tree)
    check_settings(parse_settings("sizes=(5,9)"), tree)
    for text in ("sizes=[5]", "sizes=[5 9]", "sizes=[a, b]", "sizes=big"):
        with pytest.raises(ConfigError, match=r"list of 2 in the file \(\[3, N.*with its brackets"):
            check_settings(parse_settings(text), tree)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("N = 2048 * 2\nM = N // 3", {"N": 4096, "M": 1365}),
        ("W = min(512, S // 2)", {}),
        ("S = 100\nW = min(512, S // 2)", {"S": 100, "W": 50}),
        ("a, b = 1, -2.5", {"a": 1, "b": -2.5}),
        ("N = 4\nN = f()", {}),
        ("N = 1 // 0\nM = 2 ** 100000", {}),
        ("dtype = torch.bfloat16\nx = torch.pi", {"dtype": "bfloat16"}),
        ("N: int = 3", {"N": 3}),
    ],
)
def test_constants_are_read_without_running(source, values):
    assert fold_constants(ast.parse(source), {}) == values


def test_an_override_reaches_derived_constants():
    tree = ast.parse("N = 8\nM = N * 2\n")
    assert fold_constants(tree, {"N": 3}) == {"N": 3, "M": 6}


@pytest.mark.parametrize("value", ["(x)", "(1)", "[3", "[" * 4000])
def test_brackets_without_a_tuple_are_refused_where_the_file_computes_its_own(value):
    tree = ast.parse("M = 4\nL = M\nE = -1\nT = ()\n")
    with pytest.raises(ConfigError, match="T is a tuple of 0"):
        check_settings({"T": value}, tree)
    for name in ("L", "E"):
        with pytest.raises(ConfigError, match=f"{name} should be a number"):
            check_settings({name: value}, tree)
        check_settings({name: "(3, 7)"}, tree)
