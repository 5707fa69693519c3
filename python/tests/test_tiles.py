"""The tiles that masks leave out."""

import numpy as np
import pytest

import flash_mlir as flash

SIZE = 512


def count(keep, tiles, queries=SIZE, keys=SIZE):
    """Skipped, unmasked and masked tiles, by a look at all pairs."""
    q, k = np.ogrid[:queries, :keys]
    kept = np.broadcast_to(keep(0, 0, q, k), (queries, keys))
    skipped = unmasked = masked = 0
    for row in range(0, queries, tiles.query_tile):
        for column in range(0, keys, tiles.key_tile):
            tile = kept[row : row + tiles.query_tile, column : column + tiles.key_tile]
            skipped += not tile.any()
            unmasked += bool(tile.all())
            masked += bool(tile.any() and not tile.all())
    return skipped, unmasked, masked


EXACT = {
    "full": (flash.full(), lambda b, h, q, k: k >= 0 * q),
    "causal": (flash.causal(), lambda b, h, q, k: k <= q),
    "window": (flash.window(100, 50), lambda b, h, q, k: (k >= q - 100) & (k <= q + 50)),
    "nothing": (flash.prefix(0), lambda b, h, q, k: k < 0 * q),
    "union": (flash.prefix(20) | flash.window(40, 0), lambda b, h, q, k: (k < 20) | ((k >= q - 40) & (k <= q))),
    "abs": (lambda b, h, q, k: abs(q - k) <= 100, lambda b, h, q, k: abs(q - k) <= 100),
    "minimum": (lambda b, h, q, k: k <= flash.minimum(q, 300), lambda b, h, q, k: k <= np.minimum(q, 300)),
    "maximum": (lambda b, h, q, k: k >= flash.maximum(q, 300), lambda b, h, q, k: k >= np.maximum(q, 300)),
    "where": (
        lambda b, h, q, k: flash.where(q < 256, k < 128, k >= 384),
        lambda b, h, q, k: np.where(q < 256, k < 128, k >= 384),
    ),
    "where of numbers": (
        lambda b, h, q, k: k < flash.where(q < 256, 128, q),
        lambda b, h, q, k: k < np.where(q < 256, 128, q),
    ),
    "exclusive or": (lambda b, h, q, k: (k <= q) ^ (k < 200), lambda b, h, q, k: (k <= q) ^ (k < 200)),
    "blocks": (lambda b, h, q, k: q // 96 == k // 96, lambda b, h, q, k: q // 96 == k // 96),
}


@pytest.mark.parametrize("name, target", [(name, "cpu") for name in EXACT] + [("union", "sm_80"), ("abs", "sm_90a")])
def test_exact(name, target):
    mask, keep = EXACT[name]
    tiles = flash.Attention(mask).tiles(SIZE, SIZE, target=target)
    assert tiles[:3] == count(keep, tiles)


def test_lengths():
    tiles = flash.Attention(flash.causal()).tiles(100, 700, dtype="float32", dim=16, value_dim=24)
    assert tiles[:3] == count(lambda b, h, q, k: k <= q + 600, tiles, 100, 700)


def test_batch_and_heads():
    """Tiles add up over batches and heads, which the mask may tell apart."""
    causal = flash.Attention(flash.causal())
    one, all = causal.tiles(SIZE, SIZE), causal.tiles(SIZE, SIZE, batch=3, heads=4, key_heads=2)
    assert all[:3] == tuple(12 * number for number in one[:3])
    by_head = flash.Attention(lambda b, h, q, k: k < 128 * h).tiles(SIZE, SIZE, heads=3)
    kept = [count(lambda b, h, q, k: k < 128 * head + 0 * q, by_head) for head in range(3)]
    assert by_head[:3] == tuple(map(sum, zip(*kept)))


@pytest.mark.parametrize("width", [14, 16, 32])
def test_grid(width):
    """With open lengths not all of the tiles that a neighbourhood in a grid hides are known, but most are."""

    def near(b, h, q, k):
        return (abs(q // width - k // width) <= 2) & (abs(q % width - k % width) <= 2)

    tiles = flash.Attention(near).tiles(1024, 1024)
    skipped, unmasked, _ = count(near, tiles, 1024, 1024)
    assert 0.8 * skipped <= tiles.skipped <= skipped
    assert tiles.unmasked <= unmasked


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90a"])
def test_arrays_skip_nothing(target):
    """What a mask leaves of its own accord counts, whatever arrays and lengths leave of that."""
    ids = np.repeat(np.arange(4, dtype=np.int32), SIZE // 4)
    assert flash.Attention(flash.documents(ids)).tiles(SIZE, SIZE, target=target).skipped == 0
    lengths = flash.key_lengths(np.array([3], dtype=np.int32))
    for mask in (flash.documents(ids) & flash.causal(), lengths & flash.causal()):
        # Tiles have the sizes that suit all of the mask.
        tiles = flash.Attention(mask).tiles(SIZE, SIZE, target=target)
        assert tiles.skipped == count(lambda b, h, q, k: k <= q, tiles)[0] > 0


def test_kernel():
    text = """func.func @f(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
      %0 = flash.attention %q, %q, %q mask(#flash.causal)
          : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
      %1 = flash.attention %0, %0, %0
          : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
      return %1 : tensor<1x2x?x16xf32>
    }"""
    kernel = flash.compile(text, target="cpu", schedule="query_tile=32,key_tile=64")
    tiles = kernel.tiles((1, 2, 200, 16))
    skipped, unmasked, masked = count(lambda b, h, q, k: k <= q, tiles, 200, 200)
    assert tiles == flash.Tiles(2 * skipped, 2 * unmasked + 2 * 7 * 4, 2 * masked, 32, 64)
    for sizes in ((1, 2, 200, 24),), ((1, 2, 200),), (), ((1, 2, 200, 16), (1,)), ((1, 2, -1, 16),):
        with pytest.raises(ValueError):
            kernel.tiles(*sizes)


def test_errors():
    with pytest.raises(ValueError, match="dtype"):
        flash.Attention().tiles(8, 8, dtype="int8")
    with pytest.raises(ValueError, match="query_length must not be negative, got -1"):
        flash.Attention().tiles(-1, 8)
    with pytest.raises(ValueError, match="too long"):
        flash.Attention(lambda b, h, q, k: (q - k) % 1000 == 0).tiles(2**24, 2**24)
    program = "func.func @f(%q: tensor<4xf32>) -> tensor<4xf32> {\n  return %q : tensor<4xf32>\n}"
    with pytest.raises(ValueError, match="no attention"):
        flash.compile(program, target="cpu").tiles((4,))
