"""SVG to PNG, where a rasteriser is installed (`pip install 'hotloop[figures]'`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Raster = Callable[[str], bytes]
SCALE = 3
"""Pixels of a PNG to one of the SVG: enough for print."""


def find_raster() -> Raster | None:
    """Return what turns an SVG's text into a PNG; None where nothing here does."""
    try:
        resvg: Any = importlib.import_module("resvg_py")
    except ImportError:
        return None
    return lambda text: bytes(resvg.svg_to_bytes(svg_string=text, zoom=SCALE))
