"""The inputs of values.mlir, and what its results have to be.

    values.py inputs PREFIX
    values.py check PREFIX
"""

import sys

import numpy as np


def tf32(array):
    """Rounded to 10 bits of mantissa, ties away from zero."""
    return ((array.view(np.uint32) + 0x1000) & ~np.uint32(0x1FFF)).view(np.float32)


def row_sum(x):
    """In the order of tile.fold and tile.reduce, in f32."""
    lanes = np.zeros(x.shape[:-1] + (4,), np.float32)
    for j in range(x.shape[-1]):
        lanes[..., j % 8 // 2] += x[..., j]
    return (lanes[..., 0] + lanes[..., 1]) + (lanes[..., 2] + lanes[..., 3])


def main():
    action, prefix = sys.argv[1:]
    if action == "inputs":
        rng = np.random.default_rng(3)
        np.save(f"{prefix}-x.npy", rng.standard_normal((2, 60, 24)).astype(np.float16))
        np.save(f"{prefix}-y.npy", rng.standard_normal((24, 24)).astype(np.float32))
        np.save(f"{prefix}-v.npy", rng.standard_normal(64).astype(np.float32))
        return 0
    x, y, v = (np.load(f"{prefix}-{name}.npy") for name in "xyv")
    got = [np.load(f"{prefix}-{i}.npy") for i in range(6)]
    wide = x.astype(np.float32)
    largest = wide.max(-1)
    product = np.ones((2, 60, 64))
    product[..., :60] += np.einsum("bid,bjd->bij", wide.astype(float), wide.astype(float))
    rounded = tf32(wide + largest[..., None]).astype(float) @ tf32(y).astype(float)
    i, j = np.ogrid[:60, :24]
    exact = {0: row_sum(wide), 1: largest, 4: x, 5: np.where(i < j, wide, v[:60, None])}
    for index, expected in exact.items():
        assert np.array_equal(got[index], expected), f"result {index} differs"
    for index, expected in ((2, product), (3, rounded)):
        # Sums of 24 products: a few units in the last place.
        np.testing.assert_allclose(got[index], expected, rtol=0, atol=2e-5, err_msg=f"result {index}")
    # Without the rounding, result 3 would be another one.
    unrounded = (wide + largest[..., None]).astype(float) @ y.astype(float)
    assert np.abs(unrounded - rounded).max() > 1e-3
    return 0


if __name__ == "__main__":
    sys.exit(main())
