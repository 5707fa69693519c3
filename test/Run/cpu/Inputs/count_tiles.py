"""Compares `flash-run --count-tiles` with a count over all elements."""

import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "suite"))
from oracle import PREDICATES  # noqa: E402
from suite import MASKS, Case  # noqa: E402


def brute_force(case, query_tile, key_tile):
    full = partial = 0
    b, h, i, j = np.ogrid[: case.B, : case.Hq, : case.Nq, : case.Nk]
    keep = PREDICATES[case.mask](b, h, i, j, i + case.Nk - case.Nq, case.Nk)
    keep = np.broadcast_to(keep, (case.B, case.Hq, case.Nq, case.Nk))
    for row, column in itertools.product(range(0, case.Nq, query_tile), range(0, case.Nk, key_tile)):
        tile = keep[:, :, row : row + query_tile, column : column + key_tile]
        every, some = tile.all(axis=(2, 3)), tile.any(axis=(2, 3))
        full += int(every.sum())
        partial += int((some & ~every).sum())
    return full, partial


def run(case, query_tile, key_tile, folder):
    case.schedule = f"query_tile={query_tile},key_tile={key_tile}"
    command = [word for word in case.command(folder, seed=0) if word != "--check"] + ["--count-tiles"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    full, partial = brute_force(case, query_tile, key_tile)
    expected = f"tiles: {full + partial} visited = {full} full + {partial} partial\n"
    if process.stdout != expected:
        print(f"{case.name} {query_tile}x{key_tile}: expected {expected}got {process.stdout}{process.stderr}")
    return process.stdout == expected


def main():
    sizes = [(300, 300, 64, 64), (257, 390, 32, 64), (391, 200, 64, 16)]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for index, mask in enumerate(MASKS):
            nq, nk, query_tile, key_tile = sizes[index % len(sizes)]
            for dynamic in (False, True):
                case = Case(mask, mask=mask, B=2, Hq=2, Hkv=1, Nq=nq, Nk=nk, D=8, Dv=8, dynamic=dynamic)
                results.append(run(case, query_tile, key_tile, pathlib.Path(folder)))
    print(f"{sum(results)} of {len(results)} counts agree")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
