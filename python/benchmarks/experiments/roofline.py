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


def cpu_peaks():
    """What a product of NumPy's library and a copy reach here."""
    a = numpy.ones((1536, 1536), numpy.float32)
    b, large = a @ a, numpy.ones(1 << 26, numpy.uint8)

    def best(function):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return min(times)

    copy = numpy.empty_like(large)
    return 2 * 1536**3 / best(lambda: numpy.matmul(a, a, out=b)), 2 * large.size / best(lambda: numpy.copyto(copy, large))


def run(bench):
    dtype, size, heads, lengths = (("f16", 2, 16, (256, 512, 1024, 2048, 4096)) if bench.gpu
                                   else ("f32", 4, 4, (128, 256, 512, 1024)))
    rows, points, reports = [], {"flash-mlir": [], "flash-mlir, naive": []}, {}
    cases = {n: Case(f"roofline_{n}", programs.attention((4 if bench.gpu else 1, heads, n, 64), dtype), ("--baseline",))
             for n in lengths}
    reports = bench.flash.run(list(cases.values()))
    kind, peak, bandwidth = ("nominal", None, None) if bench.gpu else ("measured", *cpu_peaks())
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
            bound = max(work / peak, moved / bandwidth) * 1e3 if peak and bandwidth else None
            rows.append([length, name, work / moved, moved / 1e6, bound, took, bound and bound / took * 100,
                         work / took * 1e-9])
            points[name].append((work / moved, work / took * 1e-9))
    result = Result(f"Arithmetic intensity and the roofline, {dtype}, D = 64",
                    "Bytes and operations are counted, not read from the device: the fused program reads q, k and v and "
                    "writes the result; the naive one also writes and reads the scores and the probabilities. The "
                    f"prediction is the longer of both times at {kind} peaks.")
    result.tables.append(Table(["N", "program", "FLOP/byte", "MB moved", "predicted ms", "measured ms", "% of the prediction",
                                "TFLOP/s"], rows))
    if rows:
        result.plots.append(plots.roofline(bench.folder / "roofline.png", f"{bench.device}: {dtype}, D = 64, N = "
                                           f"{lengths[0]} to {lengths[-1]}", kind, peak, bandwidth,
                                           {name: pairs for name, pairs in points.items() if pairs}))
    result.notes += faults(reports)
    return result
