"""What the judge can import as well, so that its source need not be written down.

The judge is the same interpreter in another folder and gets PYTHONPATH. What is installed is
imported. The user's own code under PYTHONPATH can be imported too, but its functions and classes
are copied all the same: the text of a problem says what is computed, and a file may change.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

_ALWAYS = "torch"
"""The judge has torch wherever it lies, or it could not judge."""


def is_installed(module: ModuleType) -> bool:
    """Whether the module is of Python itself or of a package that was installed."""
    return _top_name(module) == _ALWAYS or _lies_in(module, _installed_roots())


def is_importable(module: ModuleType) -> bool:
    """Whether the judge can import the module: it is installed, or PYTHONPATH leads to it."""
    return is_installed(module) or (
        module.__name__ != "__main__" and _lies_in(module, _python_path())
    )


def _top_name(module: ModuleType) -> str:
    return module.__name__.partition(".")[0]


def _lies_in(module: ModuleType, roots: Iterable[Path]) -> bool:
    if module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", ()))  # several: a namespace
    if not places:
        return _top_name(module) in sys.stdlib_module_names
    found = list(roots)
    return any(Path(p).resolve().is_relative_to(root) for p in places for root in found)


def _installed_roots() -> tuple[Path, ...]:
    # With `pip install --target` packages lie under PYTHONPATH, each beside its metadata.
    targets = [p for p in _python_path() if any(p.glob("*.dist-info"))]
    return (*_site_roots(), *targets)


@cache
def _site_roots() -> tuple[Path, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    places = [sysconfig.get_path(kind) for kind in kinds] + site.getsitepackages()
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return tuple(Path(place).resolve() for place in places)


def _python_path() -> list[Path]:
    """Return the folders of PYTHONPATH; a relative one means another folder to the judge."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [Path(entry).resolve() for entry in entries if os.path.isabs(entry)]
