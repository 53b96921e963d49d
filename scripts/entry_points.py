"""Write the package's metadata for a checkout that is not installed.

    python scripts/entry_points.py FOLDER

Plug-ins, hotloop's own among them, are found as entry points of installed distributions. With
FOLDER and `src` on PYTHONPATH an interpreter finds them without an installation: this is what
`make PYTHON=...` does.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main(folder: Path) -> None:
    """Write a dist-info folder that holds the name, the version and the entry points."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    target = folder / f"{project['name']}-{project['version']}.dist-info"
    target.mkdir(parents=True, exist_ok=True)
    (target / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
        encoding="utf-8",
    )
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), "")
    ]
    (target / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
