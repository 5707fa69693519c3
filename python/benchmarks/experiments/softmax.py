"""The softmax alone: online beside plain, and the online one step by step."""
import numpy
import peers as peers_module
import plots
import programs
from flash import Case, milliseconds
from results import Result, Table, faults

VECTOR = (1.0, 3.0, 2.0, 5.0, 4.0, 0.5, 6.0, -1.0)


def plain(tensor):
    """Four passes over memory."""
    torch = peers_module.torch
    shifted = tensor - tensor.amax(dim=1, keepdim=True)
    probabilities = torch.exp(shifted)
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def run(bench):
    elements, widths = (1 << 26, (256, 1024, 4096, 16384)) if bench.gpu else (1 << 21, (256, 1024, 4096))
    cases = {width: Case(f"softmax_{width}", programs.softmax(elements // width, width, "f32"),
                         () if bench.gpu else ("--baseline",))
             for width in widths}
    reports = bench.flash.run(list(cases.values()))
    rows, series = [], {"flash-mlir": [], "flash-mlir, naive": [], "torch.softmax": [], "plain, in PyTorch": []}
    for width in widths:
        report = reports[cases[width].name]
        times = [milliseconds(report), report.get("baseline", {}).get("median_ms"), None, None]
        if bench.peers.here:
            tensor = bench.peers.tensors([bench.flash.arrays.get(0, (elements // width, width), "float32")])[0]
            torch = peers_module.torch
            times[2] = bench.peers.time("softmax", lambda: torch.softmax(tensor, dim=1))
            times[3] = bench.peers.time("plain softmax", lambda: plain(tensor))
            del tensor
        rates = [8 * elements / t * 1e-6 if t else None for t in times]
        rows.append([width, *times, *rates])
        for name, rate in zip(series, rates):
            series[name].append(rate)
    bench.peers.release()
    names = list(series)
    result = Result("The softmax alone, f32", f"Rows of different widths, {elements} elements in all. GB/s count one read "
                    "and one write of each element; a plain softmax reads and writes several times.")
    result.tables.append(Table(["width", *[n + ", ms" for n in names], *[n + ", GB/s" for n in names]], rows))
    result.plots.append(plots.lines(bench.folder / "softmax.png", [dict(
        title=f"{bench.device}: f32, {elements} elements", xlabel="width of a row", ylabel="GB/s (one read, one write)",
        xs=list(widths), series={n: v for n, v in series.items() if any(v)})]))
    result.notes += faults(reports)
    return result


def trace(bench):
    """m, l and the correction while the online softmax goes through a vector."""
    m, l, rows = -numpy.inf, 0.0, []
    for step, x in enumerate(VECTOR, 1):
        new = max(m, x)
        correction = float(numpy.exp(m - new))
        l = l * correction + float(numpy.exp(x - new))
        rows.append([step, x, new, correction, l])
        m = new
    values = numpy.array(VECTOR)
    expected = numpy.exp(values - values.max()).sum()
    result = Result("The online softmax, step by step",
                    "m is the maximum so far, l the sum of exp(x - m). When m grows, l is multiplied by the correction "
                    "exp(m before - m); so one pass is enough.")
    result.tables.append(Table(["step", "x", "m", "correction", "l"], rows))
    result.notes.append(f"At the end l = {l:.6f}; computed after the fact, sum exp(x - max) = {expected:.6f}.")
    result.plots.append(plots.steps(bench.folder / "trace.png", rows))
    return result
