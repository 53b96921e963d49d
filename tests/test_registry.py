import sys

import pytest

from hotloop import registry
from hotloop.errors import ConfigError
from hotloop.search.random_search import RandomStrategy


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with entry points on the path, as pip would."""

    def add(distribution, entries, source="class Thing:\n    pass\n"):
        site = tmp_path / distribution
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(entries)
        (site / f"{distribution}_code.py").write_text(source)
        monkeypatch.syspath_prepend(str(site))

    before = set(sys.modules)
    yield add
    for name in set(sys.modules) - before:
        if name.endswith("_code"):
            del sys.modules[name]


def test_a_path_is_loaded():
    path = "hotloop.search.random_search:RandomStrategy"
    assert registry.load(registry.STRATEGIES, path) is RandomStrategy


def test_an_entry_point_is_loaded(install):
    install("alpha", "[hotloop.strategies]\nthing = alpha_code:Thing\n")
    assert registry.load(registry.STRATEGIES, "thing").__name__ == "Thing"
    assert "thing" in registry.names(registry.STRATEGIES)


def test_listing_imports_nothing(install):
    install("beta", "[hotloop.strategies]\nbroken = beta_code:Thing\n", "raise RuntimeError\n")
    assert "broken" in registry.names(registry.STRATEGIES)
    assert "beta_code" not in sys.modules


def test_an_unknown_name_lists_what_exists(install):
    install("gamma", "[hotloop.strategies]\nthing = gamma_code:Thing\n")
    with pytest.raises(ConfigError, match=r"no 'thong' in hotloop.strategies; known: .*thing"):
        registry.load(registry.STRATEGIES, "thong")


def test_a_name_of_two_distributions_names_both(install):
    install("delta", "[hotloop.strategies]\ntwin = delta_code:Thing\n")
    install("epsilon", "[hotloop.strategies]\ntwin = epsilon_code:Thing\n")
    with pytest.raises(ConfigError, match="twice") as caught:
        registry.load(registry.STRATEGIES, "twin")
    assert "delta" in str(caught.value)
    assert "epsilon" in str(caught.value)


def test_a_plugin_that_cannot_be_imported_is_named(install):
    install("zeta", "[hotloop.strategies]\nbroken = zeta_code:Thing\n", "import no_such_module\n")
    with pytest.raises(ConfigError, match="'broken' of hotloop.strategies from zeta.*no_such"):
        registry.load(registry.STRATEGIES, "broken")


@pytest.mark.parametrize("path", ["no_such_package:Thing", "hotloop.errors:NoSuchThing"])
def test_a_path_that_leads_nowhere_is_named(path):
    with pytest.raises(ConfigError, match=path):
        registry.load(registry.STRATEGIES, path)


@pytest.mark.parametrize("path", [":Thing", "hotloop.errors:", "hotloop.errors:a.b"])
def test_a_malformed_path_is_refused(path):
    with pytest.raises(ConfigError, match=r"pkg\.mod:Attr"):
        registry.load(registry.STRATEGIES, path)
