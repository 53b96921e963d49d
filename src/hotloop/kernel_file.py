"""Read a kernel file as a candidate: what `verify` is given and `--start` begins from."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.errors import ConfigError
from hotloop.prompts.programs import read_program

LANGUAGE_OF_SUFFIX = {".py": "triton", ".cu": "cuda"}
"""Python is read for what it holds."""
_KNOWN = ", ".join(LANGUAGE_OF_SUFFIX)


def read_candidate(path: Path) -> Candidate:
    """Return the candidate in one source file.

    The language follows from its suffix; Python with Gluon kernels is `gluon`, and Python that
    builds CUDA source inline is `cuda`.

    Raises:
        ConfigError: it cannot be read, or its suffix is unknown.
    """
    language = LANGUAGE_OF_SUFFIX.get(path.suffix)
    if language is None:
        raise ConfigError(f"{path}: expected a kernel file ({_KNOWN}), got {_what_it_is(path)}")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: expected UTF-8 text: {exc.reason} at {exc.start}") from exc
    if path.suffix == ".py":
        language = read_program(text).language
    entry = f"kernel{path.suffix}"
    return Candidate(language=language, sources=(SourceFile(path=entry, text=text),), entry=entry)


def _what_it_is(path: Path) -> str:
    """Return what stands where a kernel file was expected."""
    if path.is_dir():
        return "a folder"
    return repr(path.suffix) if path.exists() else "nothing: there is no such file"
