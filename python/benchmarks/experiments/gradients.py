"""The gradients of the forward table's attentions, beside gradients of other packages by autograd."""
import peers as peers_module
import programs
from flash import Case
from results import Result, Table, divide, faults, summarize


def run(bench):
    if bench.gpu:
        tokens, hidden, dims, lengths, dtype = 16384, 2048, (64, 128, 256), (512, 2048, 4096, 16384), "bf16"
        names = ("FA2", "cuDNN", "FA4", peers_module.DETERMINISTIC)
    else:
        tokens, hidden, dims, lengths, dtype = 2048, 256, (64,), (512, 1024), "f32"
        names = ("SDPA",)
    columns = ["D", "mask", "N", "flash-mlir", *names, "in Python", "Python to static", "Python to the best",
               "Python to deterministic"]
    rows, reports = [], {}
    for dim in dims:
        for mask, text in programs.MASKS.items():
            shapes = {n: (tokens // n, hidden // dim, n, dim) for n in lengths}
            here = bench.flash.run([Case(f"grad_{mask}_{dim}_{n}", programs.gradients(shape, dtype, text))
                                    for n, shape in shapes.items()])
            reports.update(here)
            for length, shape in shapes.items():
                times = [None] * (len(names) + 1)
                if bench.peers.here:
                    tensors = [bench.peers.normal(shape, dtype) for _ in range(4)]
                    times = [bench.peers.backward_time(name, tensors, mask == "causal") for name in names]
                    try:
                        times.append(bench.peers.checked_backward(tensors, mask == "causal"))
                    except RuntimeError as error:
                        reports[f"Python_grad_{mask}_{dim}_{length}"] = {"error": f"WRONG: {error}"}
                        times.append(None)
                    del tensors
                    bench.peers.release()
                work = programs.GRADIENT_PRODUCTS * programs.count_flops(shape, mask)
                *rates, python = (took and work / took * 1e-9 * bench.scale for took in times)
                ours = bench.rate(here[f"grad_{mask}_{dim}_{length}"])
                best = max((rate for rate in rates if rate), default=None)
                deterministic = dict(zip(names, rates)).get(peers_module.DETERMINISTIC)
                rows.append([dim, mask, length, ours, *rates, python, *(divide(python, by) for by in (ours, best, deterministic))])
    result = Result(f"Gradients, {dtype}, {tokens} tokens, hidden size {hidden}",
                    f"{bench.unit} of five products over unmasked pairs; the batch is {tokens} / N, the heads {hidden} / D. Programs have "
                    "static sizes and get the output and its log-sum-exp; the others and ours in Python run by autograd, after a forward "
                    "that is not timed. All of ours have the same bits in each run.")
    result.tables.append(Table(columns, rows))
    for dim in dims:
        for column in ("Python to the best", "Python to deterministic"):
            result.notes += summarize(f"D = {dim}, {column}", [row[columns.index(column)] for row in rows if row[0] == dim])
    result.notes += [f"Not found: {each}." for each in bench.peers.missing]
    result.notes += faults(reports)
    return result
