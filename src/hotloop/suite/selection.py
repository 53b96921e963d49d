"""Which problems of KernelBench a suite takes: `--levels 1,2` and `--problems 1-20,33,2/40`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from hotloop.errors import ConfigError
from hotloop.problems import KernelBenchEntry

DEFAULT_LEVELS = (1, 2)
_PART = re.compile(r"(?:(\d+)/)?(\d+)(?:-(\d+))?")


def select(
    entries: Sequence[KernelBenchEntry], levels: str | None, problems: str | None
) -> tuple[KernelBenchEntry, ...]:
    """Return the chosen problems by level and number, each once.

    Args:
        entries: the data set.
        levels: like `1,2`; None for 1 and 2, or for those that `problems` names.
        problems: numbers and ranges like `1-20,33`, in every chosen level, or in one: `2/40`,
            `1/1-20`; None for all.

    Raises:
        ConfigError: the data set has no such level or problem, or the text is malformed.
    """
    table: dict[int, dict[int, KernelBenchEntry]] = {}
    for entry in entries:
        table.setdefault(entry.level, {}).setdefault(entry.problem_id, entry)
    chosen = _levels(levels, table)
    if problems is None:
        return tuple(e for n in chosen or _default(table) for _, e in sorted(table[n].items()))
    found: set[KernelBenchEntry] = set()
    for part in _parts(problems):
        match = _PART.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"--problems: expected numbers like 1-20,33 or LEVEL/NUMBER like 2/40, got {part!r}"
            )
        if match[1] is not None and chosen is not None and int(match[1]) not in chosen:
            raise ConfigError(f"--problems {part}: --levels {levels} does not have this level")
        own = (int(match[1]),) if match[1] is not None else chosen or _default(table)
        for level in own:
            numbers = table[_known(level, table, f"--problems {part}")]
            ids = _numbers(part, match, level, numbers)
            found.update(numbers[i] for i in ids)
    return tuple(sorted(found))


def _levels(text: str | None, known: Collection[int]) -> tuple[int, ...] | None:
    if text is None:
        return None
    chosen = []
    for part in _parts(text, "--levels"):
        if not part.isdecimal():
            raise ConfigError(f"--levels: expected numbers like 1,2, got {part!r}")
        chosen.append(_known(int(part), known, "--levels"))
    return tuple(sorted(set(chosen)))


def _default(known: Collection[int]) -> tuple[int, ...]:
    return tuple(_known(level, known, "--levels (1,2 where it is left out)")
                 for level in DEFAULT_LEVELS)  # fmt: skip


def _known(level: int, known: Collection[int], what: str) -> int:
    if level not in known:
        listed = ", ".join(map(str, sorted(known)))
        raise ConfigError(f"{what}: there is no level {level}; the data set has {listed}")
    return level


def _parts(text: str, option: str = "--problems") -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(f"{option}: expected numbers, got {text!r}; leave it out for the default")
    return parts


def _numbers(
    part: str, match: re.Match[str], level: int, known: Mapping[int, KernelBenchEntry]
) -> list[int]:
    first = int(match[2])
    last = int(match[3]) if match[3] is not None else first
    for end in (first, last):
        if end not in known:
            raise ConfigError(
                f"--problems {part}: level {level} of the data set has no problem {end}; it has "
                f"{min(known)} to {max(known)}"
            )
    if last < first:
        raise ConfigError(f"--problems {part}: expected the smaller number first")
    return [number for number in known if first <= number <= last]
