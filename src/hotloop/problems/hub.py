"""KernelBench from the Hugging Face hub: `hub:OWNER/NAME[@REVISION]`, through `datasets`.

The revision is resolved to a commit before anything is read, so that the same name next week is
not silently another data set. `datasets` keeps what it fetched; without a network a commit that was
fetched before can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hotloop.errors import ConfigError

PREFIX = "hub:"
_SPEC = re.compile(r"hub:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")

Rows = tuple[Mapping[str, Any], ...]


def is_hub(data: object) -> bool:
    """Whether a `--data` names a data set of the hub."""
    return str(data).startswith(PREFIX)


def pinned(data: str) -> str:
    """Return the data set with its revision as a commit: `hub:OWNER/NAME@COMMIT`.

    Raises:
        ConfigError: the text is malformed, `datasets` is missing, or the hub has no such data set
            or does not answer.
    """
    name, revision = _parts(data)
    return f"{PREFIX}{name}@{_commit(name, revision)}"


def read_hub(data: str) -> Rows:
    """Return the rows of all splits of a data set.

    Raises:
        ConfigError: as `pinned`, or it cannot be read.
    """
    name, revision = _parts(data)
    return _rows(name, _commit(name, revision))


def _parts(data: str) -> tuple[str, str | None]:
    match = _SPEC.fullmatch(data)
    if match is None:
        raise ConfigError(
            f"--data {data}: expected hub:OWNER/NAME or hub:OWNER/NAME@REVISION, such as "
            "hub:ScalingIntelligence/KernelBench"
        )
    return match["name"], match["revision"]


@lru_cache
def _commit(name: str, revision: str | None) -> str:
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    _library()
    from huggingface_hub import HfApi  # noqa: PLC0415  `datasets` brings it

    try:
        found = HfApi().dataset_info(name, revision=revision).sha
    except Exception as exc:  # noqa: BLE001  the library raises what its own libraries raise
        raise _cannot_be_read(name, revision, exc) from exc
    if not found:
        raise ConfigError(f"--data hub:{name}: the hub names no commit for {revision or 'it'}")
    return str(found)


@lru_cache
def _rows(name: str, commit: str) -> Rows:
    datasets = _library()
    if Path(name).exists():  # the library would read that instead
        raise ConfigError(
            f"--data hub:{name}: there is a folder {name} here; give it as --data {name}, or start "
            "from another folder"
        )
    datasets.disable_progress_bars()
    try:
        splits = datasets.load_dataset(name, revision=commit)
        return tuple(dict(row) for split in splits.values() for row in split)
    except Exception as exc:  # noqa: BLE001  see above
        raise _cannot_be_read(name, commit, exc) from exc


def _library() -> Any:
    try:
        import datasets  # noqa: PLC0415  an extra
    except ImportError as exc:
        raise ConfigError(
            "--data hub:...: expected the package `datasets`; pip install 'hotloop[hub]', or give "
            "a file or folder"
        ) from exc
    return datasets


def _cannot_be_read(name: str, revision: str | None, exc: Exception) -> ConfigError:
    said = " ".join(str(exc).split())[:200] or type(exc).__name__
    where = f"hub:{name}" + (f"@{revision}" if revision else "")
    return ConfigError(
        f"--data {where}: it cannot be read: {said}; see its name, the network and HF_ENDPOINT, or "
        "give a file or folder"
    )
