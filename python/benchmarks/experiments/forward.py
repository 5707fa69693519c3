"""The forward table: 16k tokens, hidden size 2048, three head dimensions, full and causal."""
import plots
import programs
from flash import Case
from results import Result, Table, faults, geometric_mean

MASKS = {"full": None, "causal": programs.CAUSAL}


def run(bench):
    if bench.gpu:
        tokens, hidden, dims, lengths, dtype = 16384, 2048, (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384), "f16"
        peers = ("FA2", "cuDNN")
    else:
        tokens, hidden, dims, lengths, dtype = 2048, 256, (64, 128), (512, 1024, 2048), "f32"
        peers = ("SDPA",)
    columns = ["D", "mask", "N", "flash-mlir", *peers, "ratio to the best", "deviation"]
    rows, panels, reports = [], [], {}
    for dim in dims:
        shapes = {n: (tokens // n, hidden // dim, n, dim) for n in lengths}
        arrays = {n: bench.flash.arrays.qkv(shape, dtype) for n, shape in shapes.items()}
        here = bench.flash.run([Case(f"{mask}_{dim}_{n}", programs.attention(shape, dtype, text), (), arrays[n], mask)
                                for n, shape in shapes.items() for mask, text in MASKS.items()])
        reports.update(here)
        found = {}
        for length, shape in shapes.items():
            tensors = bench.peers.tensors(arrays[length]) if bench.peers.here else None
            for mask in MASKS:
                report = here[f"{mask}_{dim}_{length}"]
                pairs = length * (length + 1) / 2 if mask == "causal" else length**2
                work = 4 * shape[0] * shape[1] * pairs * dim
                values = [bench.rate(report)]
                for peer in peers:
                    took = bench.peers.sdpa(peer, tensors, mask == "causal")
                    values.append(took and work / took * 1e-9 * bench.scale)
                found[mask, length] = values, report.get("deviation")
            del tensors
            bench.peers.release()
        for mask in MASKS:
            for length in lengths:
                values, deviation = found[mask, length]
                best = max((v for v in values[1:] if v), default=None)
                rows.append([dim, mask, length, *values, values[0] / best if best and values[0] else None, deviation])
            panels.append(dict(title=f"D = {dim}, {mask}", xlabel="N", ylabel=bench.unit, xs=list(lengths),
                               series={name: [found[mask, n][0][i] for n in lengths]
                                       for i, name in enumerate(("flash-mlir", *peers))}))
    ratios = [row[-2] for row in rows if row[-2]]
    result = Result(f"Forward, {dtype}, {tokens} tokens, hidden size {hidden}",
                    f"{bench.unit} of the products over unmasked pairs; the batch is {tokens} / N, the heads {hidden} / D. "
                    "The deviation from attention in double precision is that of rows taken at random.")
    result.tables.append(Table(columns, rows))
    result.plots.append(plots.lines(bench.folder / "forward.png", panels, columns=2))
    if ratios:
        result.notes.append(f"Ratio to the best peer: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}.")
    result.notes += faults(reports)
    return result
