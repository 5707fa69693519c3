"""The inputs of rings.mlir, and what its results have to be.

    rings.py inputs PREFIX
    rings.py check PREFIX

Small whole numbers, so that no order of additions shows.
"""

import sys

import numpy as np


def main():
    action, prefix = sys.argv[1:]
    if action == "inputs":
        rng = np.random.default_rng(3)
        np.save(f"{prefix}-x.npy", rng.integers(-4, 5, (256, 64)).astype(np.float16))
        np.save(f"{prefix}-pages.npy", np.array([2, 0, 3, 2], np.int32))
        return 0
    x, pages = (np.load(f"{prefix}-{name}.npy").astype(np.float32) for name in ("x", "pages"))
    blocks = [np.concatenate([x.reshape(4, 64, 64)[int(p)] for p in pair]) for pair in pages.reshape(2, 2)]
    expected = {
        "sums": 2 * sum(blocks),
        "scores": np.stack([2 * b @ b.T for b in blocks]),
        "loop": 2 * sum(blocks),
    }
    for name, value in expected.items():
        got = np.load(f"{prefix}-{name}.npy")
        if not np.array_equal(got, value):
            print(f"{name} differs, by up to {np.abs(got - value).max()}", file=sys.stderr)
            return 1
    return 0


sys.exit(main())
