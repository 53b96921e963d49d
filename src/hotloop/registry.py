"""Find a plug-in by name: an entry point of a group, or a dotted path `pkg.mod:Attr`.

Our own strategies and generators are registered in pyproject.toml like anybody else's. Only the one
that is named gets imported.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

from hotloop.errors import ConfigError, boundary

STRATEGIES = "hotloop.strategies"
GENERATORS = "hotloop.generators"


def names(group: str) -> list[str]:
    """Return the names registered in a group, sorted; imports nothing."""
    return sorted({point.name for point in _entry_points(group)})


def load(group: str, name: str) -> Any:
    """Return the object registered as `name`, or the one at the path `pkg.mod:Attr`.

    Raises:
        ConfigError: the name is unknown or registered twice, or its module cannot be imported.
    """
    if ":" in name:
        return _load_path(name)
    found = [point for point in _entry_points(group) if point.name == name]
    if not found:
        listed = ", ".join(names(group)) or "none"
        raise ConfigError(
            f"there is no {name!r} in {group}; known: {listed}; or give a path like pkg.mod:Attr"
        )
    if len(found) > 1:
        owners = " and ".join(f"{_owner(point)} ({point.value})" for point in found)
        raise ConfigError(f"{name!r} in {group} is registered twice: by {owners}; uninstall one")
    with boundary(ConfigError, f"plug-in {name!r} of {group} from {_owner(found[0])}"):
        return found[0].load()


def _entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
    # The same entry can be listed twice when a checkout shadows its installed copy.
    unique = {
        (point.name, point.value, _owner(point)): point
        for point in importlib.metadata.entry_points(group=group)
    }
    return list(unique.values())


def _owner(point: importlib.metadata.EntryPoint) -> str:
    return "an unknown distribution" if point.dist is None else point.dist.name


def _load_path(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute.isidentifier():
        raise ConfigError(f"expected a name or a path like pkg.mod:Attr, got {path!r}")
    with boundary(ConfigError, f"plug-in {path!r}: expected pkg.mod:Attr that can be imported"):
        module = importlib.import_module(module_name)
        return getattr(module, attribute)
