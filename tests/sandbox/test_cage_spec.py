"""The order for a cage: refused early when it could not be safe, equal after a trip as JSON."""

from __future__ import annotations

import json

import pytest

from hotloop.errors import ConfigError
from hotloop.sandbox import CageSpec, Limits, Tier, default_paths


def test_json_round_trip() -> None:
    paths = default_paths(3, ["/opt/headers"])
    spec = CageSpec("T2", "/srv/x", *paths, 3, 60001, Limits(cpu_s=5))
    again = CageSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert again.tier is Tier.NAMESPACES


def test_unknown_json_is_refused() -> None:
    with pytest.raises(ValueError, match="surprise"):
        CageSpec.from_json({**CageSpec("T1", "/w").to_json(), "surprise": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"tier": "T9"},
        {"work_dir": "relative"},
        {"read_paths": ("relative",)},
        {"read_paths": ("/a\0b",)},
        {"drop_uid": 0},
        {"work_dir": "/"},
        {"work_dir": "/etc/../etc"},
        {"write_paths": ("/proc",)},
        {"write_paths": ("/proc/self",)},
        {"write_paths": ("/proc/sys/kernel",)},
        {"write_paths": ("/sys/kernel",)},
        {"write_paths": ("/dev",)},
        {"write_paths": ("/dev/nvidia0",)},
        {"read_paths": ("/dev/nvidiactl",)},
        {"gpu": 1, "write_paths": ("/dev/nvidia0",)},
    ],
)
def test_unsafe_orders_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="expected|may never|needs a GPU|is not GPU"):
        CageSpec(**{"tier": "T1", "work_dir": "/w", **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["data_bytes", "processes", "file_bytes", "open_files", "cpu_s"])
def test_limits_must_be_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: 0})


def test_default_paths_name_one_gpu_only() -> None:
    devices = [p for p in default_paths(1).write if p.startswith("/dev/nvidia")]
    assert "/dev/nvidia1" in devices
    assert "/dev/nvidia0" not in devices
    assert not any(p.startswith("/dev/nvidia") for paths in default_paths(None) for p in paths)


def test_default_paths_keep_homes_closed() -> None:
    paths = default_paths(None)
    assert not {"/", "/home", "/root", "/tmp", "/var", "/dev", "/dev/shm"} & {
        *paths.read,
        *paths.write,
    }
    assert "/proc" not in paths.write
