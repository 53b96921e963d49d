"""The kernel of an image in boxes is kept as it is; kernels of all examples' kinds pass a linter.

After a wanted change of the templates: `python tests/templates/test_attention_golden.py` writes the
kept file anew; read the difference.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import attention_variants as variants
from graph_expressions import Builder, make_spec
from linted import assert_nothing_found

from hotloop.templates.attention.family import AttentionFamily

GOLDEN = Path(__file__).parent / "golden" / "image_boxes.py.txt"


def _family(mask, **sizes) -> AttentionFamily:
    sizes = {"B": 4, "H": 16, "S": 4096, "D": 128, "dtype": "bfloat16", **sizes}
    return AttentionFamily(make_spec(mask=mask, **sizes))


def _image_boxes() -> str:
    family = _family(variants.neighbourhood_2d(width=64, height=64, radius=6))
    return family.render(family.space().starts[0]).text()


def _sources():
    g = Builder()
    dilated = ((g.q - g.kv) % 4).equals(0) & (g.apply("abs", g.q - g.kv) <= 512)
    masks = [
        dilated,
        *(variants.neighbourhood_2d(width=64, height=64, radius=6, dilation=d) for d in (1, 2)),
    ]
    for mask in masks:
        family = _family(mask)
        space = family.space()
        for point in (*space.starts, {**space.starts[0], "loads": "pointer"}):
            yield family.render(space.complete(point)).text()
    yield (
        AttentionFamily(make_spec(D=576))
        .render(AttentionFamily(make_spec(D=576)).space().starts[0])
        .text()
    )


def test_kept_image_kernel_is_unchanged():
    assert _image_boxes() == GOLDEN.read_text()


def test_linter_finds_nothing_in_boxes(tmp_path):
    sources = sorted(set(_sources()))
    assert len(sources) > 12
    assert_nothing_found(sources, tmp_path)


if __name__ == "__main__":
    GOLDEN.write_text(_image_boxes())
