"""Put together what a verdict says of a candidate's time."""

from __future__ import annotations

from hotloop.core.units import tflops
from hotloop.core.verdict import Performance
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.final import FinalTiming
from hotloop.worker.performance import Timing, describe_share, speedup_with_prepare
from hotloop.worker.profile_ncu import Counters
from hotloop.worker.session import Session


def describe_performance(
    session: Session,
    timing: Timing,
    final: FinalTiming | None,
    evaluation: Evaluation,
    counters: Counters,
) -> Performance:
    """Return the record: the final tier's figures where it ran, else the fast tier's.

    Args:
        session: names the problem's work and its baselines.
        timing: of the fast tier.
        final: of the interleaved session.
        evaluation: knows how long `prepare()` took.
        counters: what a profiler found.
    """
    info = session.info
    measured = final.candidate if final else timing
    baselines = final.baselines_ms if final else dict(info.baselines_ms)
    latency_ms = measured.median_ms
    useful = session.reference.useful_flops or info.flops
    moved = info.useful_bytes or info.io_bytes
    ahead_ms = {n: ms for n, ms in session.reference.prepare_ms.items() if n in baselines}
    prepare_ms = evaluation.prepare_ms[-1] if evaluation.prepare_ms else None
    compared = {} if measured.doubts else baselines  # no ratio where the timing is not believed
    return Performance(
        latency_ms=latency_ms,
        spread_ms=measured.spread_ms,
        samples=len(measured.samples),
        timer=measured.timer,
        l2="cold" if measured.timer != "wall" else "warm",
        wall_check_ms=timing.wall_check_ms,
        prepare_ms=prepare_ms,
        peak_memory_bytes=timing.peak_memory_bytes,
        baselines=baselines,
        speedup={name: ms / latency_ms for name, ms in compared.items()},
        speedup_ci=final.speedup_ci if final else {},
        baseline_prepare_ms=ahead_ms,
        speedup_with_prepare=speedup_with_prepare(
            latency_ms, prepare_ms or 0.0, compared, ahead_ms
        ),
        host_path_reason=final.replay_refused if final else None,
        roofline_frac=describe_share(useful, moved, latency_ms, info.peaks),
        tflops=tflops(info.flops, latency_ms) if info.flops else None,
        counters=counters.values,
        counters_kernel=counters.kernel,
        counters_refused=counters.refused,
        timing_checks=measured.described_checks(),
    )
