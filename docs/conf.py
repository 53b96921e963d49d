"""Sphinx: `make docs` builds these pages, with the README and its neighbours, and checks links."""

from __future__ import annotations

project = "hotloop"
copyright = "the hotloop authors"  # noqa: A001  Sphinx's name
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "hotloop"
suppress_warnings = ["myst.header", "toc.not_included"]
nitpicky = True
