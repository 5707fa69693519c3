"""Programs whose keys and values lie in pages: caches in any order of their dimensions, as those of serving engines are."""

import numpy as np
import pytest

import flash_mlir as flash

TEXT = """
func.func @cached(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x16x64xf32>, %v: tensor<?x2x16x64xf32>, %table: tensor<?x?xi32>, %n: tensor<?xi32>)
    -> tensor<?x4x?x64xf32> {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x2x16x64xf32>, tensor<?x?xi32> -> tensor<?x2x?x64xf32>
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : tensor<?x2x16x64xf32>, tensor<?x?xi32> -> tensor<?x2x?x64xf32>
  %o = flash.attention %q, %ks, %vs mask(#flash.causal) key_lengths(%n : tensor<?xi32>)
      : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %o : tensor<?x4x?x64xf32>
}
"""


def expect(q, k, v, table, lengths):
    output = np.zeros(q.shape)
    for b, length in enumerate(lengths):
        pages = table[b, : -(-length // 16)]
        if length == 0:
            continue
        keys, values = (np.concatenate(x[pages].astype(np.float64), axis=1)[:, :length] for x in (k, v))
        i, j = np.ogrid[: q.shape[2], :length]
        for h in range(4):
            scores = np.where(j <= i + length - q.shape[2], q[b, h] @ keys[h // 2].T / 8, -np.inf)
            with np.errstate(invalid="ignore"):
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            output[b, h] = np.nan_to_num(weights / weights.sum(axis=1, keepdims=True)) @ values[h // 2]
    return output


@pytest.mark.parametrize("order", ["heads_outside", "heads_inside", "side_by_side", "both_first"])
def test_orders_of_a_cache(order):
    rng = np.random.default_rng(0)
    pages, lengths = 20, np.array([20, 0, 64, 1], np.int32)
    table = np.full((4, 5), -1, np.int32)
    for b, own in enumerate(([7, 3], [], [0, 7, 5, 1], [19])):
        table[b, : len(own)] = own
    shapes = {"heads_outside": (pages, 2, 16, 64), "heads_inside": (pages, 16, 2, 64), "side_by_side": (pages, 16, 2, 128),
              "both_first": (2, pages, 16, 2, 64)}
    cache = rng.standard_normal(shapes[order], np.float32)
    if order == "heads_outside":
        k, v = cache, rng.standard_normal(cache.shape, np.float32)
    elif order == "heads_inside":
        k, v = cache.transpose(0, 2, 1, 3), rng.standard_normal(cache.shape, np.float32).transpose(0, 2, 1, 3)
    elif order == "side_by_side":
        k, v = (x.transpose(0, 2, 1, 3) for x in np.split(cache, 2, axis=3))
    else:
        k, v = (x.transpose(0, 2, 1, 3) for x in cache)
    q = rng.standard_normal((4, 4, 5, 64), np.float32)
    o = flash.compile(TEXT, target="cpu")(q, k, v, table, lengths)
    np.testing.assert_allclose(o, expect(q, k, v, table, lengths), atol=2e-6)
