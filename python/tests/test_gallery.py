"""examples/gallery: each variant as Python and as MLIR, forward and backward, beside formulas written out."""

import pathlib
import runpy

import numpy as np
import pytest
from conftest import reference

import flash_mlir as flash

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "gallery"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
SIZE = 128


class Variant:
    """What the Python file has: a mask, a score function, a sink, and the arrays that these read."""

    def __init__(self, name):
        scope = runpy.run_path(str(FOLDER / f"{name}.py"))
        self.mask, self.score, self.sink = (scope.get(part) for part in ("mask", "score", "sink"))
        self.what = scope["__doc__"]
        # In the order of the MLIR's arguments: as they are first mentioned.
        self.arrays = [value for key, value in scope.items() if isinstance(value, np.ndarray) and key != "sink"]

    def keep(self):
        """Whether each pair is kept, as an array of (heads, queries, keys)."""
        if self.mask is None:
            return np.ones((4, SIZE, SIZE), dtype=bool)
        return np.stack([expand(self.mask, head) for head in range(4)])


def expand(mask, head):
    """Every element of a mask."""
    return flash.plot(mask, SIZE, head=head, query_tile=1, key_tile=1).kinds == 1


def test_there_are_twenty():
    assert len(NAMES) == 20 and NAMES == sorted(path.stem for path in FOLDER.glob("*.mlir"))


@pytest.mark.parametrize("name", NAMES)
def test_variant(name, rng):
    """Both files compute the same, and masks what numpy does; gradients are the slope of the forward."""
    variant = Variant(name)
    text = (FOLDER / f"{name}.mlir").read_text()
    query, key, value, slope, output_grad = rng.standard_normal((5, 1, 4, SIZE, 32), dtype=np.float32)
    options = dict(mask=variant.mask, score=variant.score, sink=variant.sink)
    output, lse = flash.attention(query, key, value, **options, return_lse=True)
    more = ([] if variant.sink is None else [variant.sink]) + variant.arrays
    more = [x.view(np.int8) if x.dtype == bool else x for x in more]
    of_mlir = flash.compile(text, target="cpu")(query, key, value, *more)
    np.testing.assert_allclose(output, of_mlir, rtol=2e-5, atol=2e-5)
    if variant.score is None:
        keep = variant.keep()
        expected = reference(query, key, value, keep=lambda b, h, q, k: keep[h, q, k], sink=variant.sink)
        np.testing.assert_allclose(output, expected[0], rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(lse, expected[1], rtol=2e-5, atol=2e-5)
    grads = flash.attention_grad(query, key, value, output, lse, output_grad, **options)
    # The derivative in one direction is the difference of values on either side, in the sum of all outputs.
    step = 1e-2
    for place, grad in enumerate(grads[:3]):
        sides = []
        for sign in (1, -1):
            operands = [query, key, value]
            operands[place] = operands[place] + np.float32(sign * step) * slope
            moved, _ = flash.attention(*operands, **options, return_lse=True)  # The same kernel.
            sides.append(np.sum(moved.astype(np.float64) * output_grad))
        expected = (sides[0] - sides[1]) / (2 * step)
        actual = np.sum(grad.astype(np.float64) * slope)
        assert abs(actual - expected) < 2e-2 * max(1.0, abs(expected)), f"gradient {place}: {actual}, expected {expected}"


@pytest.mark.parametrize("name", ["causal", "sliding_window", "prefix", "neighbourhood", "block_diffusion", "stripes"])
def test_pictures(name):
    """They show the tiles that the compiler counts."""
    mask = Variant(name).mask
    tiles = flash.Attention(mask=mask).tiles(SIZE, SIZE, dim=32, dtype="float32", target="cpu")
    picture = flash.plot(mask, SIZE, query_tile=tiles.query_tile, key_tile=tiles.key_tile)
    skipped, whole, part = picture.count()
    # The compiler may look at more tiles than it must, and never at fewer.
    assert tiles.skipped <= skipped and tiles.unmasked <= whole
    assert tiles.skipped + tiles.unmasked + tiles.masked == skipped + whole + part


def test_plot(tmp_path):
    lengths = np.array([3, 100], dtype=np.int32)
    picture = flash.plot(flash.causal() & flash.key_lengths(lengths), 100, 130, batch=1, query_tile=50, key_tile=64)
    assert picture.kinds.tolist() == [[2, 2, 0], [1, 2, 0]]
    assert picture.count() == (2, 1, 3)
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match="key_tile is 0; it must be at least 1"):
        flash.plot(flash.causal(), 10, key_tile=0)
    with pytest.raises(ValueError, match="1000 by 1000 tiles are too many for a picture"):
        flash.plot(flash.causal(), 1000, query_tile=1, key_tile=1)
