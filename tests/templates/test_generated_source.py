"""Generated files are for people: one is kept as it is, all of them pass a linter.

After a wanted change of the templates: `python tests/templates/test_generated_source.py` writes the
kept file anew; read the difference.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import attention_variants as variants
from graph_expressions import Builder, make_spec
from graph_models import ModelBuilder
from linted import assert_nothing_found

from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.matmul.family import MatmulFamily
from hotloop.templates.rowwise.family import RowwiseFamily

GOLDEN = Path(__file__).parent / "golden" / "window_alibi.py.txt"


def _window_alibi() -> str:
    score, _ = variants.alibi(S=4096, H=16)
    g = Builder()
    mask = (g.q >= g.kv) & (g.q - g.kv < 512)
    spec = make_spec(score=score, mask=mask, B=4, H=16, S=4096, D=128, dtype="bfloat16")
    family = AttentionFamily(spec)
    return family.render(family.space().starts[1]).text()


def _attention_sources():
    for name in ("full", "causal", "relative", "alibi", "document", "softcap"):
        build = getattr(variants, name)
        score, mask = build() if name == "full" else build(S=1000, H=16)
        family = AttentionFamily(make_spec(score=score, mask=mask, H=16, S=1000, D=80))
        space = family.space()
        for dimension in space.dimensions:
            if dimension.name in ("loads", "tiles", "tanh", "running_max", "maxnreg"):
                for choice in dimension.choices:
                    yield family.render(space.complete({dimension.name: choice})).text()


def _model_sources():
    g = ModelBuilder()
    x, w, b = g.input(0, 100, 5000), g.parameter("fc.weight", 60, 5000), g.parameter("fc.bias", 60)
    linear = g.apply("mish", g.apply("linear", x, w, b, shape=(100, 60)))
    families = [MatmulFamily(g.graph(linear))]
    for shape, dim in (((100, 5000), 1), ((7, 50, 300), 1)):
        g = ModelBuilder()
        families.append(RowwiseFamily(g.graph(g.apply("softmax", g.input(0, *shape), dim=dim))))
    g = ModelBuilder()
    families.append(RowwiseFamily(g.graph(g.apply("tanh", g.input(0, 33, 7)))))
    for family in families:
        space = family.space()
        for dimension in space.dimensions:
            for choice in dimension.choices:
                if not dimension.when:
                    yield family.render(space.complete({dimension.name: choice})).text()


def test_kept_source_is_unchanged():
    assert _window_alibi() == GOLDEN.read_text()


def test_linter_finds_nothing(tmp_path):
    sources = sorted({*_attention_sources(), *_model_sources()})
    assert len(sources) > 30
    assert_nothing_found(sources, tmp_path)


if __name__ == "__main__":
    GOLDEN.write_text(_window_alibi())
