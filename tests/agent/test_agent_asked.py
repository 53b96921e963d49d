"""What an agent may ask for, and what is refused in one line."""

import pytest

from hotloop.agent.asked import STRATEGIES, check_model, check_strategy, find_candidate
from hotloop.agent.workspace import Workspace
from hotloop.errors import ConfigError

PLAIN = """import triton


@triton.jit
def k():
    pass
"""
GLUON = PLAIN.replace("import triton\n", "from triton.experimental import gluon\n").replace(
    "@triton", "@gluon"
)
INLINE = "from torch.utils.cpp_extension import load_inline\nmodule = load_inline(name='k')\n"
NAMED = "openai:gpt-5@https://models.example/v1"


@pytest.mark.parametrize("model", ["agent", "builtin", NAMED])
def test_a_model_that_the_server_was_started_with_is_taken(model):
    check_model(model, (NAMED,))


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-5@http://127.0.0.1:9/v1",
        "openai:gpt-5",
        NAMED + "/",
        NAMED.upper(),
        "dir:/etc",
        "replay:x.jsonl",
        "",
    ],
)
def test_any_other_model_is_refused(model):
    with pytest.raises(ConfigError, match="expected agent or builtin or openai:gpt-5@") as refused:
        check_model(model, (NAMED,))
    assert "hotloop mcp --model SPEC" in str(refused.value)
    with pytest.raises(ConfigError, match="expected agent or builtin, got"):
        check_model(NAMED, ())


@pytest.mark.parametrize("name", STRATEGIES)
def test_our_strategies_are_taken(name):
    check_strategy(name)


@pytest.mark.parametrize("name", ["evil:Boom", "hotloop.search.tune:TuneStrategy", "Refine", "x"])
def test_any_other_strategy_is_refused(name):
    with pytest.raises(ConfigError, match="strategy: expected refine, sample"):
        check_strategy(name)


@pytest.mark.parametrize(
    ("source", "language"), [(PLAIN, "triton"), (GLUON, "gluon"), (INLINE, "cuda")]
)
def test_a_kernel_has_the_language_that_it_is_written_in_as_text_and_as_file(
    source, language, tmp_path
):
    (tmp_path / "kernel.py").write_text(source)
    workspace = Workspace(root=tmp_path, device="cpu")
    text = find_candidate(workspace, source, "")
    assert text.language == language
    assert find_candidate(workspace, "", "kernel.py") == text
