"""The probe of the clocks: what it makes of its rows. Measuring needs a GPU."""

from __future__ import annotations

import pytest

from benchmarks import timing_probe

COMMON = {"empty_ms": 0.0011, "persisting_reset_s": 1e-5}


def row(name: str, *, ratio: float = 1.0, understated_ms: float | None = None) -> dict[str, object]:
    return {
        "problem": name, "cupti_ms": 0.005, "graph_slope_ms": 0.0052, "blocked_stream_ms": None,
        "wall_ms": 0.0061, "understated_by_ms": understated_ms,
        "control": {"ratio": ratio, "holds": abs(ratio - 1) <= 0.01},
        "seconds": {"cupti": 0.02, "wall": 0.1},
    }  # fmt: skip


def test_a_row_for_people_has_every_clock_the_ratio_and_what_it_cost() -> None:
    text = timing_probe.line(row("add-1Mi", ratio=1.0021))
    for part in ("add-1Mi", "5.00", "5.20", "-", "6.10", "A/A 1.0021", "cupti 0.02, wall 0.10"):
        assert part in text


def test_the_summary_names_what_did_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing_probe, "peaks", lambda _: {"copy_gbps": 4200.0})
    rows = [row("a"), row("b", ratio=0.97), row("c", understated_ms=0.009)]
    found = timing_probe.summarise(rows, COMMON)
    assert found["understated"] == ["c"]
    assert found["control_outside"] == ["b"]
    assert found["control_worst"] == pytest.approx(0.03)
    assert found["kernels"] == 3


def test_an_unknown_kernel_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert timing_probe.main(["--kernels", "add-3"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("timing_probe: expected kernels of add-1Ki,")
    assert said.count("\n") == 1


def test_kernels_reach_from_microseconds_to_milliseconds_under_names_of_their_own() -> None:
    names = [k.name for k in timing_probe.KERNELS]
    assert len(set(names)) == len(names) >= 12
    sizes = [k.set_bytes for k in timing_probe.KERNELS]
    assert min(sizes) < 1 << 14
    assert max(sizes) > 1 << 33
