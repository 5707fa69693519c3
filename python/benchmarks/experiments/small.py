"""Small problems of f32, and which tiles win."""
import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, faults

SHAPES = ((1, 1, 256, 64), (1, 1, 1024, 64), (2, 4, 256, 64), (2, 4, 1024, 64))
MASKS = {"full": None, "causal": programs.CAUSAL}


def name(shape):
    return "x".join(map(str, shape))


def run(bench):
    cases = {(shape, mask): Case(f"small_{name(shape)}_{mask}", programs.attention(shape, "f32", text), ("--check",))
             for shape in SHAPES for mask, text in MASKS.items()}
    reports = bench.flash.run(list(cases.values()))
    rows = []
    peer = "efficient" if bench.gpu else "SDPA"
    for (shape, mask), case in cases.items():
        report = reports[case.name]
        took, figures = milliseconds(report), report.get("bench", {})
        bandwidth = report.get("gpu", {}).get("nominal_bytes_per_s")
        theirs = naive = None
        if bench.peers.here:
            tensors = bench.peers.tensors(bench.flash.arrays.qkv(shape, "f32"))
            theirs = bench.peers.sdpa(peer, tensors, mask == "causal")
            naive = bench.peers.naive(tensors, mask == "causal")[0]
        rate, roofline = figures.get("gbps"), figures.get("roofline")
        rows.append([name(shape), mask, took and took * 1e3, theirs and theirs * 1e3, naive and naive * 1e3,
                     theirs / took if theirs and took else None, rate,
                     rate * 1e9 / bandwidth * 100 if rate and bandwidth else None, roofline and roofline * 100])
    result = Result("Small problems, f32", "Microseconds. GB/s count inputs and results once; the roofline is the lower of "
                    "the nominal peak of products and of bandwidth times intensity. All are checked against fp64.")
    result.tables.append(Table(["shape", "mask", "flash-mlir, us", peer + ", us", "naive PyTorch, us", "times " + peer, "GB/s",
                                "% of bandwidth", "% of roofline"], rows))
    result.plots.append(plots.grouped_bars(bench.folder / "small.png", f"{bench.device}: f32", "microseconds",
                                           [f"{row[0]}\n{row[1]}" for row in rows],
                                           {"flash-mlir": [row[2] for row in rows], peer: [row[3] for row in rows],
                                            "naive": [row[4] for row in rows]}, log_y=True))
    result.notes += faults(reports)
    return result


def tiles(bench):
    """Every tile that fits, with what it takes of the machine."""
    dtype, shape = ("f32", (2, 4, 1024, 64)) if bench.gpu else ("f32", (1, 4, 1024, 64))
    queries, keys = ((16, 32, 64, 128), (16, 32, 64)) if bench.gpu else ((16, 32, 64, 128), (32, 128, 512))
    text = programs.attention(shape, dtype)
    more = ",num_splits=1" if bench.gpu else ""
    cases = {(q, k): Case(f"tiles_{q}_{k}", text, ("--check", f"--schedule=query_tile={q},key_tile={k}{more}"))
             for q in queries for k in keys}
    reports = bench.flash.run(list(cases.values()) + [Case("tiles_proposed", text, ("--check",))])
    rows, refused = [], []
    # Tiles may be refused, but not the schedule that is proposed.
    wrong = {"tiles_proposed": reports["tiles_proposed"]}
    for (q, k), case in cases.items():
        report = reports[case.name]
        if "WRONG" in report.get("error", ""):
            wrong[case.name] = report
        elif "error" in report:
            refused.append(f"- {q} x {k}: {report['error'].splitlines()[0]}")
        if "error" in report:
            continue
        kernel = next(iter(report.get("gpu", {}).get("kernels", [])), {})
        rows.append([f"{q} x {k}", milliseconds(report) * 1e3, bench.rate(report), report["bench"]["gbps"],
                     kernel.get("registers"), kernel.get("local_bytes"),
                     kernel["shared_bytes"] / 1024 if kernel else None, kernel.get("blocks"), kernel.get("threads"),
                     kernel.get("blocks_per_multiprocessor")])
    rows.sort(key=lambda row: row[1])
    result = Result(f"Tile sizes, {dtype}, shape {name(shape)}", "Tiles of queries x keys, the fastest first, and what each "
                    "takes: registers of a thread, bytes spilled, shared memory of a block, blocks in all and on a "
                    "multiprocessor at a time.")
    result.tables.append(Table(["tile", "us", bench.unit, "GB/s", "registers", "local bytes", "shared KiB", "blocks", "threads",
                                "blocks per multiprocessor"], rows))
    if (proposed := milliseconds(reports["tiles_proposed"])) is not None:
        result.notes.append(f"The schedule that is proposed, which may be with split-KV: {proposed * 1e3:.1f} us.")
    result.notes += faults(wrong)
    if refused:
        result.notes += ["Refused:", *refused]
    result.plots.append(plots.bars(bench.folder / "tiles.png", f"{bench.device}: {dtype}, {name(shape)}", "microseconds",
                                   [row[0] for row in rows], [row[1] for row in rows],
                                   [f"{row[4]} registers, {row[9]} blocks/SM" if row[4] else "" for row in rows]))
    return result
