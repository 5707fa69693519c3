"""One head, a few, one query of each, and four batches of 32: naive beside fused, time and memory."""
import itertools

import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, faults, geometric_mean

MASKS = {"full": None, "causal": programs.CAUSAL}


def memory(report, shape, dtype):
    """Bytes beyond the inputs, the result included: ours and the naive program's."""
    result = shape[0] * shape[1] * shape[2] * shape[3] * {"f16": 2, "f32": 4}[dtype]
    naive = report.get("baseline", {}).get("peak_bytes")
    ours = report["bench"]["peak_bytes"] + result if "error" not in report else None
    return ours, naive + result if naive is not None else None


def measure(bench, shape, dtype, masks, baseline):
    """For each mask: the report, and milliseconds by the name of who took them."""
    arrays = bench.flash.arrays.qkv(shape, dtype)
    cases = {mask: Case(f"heads_{shape[1]}_{dtype}_{mask}_{shape[2]}_{shape[3]}", programs.attention(shape, dtype, MASKS[mask]),
                        ("--baseline",) if baseline else (), arrays, mask) for mask in masks}
    reports = bench.flash.run(list(cases.values()))
    tensors = bench.peers.tensors(arrays) if bench.peers.here else None
    found = {}
    for mask in masks:
        report = reports[cases[mask].name]
        times = {"flash-mlir": milliseconds(report), "flash-mlir, naive": report.get("baseline", {}).get("median_ms")}
        if tensors:
            times["naive"], report["naive_bytes"] = bench.peers.naive(tensors, mask == "causal")
            backends = ("SDPA",) if not bench.gpu else ("efficient",) if dtype == "f32" else ("FA2", "cuDNN", "efficient")
            for backend in backends:
                times[backend] = bench.peers.sdpa(backend, tensors, mask == "causal")
        found[mask] = report, times
    del tensors
    bench.peers.release()
    return found, faults(reports)


NAMES = ("flash-mlir", "flash-mlir, naive", "naive", "efficient", "FA2", "cuDNN", "SDPA")


def ratio_to_best(times):
    """How many times as long the best of PyTorch takes."""
    took, best = times["flash-mlir"], min((times[n] for n in NAMES[2:] if times.get(n)), default=None)
    return best / took if best and took else None


def single(bench):
    lengths, dtype = ((512, 1024, 2048, 4096, 8192), "f16") if bench.gpu else ((256, 512, 1024, 2048), "f32")
    result = Result(f"One head: naive, fused, PyTorch; {dtype}, D = 64",
                    "Milliseconds. The naive columns are three kernels: ours from the same program (`--baseline`), and "
                    "PyTorch's product, softmax, product. Memory is what is needed beyond the inputs, the result included.")
    rows, series, sizes = [], {}, {}
    for length in lengths:
        shape = (1, 1, length, 64)
        found, notes = measure(bench, shape, dtype, MASKS, True)
        result.notes += notes
        for mask, (report, times) in found.items():
            ours, naive = memory(report, shape, dtype)
            took = times["flash-mlir"]
            faster = times["flash-mlir, naive"] / took if took and times["flash-mlir, naive"] else None
            rows.append([length, mask, *[times.get(name) for name in NAMES], faster, ratio_to_best(times),
                         ours / 1e6 if ours else None, naive / 1e6 if naive else None,
                         naive / ours if naive and ours else None])
            for name in NAMES:
                series.setdefault(mask, {}).setdefault(name, []).append(times.get(name))
            if mask == "full":
                for name, value in (("flash-mlir", ours), ("flash-mlir, naive", naive), ("naive", report.get("naive_bytes"))):
                    sizes.setdefault(name, []).append(value / 1e6 if value else None)
    result.tables.append(Table(["N", "mask", *NAMES, "our naive / ours", "best of PyTorch / ours", "MB", "MB, naive",
                                "memory ratio"], rows))
    panels = [dict(title=f"{mask} mask", xlabel="N", ylabel="ms", xs=list(lengths), series=series[mask], log_y=True)
              for mask in MASKS]
    panels.append(dict(title="memory beyond the inputs", xlabel="N", ylabel="MB", xs=list(lengths), series=sizes, log_y=True))
    result.plots.append(plots.lines(bench.folder / "single-head.png", panels))
    return result


def few(bench):
    heads, lengths, dims, dtype = (((1, 2, 4, 8), (512, 1024, 2048), (64, 128), "f16") if bench.gpu
                                   else ((1, 4), (256, 512), (64,), "f32"))
    result = Result(f"A few heads of one batch, {dtype}",
                    "Milliseconds. Tiles are few: how many there are and how long the longest is decide which are taken, "
                    "and whether there is split-KV.")
    rows = []
    for dim, count, length in itertools.product(dims, heads, lengths):
        found, notes = measure(bench, (1, count, length, dim), dtype, MASKS, False)
        result.notes += notes
        for mask, (_, times) in found.items():
            rows.append([dim, count, length, mask, times["flash-mlir"], *[times.get(name) for name in NAMES[2:]],
                         ratio_to_best(times)])
    ratios = [row[-1] for row in rows if row[-1]]
    result.tables.append(Table(["D", "heads", "N", "mask", "flash-mlir", *NAMES[2:], "best of PyTorch / ours"], rows))
    if ratios:
        result.notes.append(f"Ratio to the best of PyTorch: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}.")
    return result


def one_query(bench):
    shapes, dtype = (((1, 32, 8, 8192, 128), (1, 32, 8, 65536, 128), (16, 32, 8, 4096, 128), (1, 64, 8, 16384, 128),
                      (8, 16, 1, 8192, 128), (16, 32, 4, 4096, 64), (4, 8, 8, 8192, 128)), "f16") if bench.gpu else (
                          ((1, 8, 2, 1024, 64),), "f32")
    result = Result(f"One query of each head, {dtype}",
                    "Microseconds, and GB/s of what is read and written once. Query heads that read the same keys are rows of "
                    "one tile. All are checked against fp64.")
    cases = {}
    for shape in shapes:
        batch, heads, kv_heads, keys, dim = shape
        text = programs.attention((batch, heads, keys, dim), dtype, kv_heads=kv_heads, queries=1)
        cases[shape] = Case(f"one_query_{'x'.join(map(str, shape))}", text, ("--check",))
    reports, rows = bench.flash.run(list(cases.values())), []
    backends = ("FA2", "cuDNN") if bench.gpu else ("SDPA",)
    for shape, case in cases.items():
        batch, heads, kv_heads, keys, dim = shape
        times = {"flash-mlir": milliseconds(reports[case.name])}
        if bench.peers.here:
            tensors = bench.peers.tensors(bench.flash.arrays.qkv((batch, heads, keys, dim), dtype, kv_heads, queries=1))
            for name in backends:
                times[name] = bench.peers.sdpa(name, tensors, False, enable_gqa=heads != kv_heads)
            del tensors
            bench.peers.release()
        took, *theirs = (times.get(name) and times[name] * 1e3 for name in ("flash-mlir", *backends))
        rows.append([*shape, took, reports[case.name].get("bench", {}).get("gbps"), *theirs, ratio_to_best(times)])
    result.tables.append(Table(["B", "heads", "key heads", "keys", "D", "flash-mlir", "GB/s", *backends,
                                "best of PyTorch / ours"], rows))
    result.notes += faults(reports)
    return result


def kernels(bench):
    length = 4096 if bench.gpu else 2048
    result = Result(f"Three kernels beside one: f32, one head, N = {length}, D = 64",
                    "Milliseconds of the same program as three kernels (`--baseline`) and fused.")
    found, notes = measure(bench, (1, 1, length, 64), "f32", MASKS, True)
    rows = []
    for mask, (report, times) in found.items():
        took, naive = times["flash-mlir"], times["flash-mlir, naive"]
        rows.append([mask, took, naive, naive / took if naive and took else None, times.get("naive"), times.get("efficient"),
                     times.get("SDPA")])
    result.tables.append(Table(["mask", "fused", "three kernels", "speed-up", "naive PyTorch", "efficient", "SDPA"], rows))
    names = ("fused", "three kernels", "naive PyTorch", "efficient", "SDPA")
    result.plots.append(plots.grouped_bars(bench.folder / "three-kernels.png", f"{bench.device}: f32, N = {length}, D = 64", "ms",
                                           [row[0] for row in rows],
                                           {name: [row[i] for row in rows] for i, name in zip((1, 2, 4, 5, 6), names)}))
    result.notes += notes
    return result


def many(bench):
    result = Result("Four batches of 32 heads, D = 64" if bench.gpu else "Four heads, D = 64",
                    "Milliseconds, full mask. Our naive program is left out where its scores would be large.")
    panels = []
    for dtype in ("f16", "f32"):
        lengths = (512, 1024, 2048, 4096, 8192) if bench.gpu else (256, 512, 1024)
        rows, series = [], {}
        for length in lengths:
            shape = (4, 32, length, 64) if bench.gpu else (1, 4, length, 64)
            found, notes = measure(bench, shape, dtype, ("full",), length <= 2048)
            result.notes += notes
            _, times = found["full"]
            took = times["flash-mlir"]
            rows.append([length, *[times.get(name) for name in NAMES],
                         *[times[n] / took if times.get(n) and took else None for n in NAMES[1:4]]])
            for name in NAMES:
                series.setdefault(name, []).append(times.get(name))
        result.tables.append(Table(["N", *NAMES, "our naive / ours", "naive / ours", "efficient / ours"], rows, dtype))
        panels.append(dict(title=dtype, xlabel="N", ylabel="ms", xs=list(lengths), series=series, log_y=True))
    result.plots.append(plots.lines(bench.folder / "many-heads.png", panels))
    return result
