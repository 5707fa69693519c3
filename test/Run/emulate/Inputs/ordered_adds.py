"""The inputs of ordered-adds.mlir, and what its result has to be.

    ordered_adds.py inputs PREFIX
    ordered_adds.py check PREFIX
"""

import sys

import numpy as np


def main():
    action, prefix = sys.argv[1:]
    if action == "inputs":
        rng = np.random.default_rng(3)
        np.save(f"{prefix}-x.npy", rng.standard_normal((300, 64)).astype(np.float16))
        np.save(f"{prefix}-y.npy", rng.standard_normal((2, 300, 64)).astype(np.float16))
        return 0
    x, y = (np.load(f"{prefix}-{name}.npy").astype(np.float64) for name in "xy")
    expected = np.einsum("ri,trj->tij", x, y)[:, :60]
    # Sums of 300 products: a few units in the last place.
    np.testing.assert_allclose(np.load(f"{prefix}-a.npy"), expected, rtol=0, atol=5e-5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
