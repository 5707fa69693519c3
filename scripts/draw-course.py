#!/usr/bin/env python3
"""Draws the figures of docs/course, with the package and with flash-run and flash-opt in the PATH: BUILD/python/bin/python FILE [FOLDER].

Each is made from what the tools print, write or compute; the programs are docs/course/*.mlir.
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import flash_mlir as flash

ROOT = pathlib.Path(__file__).resolve().parents[1]
COURSE = ROOT / "docs" / "course"
NAMES = "queries", "keys", "values"
ROLES = "specialize_warps|lazy_rescale|persistent|bulk_store"


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def make_svg(width, height, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
                      'font-size="11">', *parts, "</svg>"]) + "\n"


def write(x, y, text, more=""):
    text = str(text).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}"{more}>{text}</text>'


def stack(*titled):
    """Pictures below each other, each with its title."""
    parts, y, width = [], 0, 0
    for title, svg in titled:
        size = [int(number) for number in re.search(r'width="(\d+)" height="(\d+)"', svg).groups()]
        parts += [write(1, y + 12, title, ' font-weight="bold"'), svg.replace("<svg ", f'<svg y="{y + 18}" ', 1).rstrip()]
        y, width = y + size[1] + 30, max(width, size[0])
    return make_svg(width, y, parts)


def record(program, target, schedule, folder, launch=0, names=NAMES, **units):
    """The timeline of a kernel on a GPU of one multiprocessor, whose only block does everything."""
    path = pathlib.Path(folder, "events.jsonl")
    run("flash-run", str(COURSE / program), f"--target=emulate:{target}", "--multiprocessors=1", f"--schedule={schedule}",
        f"--events={path}")
    return flash.timeline(path, launch, names, **units)


def draw_three_loops(folder):
    """The roofline of the report: the programs' intensities, which are counted, and what was measured."""
    text = (ROOT / "docs" / "h200" / "report.md").read_text()
    section = text[text.index("## Arithmetic intensity and the roofline") :]
    found = re.findall(r"^\| (\d+) \| (flash-mlir[^|]*) \| (\S+) \| (\S+) \| (\S+) \| \S+ \| \S+ \| (\S+) \|$", section, re.M)
    rows = [(int(n), name.strip(), *map(float, numbers)) for n, name, *numbers in found]
    # FLOP/s and bytes/s that the predictions stand for.
    compute = max(intensity * megabytes / milliseconds for _, _, intensity, megabytes, milliseconds, _ in rows) * 1e-3
    bandwidth = max(megabytes / milliseconds for _, _, _, megabytes, milliseconds, _ in rows) * 1e-3
    left, top, width, height = 46, 10, 480, 260

    def place(intensity, rate):
        return left + width * math.log2(intensity / 16) / 9, top + height * (1 - math.log2(rate / 16) / 6.5)

    parts = []
    for power in range(4, 14):
        x, y = place(2**power, 16)
        parts += [f'<path d="M{x:g} {top}V{y:g}" stroke="#eee"/>', write(x, y + 14, 2**power, ' text-anchor="middle"')]
    for power in range(4, 11):
        x, y = place(16, 2**power)
        parts += [f'<path d="M{x:g} {y:g}H{left + width}" stroke="#eee"/>', write(x - 5, y + 4, 2**power, ' text-anchor="end"')]
    ridge = compute / bandwidth
    corners = [place(16, 16 * bandwidth), place(ridge, compute), place(8192, compute)]
    parts.append('<path fill="none" stroke="#444" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + '"/>')
    parts.append(write(corners[1][0], corners[1][1] - 8, f"{compute:.0f} TFLOP/s, from {ridge:.0f} FLOP/byte on"))
    for n, name, intensity, _, _, rate in rows:
        x, y = place(intensity, rate)
        color = "#d98c3f" if "naive" in name else "#2f6f9f"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
        if "naive" not in name:
            parts.append(write(x + 7, y + 12, f"N = {n}"))
    y = top + height + 34
    parts += [write(left + width / 2, y, "FLOP for each byte that is moved, counted", ' text-anchor="middle"'),
              write(left + 8, top + 12, "TFLOP/s")]
    for x, color, name in ((left, "#d98c3f", "three loops"), (left + 110, "#2f6f9f", "one loop (fused)")):
        parts += [f'<circle cx="{x + 5}" cy="{y + 16}" r="4" fill="{color}"/>', write(x + 14, y + 20, name)]
    return make_svg(left + width + 20, y + 28, parts)


def draw_online_softmax(folder):
    """Eight tiles of keys, one after the other, through the program with one step."""
    random, tiles = np.random.default_rng(23), 8
    queries = random.standard_normal((4, 16)).astype(np.float32)
    keys, values = (random.standard_normal((tiles, 16, 16)).astype(np.float32) for _ in range(2))
    step = flash.compile((COURSE / "step.mlir").read_text(), target="cpu")
    state = np.zeros((4, 16), np.float32), np.full(4, -np.inf, np.float32), np.zeros(4, np.float32)
    rows = []
    for tile in range(tiles):
        before, (_, largest, total) = state[1][0], (state := step(queries, keys[tile], values[tile], *state))
        own = (queries @ keys[tile].T)[0].max()
        rows.append((own, largest[0], math.exp(before - largest[0]), total[0]))
    scores = queries @ keys.reshape(-1, 16).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights @ values.reshape(-1, 16) / weights.sum(axis=1, keepdims=True)
    assert np.allclose(state[0] / state[2][:, None], expected, atol=1e-4)

    parts, left, column = [], 190, 62
    titles = "largest score of the tile", "m, the largest so far", "r, what l and a are multiplied by", "l, the sum so far"
    colors = "#c9b458", "#2f6f9f", "#d98c3f", "#6f9e4a"
    for number, (title, color) in enumerate(zip(titles, colors)):
        y, most = 20 + number * 62, max(row[number] for row in rows)
        parts.append(write(1, y + 40, title))
        for tile, row in enumerate(rows):
            size, x = 40 * row[number] / most, left + tile * column
            parts.append(f'<rect x="{x}" y="{y + 44 - size:.1f}" width="{column - 12}" height="{size:.1f}" fill="{color}"/>')
            parts.append(write(x + (column - 12) / 2, y + 41 - size, f"{row[number]:.2f}", ' text-anchor="middle"'))
    for tile in range(tiles):
        parts.append(write(left + tile * column + (column - 12) / 2, 20 + 4 * 62, f"tile {tile}", ' text-anchor="middle"'))
    return make_svg(left + tiles * column, 20 + 4 * 62 + 8, parts)


def draw_tiles(folder):
    window = flash.causal() & flash.window(left=255)
    return stack(("causal", flash.plot(flash.causal(), 1024, query_tile=128, key_tile=64)._repr_svg_()),
                 ("causal, and at most 255 keys back", flash.plot(window, 1024, query_tile=128, key_tile=64)._repr_svg_()))


def find_stores(thread):
    """The elements (row, column) that a thread of lanes.mlir stores, by what the compiler makes of it, and which of its
    registers each is in. The program has arithmetic of one thread, which is done here line by line."""
    passes = "builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)),canonicalize,cse)"
    text = find_stores.text = getattr(find_stores, "text", None) or run(
        "flash-opt", str(COURSE / "lanes.mlir"), f"--pass-pipeline={passes}")
    operations = {"addi": int.__add__, "muli": int.__mul__, "divui": int.__floordiv__, "remui": int.__mod__}
    values, found = {}, {}
    for line in text.splitlines():
        name, right = re.match(r"\s*(?:(%\w+)\S* = )?(.*)", line).groups()
        operands = re.findall(r"%\w+(?:#\d+)?", right)
        if match := re.match(r"arith\.constant (-?\d+) :", right):
            values[name] = int(match[1])
        elif right.startswith("gpu.thread_id"):
            values[name] = thread
        elif right.startswith("arith.index_cast"):
            values[name] = values[operands[0]]
        elif match := re.match(r"arith\.(addi|muli|divui|remui) ", right):
            values[name] = operations[match[1]](*(values[operand] for operand in operands))
        elif right.startswith("vector.from_elements"):
            values[name] = [int(operand.partition("#")[2]) for operand in operands]
        elif match := re.match(r"llvm\.getelementptr (%\w+)\[(%?\w+)\]", right):
            values[name] = values.get(match[1], 0) + (values[match[2]] if match[2] in values else int(match[2]))
        elif right.startswith("llvm.store"):
            registers, address = (values[operand] for operand in operands[:2])
            for number, register in enumerate(registers):
                found[divmod(address // 4 + number, 16)] = register
    return found


def draw_lanes(folder):
    cell, left, top, parts = 34, 26, 18, []
    colors = "#cfe0ee", "#f3dcc4", "#dcebd0", "#e6dcf2", "#f1eccb", "#f0d5da", "#d3ebe7", "#e4e4e4"
    for thread in range(32):
        for (row, column), register in find_stores(thread).items():
            x, y = left + column * cell, top + row * 24
            parts.append(f'<rect x="{x}" y="{y}" width="{cell}" height="24" fill="{colors[thread // 4]}" stroke="#fff"/>')
            parts.append(write(x + cell / 2, y + 16, f"{thread}.{register}", ' text-anchor="middle"'))
    for number in range(16):
        parts += [write(left + number * cell + cell / 2, top - 5, number, ' text-anchor="middle" fill="#888"'),
                  write(left - 6, top + number * 24 + 16, number, ' text-anchor="end" fill="#888"')]
    return make_svg(left + 16 * cell + 2, top + 16 * 24 + 2, parts)


def draw_stages(folder):
    schedule = "query_tile=64,key_tile=64,warps=4,features=none,stages="
    return stack(*((f"{name} of keys and of values", record("attention.mlir", "sm_80", f"{schedule}{stages}", folder, copy=3)
                    .draw(stages=True)) for stages, name in ((1, "one stage"), (2, "two stages"))))


def draw_roles(folder):
    return record("attention.mlir", "sm_90a", f"query_tile=128,key_tile=128,features={ROLES}", folder).draw(stages=True)


def draw_overlap(folder):
    return stack(*((name, record("attention.mlir", "sm_90a", f"query_tile=128,key_tile=128,features={ROLES}{more}", folder).draw())
                   for name, more in (("roles alone", ""), ("with overlap and ping_pong", "|overlap|ping_pong"))))


def draw_gradients(folder):
    names = "queries", "keys", "values", "output", "log-sum-exps", "gradient of the output"
    return record("gradients.mlir", "sm_90a", "query_tile=64,key_tile=128,products=7", folder, 2, names).draw()


FIGURES = {
    "1-three-loops": draw_three_loops,
    "2-online-softmax": draw_online_softmax,
    "3-tiles-and-masks": draw_tiles,
    "4-tensor-cores": draw_lanes,
    "5-copies": draw_stages,
    "6-roles": draw_roles,
    "7-overlap": draw_overlap,
    "8-gradients": draw_gradients,
}


def main(folder=COURSE):
    with tempfile.TemporaryDirectory() as scratch:
        for name, draw in FIGURES.items():
            pathlib.Path(folder, f"{name}.svg").write_text(draw(scratch))


if __name__ == "__main__":
    main(*sys.argv[1:])
