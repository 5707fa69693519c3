"""Pictures of tables."""
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

COLORS = {"flash-mlir": "#1b6ca8", "flash-mlir, naive": "#8fb8d8", "FA2": "#e07b39", "cuDNN": "#5a9e4b",
          "efficient": "#b08bc9", "naive": "#888888", "math": "#555555", "FlexAttention": "#c0504d",
          "SDPA": "#e07b39", "torch.softmax": "#e07b39", "plain, in PyTorch": "#888888"}


def plain(value, _):
    return f"{value:g}"


def finish(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path.name


def draw_lines(axes, title, xlabel, ylabel, xs, series, log_y=False):
    """`series` maps a name to values, None where there is none."""
    for name, values in series.items():
        points = [(x, y) for x, y in zip(xs, values) if y is not None]
        if points:
            axes.plot(*zip(*points), marker="o", markersize=4, label=name, color=COLORS.get(name),
                      linewidth=2.2 if name == "flash-mlir" else 1.4)
    axes.set_xscale("log", base=2)
    axes.set_xticks(xs)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
    else:
        axes.set_ylim(0, 1.08 * max((y for values in series.values() for y in values if y), default=1))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)


def lines(path, panels, columns=None):
    """A picture of several charts; each panel is the arguments of `draw_lines`."""
    columns = columns or len(panels)
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(4.6 * columns, 3.6 * rows), squeeze=False)
    for axes, panel in zip(grid.flat, panels):
        draw_lines(axes, **panel)
    for axes in grid.flat[len(panels):]:
        axes.remove()
    return finish(figure, path)


def bars(path, title, xlabel, names, values, notes=None, color="#1b6ca8"):
    """Horizontal bars in the order given, from the top."""
    if notes and not any(notes):
        notes = None
    figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.34 * len(names)))
    places = range(len(names))
    axes.barh(places, [value or 0 for value in values], color=color)
    most = max((value or 0 for value in values), default=1)
    for place, value in zip(places, values):
        text = "none" if value is None else plain(float(f"{value:.3g}"), 0)
        axes.text((value or 0) + most * 0.01, place, text + (f"  {notes[place]}" if notes else ""), va="center", fontsize=8)
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, most * (1.45 if notes else 1.12))
    axes.set_xlabel(xlabel)
    axes.set_title(title, fontsize=10)
    axes.grid(True, axis="x", alpha=0.3)
    return finish(figure, path)


def draw_groups(axes, groups, series):
    width = 0.8 / max(len(series), 1)
    for index, (name, values) in enumerate(series.items()):
        places = [g + (index - (len(series) - 1) / 2) * width for g in range(len(groups))]
        axes.bar(places, [value or 0 for value in values], width, label=name, color=COLORS.get(name))
        for place, value in zip(places, values):
            if value is not None:
                axes.text(place, value, plain(float(f"{value:.3g}"), 0), ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
    axes.grid(True, axis="y", alpha=0.3)


def grouped_bars(path, title, ylabel, groups, series, log_y=False, groups_in_row=8):
    """`series` maps a name to a value for each group. Many groups go into several rows of one scale."""
    series = {name: values for name, values in series.items() if any(v is not None for v in values)}
    rows = max(-(-len(groups) // groups_in_row), 1)
    in_row = max(-(-len(groups) // rows), 1)
    figure, grid = pyplot.subplots(rows, 1, figsize=(max(7, 0.36 * in_row * (len(series) + 1)), 3.2 * rows + 0.6),
                                   squeeze=False, sharey=True)
    for row, axes in enumerate(grid.flat):
        part = slice(row * in_row, (row + 1) * in_row)
        draw_groups(axes, groups[part], {name: values[part] for name, values in series.items()})
        axes.set_xlim(-0.6, in_row - 0.4)
        axes.set_ylabel(ylabel)
        if log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(plain))
    grid.flat[0].set_title(title, fontsize=10)
    grid.flat[0].legend(fontsize=8)
    return finish(figure, path)


def roofline(path, title, peak, bandwidth, points):
    """`points` maps a name to (FLOP per byte, TFLOP/s) pairs; `peak` in FLOP/s and `bandwidth` in bytes per second
    may be unknown."""
    figure, axes = pyplot.subplots(figsize=(7.5, 5))
    xs = [x for pairs in points.values() for x, _ in pairs]
    low, high = min(xs) / 4, max(xs) * 4
    if peak and bandwidth:
        high = max(high, peak / bandwidth * 4)
        axes.plot([low, peak / bandwidth, high], [low * bandwidth / 1e12, peak / 1e12, peak / 1e12], color="black",
                  label=f"nominal peaks: {peak / 1e12:.0f} TFLOP/s, {bandwidth / 1e12:.2f} TB/s")
    elif bandwidth:
        axes.plot([low, high], [low * bandwidth / 1e12, high * bandwidth / 1e12], color="black",
                  label=f"bandwidth of a copy: {bandwidth / 1e9:.0f} GB/s")
    for name, pairs in points.items():
        axes.plot(*zip(*pairs), marker="o", linestyle="--", label=name, color=COLORS.get(name))
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(plain))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("arithmetic intensity in FLOP per byte of device memory")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    return finish(figure, path)


def steps(path, rows):
    """The trace of the online softmax: rows of step, x, m, correction, l."""
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(7.5, 5.5), sharex=True)
    xs = [row[0] for row in rows]
    upper.bar(xs, [row[1] for row in rows], color="#c8d8e4", label="x")
    upper.step(xs, [row[2] for row in rows], where="mid", color="#c0504d", label="m, the maximum so far")
    upper.set_ylabel("value")
    upper.legend(fontsize=8)
    lower.plot(xs, [row[4] for row in rows], marker="o", color="#1b6ca8", label="l, the sum of exp(x - m)")
    lower.bar(xs, [row[3] for row in rows], width=0.3, color="#e0b070", label="correction of l")
    for row in rows:
        lower.text(row[0], row[4] + 0.05, f"{row[4]:.3f}", ha="center", fontsize=8)
    lower.set_ylim(0, max(row[4] for row in rows) * 1.2)
    lower.set_xlabel("step")
    lower.set_ylabel("factor and sum")
    lower.legend(fontsize=8)
    for axes in (upper, lower):
        axes.grid(True, alpha=0.3)
    upper.set_title("The online softmax goes through a vector once", fontsize=10)
    return finish(figure, path)
