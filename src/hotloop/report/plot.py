"""A picture with its words: what every plot is, whoever draws it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from hotloop.report import svg


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend."""

    css: str
    label: str
    is_mark: bool = False
    """A mark instead of a line."""

    @property
    def symbol(self) -> Markup:
        """What stands before the label, 24 x 12."""
        if not self.is_mark:
            return svg.element("path", class_=f"line {self.css}", d="M0 6H24")
        if self.css == "failed":
            return svg.element(
                "g", svg.element("path", d="M9 3l6 6m0-6l-6 6"), class_="mark failed"
            )
        if self.css.startswith("o"):
            return svg.element("rect", class_=f"bar {self.css}", x=6, y=1, width=12, height=10)
        return svg.element("g", svg.element("circle", cx=12, cy=6, r=4), class_=f"mark {self.css}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture with its words."""

    title: str
    picture: Markup | None
    """None where nothing was measured: the note says why."""
    note: str = ""
    keys: tuple[Key, ...] = ()
    is_wide: bool = False
