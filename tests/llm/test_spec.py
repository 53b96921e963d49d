from pathlib import Path

import pytest
from asking import PLANTED_KEY, ask

from hotloop.core.model import Usage
from hotloop.errors import ConfigError
from hotloop.llm import ModelOptions, open_model, parse_spec
from hotloop.llm.presets import find_preset, presets
from hotloop.llm.pricing import Price, cost_usd
from hotloop.llm.secrets import Secret
from hotloop.llm.spec import SpecKind
from hotloop.testing.model_server import ModelServer, Turn

NAMES = ("deepseek", "nim", "ollama", "openai", "openrouter", "sglang", "vllm")
PRICE = Price(prompt=2.0, cached=0.5, completion=10.0, as_of="2026-01-01")


def options(**environ):
    return ModelOptions(environ=environ)


@pytest.mark.parametrize(
    ("text", "preset", "name", "url"),
    [
        ("deepseek:deepseek-v4-pro", "deepseek", "deepseek-v4-pro", None),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b", None),
        ("vllm:org/m@http://h:8000/v1", "vllm", "org/m", "http://h:8000/v1"),
        ("vllm:m@rev@https://h/v1", "vllm", "m@rev", "https://h/v1"),
    ],
)
def test_a_spec_is_split_at_the_first_colon_and_the_last_at(text, preset, name, url):
    spec = parse_spec(text)
    assert (spec.kind, spec.preset, spec.name, spec.url) == (
        SpecKind.ENDPOINT,
        preset,
        name,
        url,
    )


def test_the_other_kinds_are_parsed():
    assert parse_spec("builtin").kind is SpecKind.BUILTIN
    assert parse_spec("dir:a:b@c").path == Path("a:b@c")
    assert parse_spec("replay:x.jsonl").kind is SpecKind.REPLAY


@pytest.mark.parametrize("text", ["", "gpt-5", "dir:", "replay:", "openai:", ":x", "builtin:x"])
def test_another_form_is_refused(text):
    with pytest.raises(ConfigError):
        parse_spec(text)


def test_an_unknown_preset_lists_what_exists():
    with pytest.raises(ConfigError, match=", ".join(NAMES)):
        parse_spec("opnai:gpt-5")


@pytest.mark.parametrize(
    "tail",
    [
        "rev2",
        "ftp://h/v1",
        "http://",
        f"http://me:{PLANTED_KEY}@h/v1",
        f"http://h/v1?key={PLANTED_KEY}",
        "http://[x/v1",
        "http://h:99999/v1",
    ],
)
def test_a_bad_url_is_refused_without_showing_it(tail):
    with pytest.raises(ConfigError, match="URL") as caught:
        parse_spec(f"vllm:m@{tail}")
    assert PLANTED_KEY not in str(caught.value)


@pytest.mark.parametrize("environ", [{}, {"DEEPSEEK_API_KEY": " "}])
def test_a_missing_key_names_its_variable(environ):
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY"):
        open_model(parse_spec("deepseek:deepseek-v4-pro"), options(**environ))


@pytest.mark.parametrize("key", [f"{PLANTED_KEY}\nX-Evil: 1", f"{PLANTED_KEY} x", "sk-\u00fc-x"])
def test_a_malformed_key_is_refused_without_showing_it(key):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        open_model(parse_spec("openai:gpt-5"), options(OPENAI_API_KEY=key))
    assert key not in str(caught.value)
    assert PLANTED_KEY not in str(caught.value)


def test_a_key_reaches_the_endpoint_and_no_repr():
    pytest.importorskip("openai")
    with ModelServer(Turn(text="ok")) as server:
        given = options(DEEPSEEK_API_KEY=f" {PLANTED_KEY}\n")
        model = open_model(parse_spec(f"deepseek:m@{server.url}"), given)
        assert ask(model).text == "ok"
        model.close()
    assert server.asked[0].headers["authorization"] == f"Bearer {PLANTED_KEY}"
    assert PLANTED_KEY not in repr((given, model, vars(model)))


def test_a_server_of_ones_own_needs_no_key():
    pytest.importorskip("openai")
    with ModelServer(Turn(text="ok")) as server:
        model = open_model(parse_spec(f"vllm:m@{server.url}"), options())
        assert ask(model).text == "ok"
        model.close()


def test_builtin_is_no_model():
    with pytest.raises(ValueError, match="builtin"):
        open_model(parse_spec("builtin"), options())


def test_every_preset_is_whole():
    assert tuple(sorted(presets())) == NAMES
    for preset in presets().values():
        assert preset.url.startswith(("https://", "http://127.0.0.1:"))
        assert preset.key.endswith("_API_KEY")
        for price in preset.prices.values():
            assert 0 < price.cached <= price.prompt < price.completion
            assert len(price.as_of) == len("2026-01-01")
    assert find_preset("openrouter").states_cost


@pytest.mark.parametrize(
    ("usage", "price", "expected"),
    [
        (Usage(prompt=1_000_000, cached=400_000, completion=100_000), PRICE, 2.4),
        (Usage(prompt=1_000_000, completion=100_000), PRICE, 3.0),
        (Usage(prompt=1_000_000), PRICE, None),
        (Usage(completion=5), PRICE, None),
        (Usage(), PRICE, None),
        (Usage(prompt=10, completion=10), None, None),
    ],
)
def test_an_unknown_cost_is_none_and_never_zero(usage, price, expected):
    found = cost_usd(usage, price)
    assert found is None if expected is None else found == pytest.approx(expected)


def test_unknown_counts_stay_unknown_in_a_sum():
    total = Usage(prompt=1, completion=2).plus(Usage(prompt=3, cached=1))
    assert total == Usage(prompt=4)


def test_a_secret_hides_and_redacts():
    secret = Secret(PLANTED_KEY)
    assert PLANTED_KEY not in f"{secret} {secret!r}"
    assert secret.redact_json({"a": [f"x{PLANTED_KEY}y", 1]}) == {"a": ["x[key]y", 1]}
    assert Secret("").redact("text") == "text"
    with pytest.raises(TypeError):
        __import__("pickle").dumps(secret)
