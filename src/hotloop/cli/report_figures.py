"""`hotloop report --figures DIR`: every plot and table of a report as files of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotloop.cli.output import check_above, writing
from hotloop.errors import ConfigError
from hotloop.report.export import exported
from hotloop.report.page import Page
from hotloop.report.raster import Raster, find_raster

NO_PNG = (
    "no PNG: nothing here draws it; pip install 'hotloop[figures]', or save one with the PNG "
    "button beside the plot in the report"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, by kind."""

    folder: str
    svg: int
    png: int | None
    """None where no rasteriser is installed."""
    csv: int

    @property
    def text(self) -> str:
        """In words."""
        png = "" if self.png is None else f", {self.png} PNG"
        line = f"{self.folder}: {self.svg} SVG{png}, {self.csv} CSV"
        return f"{line}\n{NO_PNG}" if self.png is None and self.svg else line


def check_folder(folder: Path) -> None:
    """Refuse a place that cannot be a folder, before anything is made.

    Raises:
        ConfigError: a file is there, or the folder above it is missing.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--figures {folder} is a file; name a folder, it is made if missing")
    check_above(folder, "--figures")


def write_figures(page: Page, folder: Path) -> Written:
    """Write all files; those of the same names are replaced, others are left.

    Raises:
        ConfigError: one cannot be written.
        InfraError: the disk is full.
    """
    raster = find_raster()
    files = exported(page)
    for file in files:
        with writing(folder / file.name, "--figures"):
            _write(folder / file.name, file.text, raster)
    plots = sum(file.name.endswith(".svg") for file in files)
    return Written(
        folder=str(folder),
        svg=plots,
        png=None if raster is None else plots,
        csv=len(files) - plots,
    )


def _write(path: Path, text: str, raster: Raster | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # newline: CSV has its own line ends.
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    if raster is not None and path.suffix == ".svg":
        path.with_suffix(".png").write_bytes(raster(text))
