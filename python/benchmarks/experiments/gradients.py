"""The gradients of the forward table's attentions, beside those of others by autograd."""
import peers as peers_module
import programs
from flash import Case
from results import FAULT, Result, Table, faults, geometric_mean

MASKS = {"full": None, "causal": programs.CAUSAL}


def time_python(bench, tensors, grad, mask):
    """The milliseconds of gradients in Python, and a fault if they are wrong."""
    call = bench.peers.backward("Python", tensors, grad, mask == "causal")
    if call is None:
        return None, None
    deviation, allowed = bench.peers.gradient_deviation(tensors, grad, mask == "causal", call())
    if not deviation <= allowed:
        return None, f"{FAULT}: WRONG: gradients in Python are off by {deviation:.1e}, and {allowed:.0e} is allowed"
    return bench.peers.time("Python", call, grad=True), None


def run(bench):
    if bench.gpu:
        tokens, hidden, dims, lengths, dtype = 16384, 2048, (64, 128, 256), (512, 2048, 4096, 16384), "bf16"
        names = ("FA2", "cuDNN", "FA4", peers_module.DETERMINISTIC)
    else:
        tokens, hidden, dims, lengths, dtype = 2048, 256, (64,), (512, 1024), "f32"
        names = ("SDPA",)
    columns = ["D", "mask", "N", "flash-mlir", *names, "in Python", "Python to static", "Python to the best",
               "Python to deterministic"]
    result = Result(f"Gradients, {dtype}, {tokens} tokens, hidden size {hidden}",
                    f"{bench.unit} of five products over unmasked pairs; the batch is {tokens} / N, the heads {hidden} / D. Programs have "
                    "static sizes and get the output and its log-sum-exp; the others and ours in Python run by autograd, after a forward "
                    "that is not timed. All of ours have the same bits in each run.")
    rows, reports = [], {}
    for dim in dims:
        for mask, text in MASKS.items():
            shapes = {n: (tokens // n, hidden // dim, n, dim) for n in lengths}
            here = bench.flash.run([Case(f"grad_{mask}_{dim}_{n}", programs.gradients(shape, dtype, text))
                                    for n, shape in shapes.items()])
            reports.update(here)
            for length, shape in shapes.items():
                ours = bench.rate(here[f"grad_{mask}_{dim}_{length}"])
                pairs = length * (length + 1) / 2 if mask == "causal" else length**2
                work = peers_module.GRADIENT_PRODUCTS * 4 * shape[0] * shape[1] * pairs * dim
                times, python = [None] * len(names), None
                if bench.peers.here:
                    tensors = [bench.peers.normal(shape, dtype) for _ in range(3)]
                    grad = bench.peers.normal(shape, dtype)
                    for index, name in enumerate(names):
                        call = bench.peers.backward(name, tensors, grad, mask == "causal")
                        times[index] = bench.peers.time(name, call, grad=True) if call else None
                        del call
                    python, fault = time_python(bench, tensors, grad, mask)
                    result.notes += [f"{fault} (D = {dim}, {mask}, N = {length})."] if fault else []
                    del tensors, grad
                    bench.peers.release()
                rates = [took and work / took * 1e-9 * bench.scale for took in (*times, python)]
                best = max((rate for rate in rates[:-1] if rate), default=None)
                deterministic = dict(zip(names, rates)).get(peers_module.DETERMINISTIC)
                python = rates[-1]
                rows.append([dim, mask, length, ours, *rates, *(python / other if python and other else None
                                                                for other in (ours, best, deterministic))])
    result.tables.append(Table(columns, rows))
    for dim in dims:
        for column in ("Python to the best", "Python to deterministic"):
            ratios = [row[columns.index(column)] for row in rows if row[0] == dim and row[columns.index(column)]]
            if ratios:
                result.notes.append(f"D = {dim}, {column}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}.")
    result.notes += [f"Not found: {each}." for each in bench.peers.missing]
    result.notes += faults(reports)
    return result
