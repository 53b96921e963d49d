import ast

from hotloop.worker.overrides import override_constants

SOURCE = """
N = 4
shape = (N * 8,)
kernel_size, stride = (3, 7), 2
name = "(plain)"
dtype = torch.float32
sizes = [3, N]
"""


def run(settings):
    tree = ast.parse(SOURCE.replace("torch.float32", "0"))
    override_constants(tree, settings)
    namespace = {}
    exec(compile(tree, "problem.py", "exec"), namespace)
    return namespace


def test_text_in_parentheses_replaces_a_tuple():
    namespace = run({"shape": "(64,)", "kernel_size": "(5, 9)"})
    assert namespace["shape"] == (64,)
    assert namespace["kernel_size"] == (5, 9)
    assert namespace["stride"] == 2
    assert namespace["name"] == "(plain)"


def test_a_list_stays_one_and_text_stays_text():
    for setting in ("[5, -9.5]", "(5, -9.5)"):
        assert run({"sizes": setting})["sizes"] == [5, -9.5]
    assert run({"kernel_size": "[5, 9]"})["kernel_size"] == (5, 9)
    assert run({"name": "[other]"})["name"] == "[other]"


def test_what_is_derived_still_follows():
    assert run({"N": 2})["shape"] == (16,)
