"""Every way into the cage that this machine offers, as one fixture."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from caging import UNPRIVILEGED, Cage, open_folder, spec_for, system_spec

from hotloop.sandbox import Tier, probe

_MACHINE = probe()


@pytest.fixture
def work_dir() -> Iterator[str]:
    """A folder that any user may own, in a parent that any user may pass."""
    base = open_folder()
    path = os.path.join(base, "work")
    os.mkdir(path)
    yield path
    shutil.rmtree(base)


@pytest.fixture
def hidden() -> Iterator[str]:
    """A folder outside every cage, open to all users as far as file modes go."""
    base = open_folder()
    with open(os.path.join(base, "secret"), "w") as file:
        file.write("planted")
    os.chmod(os.path.join(base, "secret"), 0o666)
    os.mkdir(os.path.join(base, "open"))
    os.chmod(os.path.join(base, "open"), 0o777)
    yield base
    shutil.rmtree(base)


def require(tier: Tier) -> None:
    """Skip where the machine cannot have a tier, and say why."""
    if _MACHINE.best_tier < tier:
        pytest.skip(f"{tier} cannot be had here: {'; '.join(_MACHINE.missing)}")


def require_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it changes to another user")


@pytest.fixture
def needs_t1() -> None:
    require(Tier.EMBEDDED)


@pytest.fixture
def needs_t2() -> None:
    require(Tier.NAMESPACES)


@pytest.fixture
def needs_root() -> None:
    require_root()


_WAYS_IN = [
    "T1 as I am",
    "T1 drops root",
    "T2 as plain user",
    pytest.param("T1 as plain user", marks=pytest.mark.slow),
    pytest.param("T2 as I am", marks=pytest.mark.slow),
]


@pytest.fixture(params=_WAYS_IN)
def cage(request: pytest.FixtureRequest, work_dir: str) -> Cage:
    """One policy: at T1 and T2, by root that stays, root that drops, and a plain user."""
    name = request.param
    tier = Tier(name[:2])
    require(tier)
    if name.endswith("drops root"):
        require_root()
        return Cage(system_spec(tier, work_dir, drop_uid=UNPRIVILEGED))
    if name.endswith("as plain user") and os.geteuid() == 0:
        os.chown(work_dir, UNPRIVILEGED, UNPRIVILEGED)
        return Cage(system_spec(tier, work_dir), start_uid=UNPRIVILEGED)
    return Cage(spec_for(tier, work_dir))
