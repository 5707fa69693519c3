#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures from examples/gallery, with the package: BUILD/python/bin/python FILE."""

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
    (ROOT / "docs" / "gallery.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
