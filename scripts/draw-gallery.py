#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures from examples/gallery, with the package: BUILD/python/bin/python FILE."""

import json
import pathlib
import runpy

import flash_mlir as flash

ROOT = pathlib.Path(__file__).parents[1]
HEAD = """# Gallery

Twenty variants of attention, each in a few lines of Python and of MLIR, side by side in `examples/gallery`. Both
are compared with each other, the programs with the fp64 reference, masks with numpy, and gradients with the slope of
the forward (`python/tests/test_gallery.py`).

```
build/bin/flash-run examples/gallery/block_diffusion.mlir --check
```

A picture shows which tiles of 8 queries (down) by 8 keys (right) of the 128 a kernel leaves out, keeps as a whole, or
looks into element by element: `flash.plot(mask, 128, query_tile=8, key_tile=8).save("picture.svg")`. This page and the
pictures are written by `scripts/draw-gallery.py`.

"""

TIMES = """
## Times

The same variants at the size of models, beside PyTorch's FlexAttention: one batch, 16 heads, 8192 positions, D = 128, bf16,
windows of 1024 and the like (`python/benchmarks/gallery.py`, which writes the lines of `docs/gallery/h200.jsonl`). H200,
{where}. Milliseconds, and how many times as fast as FlexAttention. Its
BlockMask was made before; `flash.flex_attention`, called with the same, looks for the tiles in the first call, and
`flash.attention` with a [plan](python.md#plans) does not look either. Each of these was compared with fp64 at 1001
positions, output and gradients, and with FlexAttention at 8192: all are right.{missing} Bold is what is slower.

| variant | forward | with a plan | backward |
|---|---|---|---|
"""
# Of docs/gallery/h200.jsonl.
WHERE = "2026-11-26, driver 580.159.04, PyTorch 2.11"


def format_times(found, ours, theirs):
    if ours not in found:
        return ""
    text = f"{found[ours]:.2f} ({found[theirs] / found[ours]:.2f})"
    return text if found[theirs] >= found[ours] else f"**{text}**"


def make_times(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = []
    for found in sorted(lines, key=lambda found: found["name"]):
        parts = ("ours forward", "theirs forward"), ("planned forward", "theirs forward"), ("ours backward", "theirs backward")
        cells = [format_times(found, *part) for part in parts]
        rows.append(f"| {found['name'].replace('_', ' ')} | {' | '.join(cells)} |\n")
    missing = len(list((ROOT / "examples" / "gallery").glob("*.py"))) - len(rows)
    note = f" {missing} of the twenty have not been timed yet." if missing else ""
    return TIMES.format(where=WHERE, missing=note) + "".join(rows)


def main():
    folder = ROOT / "docs" / "gallery"
    folder.mkdir(exist_ok=True)
    lines = [HEAD + "| variant | |", "|---|---|"]
    for path in sorted((ROOT / "examples" / "gallery").glob("*.py")):
        scope = runpy.run_path(str(path))
        what = scope["__doc__"].strip()
        links = f"[Python](../examples/gallery/{path.name}), [MLIR](../examples/gallery/{path.stem}.mlir)"
        picture = ""
        if "mask" in scope:
            flash.plot(scope["mask"], 128, query_tile=8, key_tile=8).save(folder / f"{path.stem}.svg")
            picture = f"![{path.stem}](gallery/{path.stem}.svg)"
        lines.append(f"| {what} {links} | {picture} |")
    (ROOT / "docs" / "gallery.md").write_text("\n".join(lines) + "\n" + make_times(folder / "h200.jsonl"))


if __name__ == "__main__":
    main()
