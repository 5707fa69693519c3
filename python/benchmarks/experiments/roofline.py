"""Arithmetic intensity and the roofline, of the naive and of the fused program."""
import time

import numpy
import plots
import programs
from flash import Case
from results import Result, Table, faults


def naive_bytes(shape, size):
    """What three kernels move: q, k and the scores; scores and probabilities; probabilities, v and the result."""
    batch, heads, length, dim = shape
    return batch * heads * size * (4 * length * dim + 4 * length**2)


def fused_bytes(shape, size):
    return shape[0] * shape[1] * size * 4 * shape[2] * shape[3]


def copy_bandwidth():
    """Bytes per second that a copy reads and writes here."""
    source = numpy.ones(1 << 26, numpy.uint8)
    target, times = numpy.empty_like(source), []
    for _ in range(5):
        start = time.perf_counter()
        numpy.copyto(target, source)
        times.append(time.perf_counter() - start)
    return 2 * source.size / min(times)


def run(bench):
    dtype, size, heads, lengths = (("f16", 2, 16, (256, 512, 1024, 2048, 4096)) if bench.gpu
                                   else ("f32", 4, 4, (128, 256, 512, 1024)))
    rows, points, reports = [], {"flash-mlir": [], "flash-mlir, naive": []}, {}
    cases = {n: Case(f"roofline_{n}", programs.attention((4 if bench.gpu else 1, heads, n, 64), dtype), ("--baseline",))
             for n in lengths}
    reports = bench.flash.run(list(cases.values()))
    # The peak of a CPU's products is not known.
    peak, bandwidth = None, None if bench.gpu else copy_bandwidth()
    for length, case in cases.items():
        report = reports[case.name]
        if "error" in report:
            continue
        shape = (4 if bench.gpu else 1, heads, length, 64)
        work = 4 * shape[0] * heads * length**2 * 64
        if bench.gpu:
            peak, bandwidth = report["gpu"]["nominal_flops"], report["gpu"]["nominal_bytes_per_s"]
        for name, moved, took in (("flash-mlir", fused_bytes(shape, size), report["bench"]["median_ms"]),
                                  ("flash-mlir, naive", naive_bytes(shape, size), report.get("baseline", {}).get("median_ms"))):
            if not took:
                continue
            bound = max(work / peak if peak else 0, moved / bandwidth) * 1e3 if bandwidth else None
            rows.append([length, name, work / moved, moved / 1e6, bound, took, bound and bound / took * 100,
                         work / took * 1e-9])
            points[name].append((work / moved, work / took * 1e-9))
    result = Result(f"Arithmetic intensity and the roofline, {dtype}, D = 64",
                    "Bytes and operations are counted, not read from the device: the fused program reads q, k and v and "
                    "writes the result; the naive one also writes and reads the scores and the probabilities. The "
                    "prediction is the longer of both times at nominal peaks"
                    + ("." if bench.gpu else ", here that of the bytes at the bandwidth of a copy."))
    result.tables.append(Table(["N", "program", "FLOP/byte", "MB moved", "predicted ms", "measured ms", "% of the prediction",
                                "TFLOP/s"], rows))
    if rows:
        result.plots.append(plots.roofline(bench.folder / "roofline.png", f"{bench.device}: {dtype}, D = 64, N = "
                                           f"{lengths[0]} to {lengths[-1]}", peak, bandwidth,
                                           {name: pairs for name, pairs in points.items() if pairs}))
    result.notes += faults(reports)
    return result
