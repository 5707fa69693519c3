"""The forward table: 16k tokens, hidden size 2048, three head dimensions, full and causal."""
import plots
import programs
from flash import Case
from results import Result, Table, divide, faults, summarize


def run(bench):
    if bench.gpu:
        tokens, hidden, dims, lengths, dtype = 16384, 2048, (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384), "f16"
        backends, others = ("FA2", "cuDNN"), ("FA3", "FA4")
    else:
        tokens, hidden, dims, lengths, dtype = 2048, 256, (64, 128), (512, 1024, 2048), "f32"
        backends, others = ("SDPA",), ()
    peers = backends + others
    columns = ["D", "mask", "N", "flash-mlir", *peers, "ratio to the best", "in Python", "Python to static",
               "Python to the best", "deviation"]
    rows, panels, reports = [], [], {}
    for dim in dims:
        shapes = {n: (tokens // n, hidden // dim, n, dim) for n in lengths}
        arrays = {n: bench.flash.arrays.qkv(shape, dtype) for n, shape in shapes.items()}
        here = bench.flash.run([Case(f"{mask}_{dim}_{n}", programs.attention(shape, dtype, text), (), arrays[n], mask)
                                for n, shape in shapes.items() for mask, text in programs.MASKS.items()])
        reports.update(here)
        found = {}
        for length, shape in shapes.items():
            tensors = bench.peers.tensors(arrays[length]) if bench.peers.here else None
            for mask in programs.MASKS:
                report = here[f"{mask}_{dim}_{length}"]
                work = programs.count_flops(shape, mask)
                times = [bench.peers.sdpa(peer, tensors, mask == "causal") for peer in backends]
                for name in (*others, "Python"):
                    try:
                        times.append(bench.peers.checked(name, tensors, arrays[length], mask))
                    except RuntimeError as error:
                        reports[f"{name}_{mask}_{dim}_{length}"] = {"error": f"WRONG: {error}"}
                        times.append(None)
                rates = [took and work / took * 1e-9 * bench.scale for took in times]
                found[mask, length] = [bench.rate(report), *rates], report.get("deviation")
            del tensors
            bench.peers.release()
        for mask in programs.MASKS:
            for length in lengths:
                values, deviation = found[mask, length]
                ours, python = values[0], values[-1]
                best = max((v for v in values[1:-1] if v), default=None)
                rows.append([dim, mask, length, *values[:-1], divide(ours, best), python, divide(python, ours),
                             divide(python, best), deviation])
            panels.append(dict(title=f"D = {dim}, {mask}", xlabel="N", ylabel=bench.unit, xs=list(lengths),
                               series={name: [found[mask, n][0][i] for n in lengths]
                                       for i, name in enumerate(("flash-mlir", *peers, "in Python"))}))
    result = Result(f"Forward, {dtype}, {tokens} tokens, hidden size {hidden}",
                    f"{bench.unit} of the products over unmasked pairs; the batch is {tokens} / N, the heads {hidden} / D. "
                    "The deviation from attention in double precision is that of rows taken at random. "
                    "Programs have static sizes; in Python, `flash_mlir.attention` is called with tensors of these.")
    result.tables.append(Table(columns, rows))
    result.plots.append(plots.lines(bench.folder / "forward.png", panels, columns=2))
    for column, what in (("ratio to the best", "Ratio to the best peer"), ("Python to static", "Python to static"),
                         ("Python to the best", "Python to the best peer")):
        result.notes += summarize(what, [row[columns.index(column)] for row in rows])
    result.notes += [f"Not found: {each}." for each in bench.peers.missing]
    result.notes += faults(reports)
    return result
