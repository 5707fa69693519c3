"""The bits of a row where the schedule says how many keys a split has."""

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash

D, TILE, SPLIT = 32, 32, 128
SCHEDULE = f"key_tile={TILE},split_keys={SPLIT}"


def write(batch="?", heads="?", key_heads="?", queries="?", keys="?"):
    """A program with a mask that cuts tiles, lengths and sinks; sizes that are not given are open."""
    q, k = (f"tensor<{b}x{h}x{n}x{D}xf16>" for b, h, n in ((batch, heads, queries), (batch, key_heads, keys)))
    lse = f"tensor<{batch}x{heads}x{queries}xf32>"
    n, s = f"tensor<{batch}xi32>", f"tensor<{heads}xf32>"
    return f"""#slanted = affine_set<(b, h, i, j)[nq, nk] : (i * 66 + 65 - j >= 0)>
func.func @attention(%q: {q}, %k: {k}, %v: {k}, %n: {n}, %s: {s}) -> ({q}, {lse}) {{
  %o, %l = flash.attention %q, %k, %v mask(#flash.affine<#slanted>)
      lengths(%n : {n}) sink(%s : {s}) : ({q}, {k}, {k}) -> ({q}, {lse})
  return %o, %l : {q}, {lse}
}}"""


class Batch:
    """Sixteen sequences of up to 1300 keys, and twenty queries of each of six heads on two."""

    def __init__(self, queries=20):
        rng = np.random.default_rng(7)
        make = lambda *sizes: rng.standard_normal(sizes).astype(np.float16)
        self.q, self.k, self.v = make(16, 6, queries, D), make(16, 2, 1300, D), make(16, 2, 1300, D)
        self.n = rng.integers(1, 1301, 16).astype(np.int32)
        # Up to both sides of tiles and splits, of one split, and none.
        self.n[:8] = [1300, 1024, 1025, 128, 129, 31, 1, 0]
        self.s = rng.standard_normal(6).astype(np.float32)

    def part(self, batches, groups=slice(None), keys=slice(None)):
        """Some sequences, some groups of heads, and the keys up to a length."""
        heads = [h for g in range(2)[groups] for h in range(3 * g, 3 * g + 3)]
        k, v = (np.ascontiguousarray(x[batches][:, groups, keys]) for x in (self.k, self.v))
        return self.q[batches][:, heads], k, v, self.n[batches], self.s[heads]


def assert_same_bits(results, expected, batches=slice(None), heads=slice(None)):
    for result, whole in zip(results, expected):
        np.testing.assert_array_equal(result.view(f"u{result.itemsize}"), whole[batches][:, heads].view(f"u{whole.itemsize}"))


@pytest.mark.parametrize("target", ["emulate", "emulate:sm_90a"])
def test_bits_of_a_row(target):
    batch = Batch()
    kernel = flash.compile(write(), target=target, schedule=SCHEDULE)
    expected = kernel(*batch.part(slice(None)))
    assert "lazy_rescale" not in kernel.ir("l0") + kernel.ir("l1")

    # It is right, whatever its bits are.
    keep = lambda b, h, q, k: k <= 66 * q + 65
    output, _ = reference(batch.q, batch.k, batch.v, keep, lengths=batch.n, sink=batch.s)
    assert_close(expected[0], output, "float16")

    # Three sequences, and one, of one group of heads; without the padding, which makes splits fewer.
    assert_same_bits(kernel(*batch.part(slice(0, 3))), expected, slice(0, 3))
    for b in (0, 1, 3, 6, 7, 12):
        alone = batch.part(slice(b, b + 1), slice(1, 2), slice(0, int(batch.n[b])))
        assert_same_bits(kernel(*alone), expected, slice(b, b + 1), slice(3, 6))

    # Types and versions that say more, of whole tiles, one split or several, tiles of packed heads or others.
    for b, keys, sizes in ((1, 1024, (1, 3, 1, 20, 1024)), (3, 128, (1, 3, 1, 20, 128)), (4, 129, ("?", 3, 1, "?", 129))):
        static = flash.compile(write(*sizes), target=target, schedule=SCHEDULE)
        alone = batch.part(slice(b, b + 1), slice(1, 2), slice(0, keys))
        assert_same_bits(static(*alone), expected, slice(b, b + 1), slice(3, 6))
    version = flash.compile(
        write(), target=target, schedule=SCHEDULE, sizes=[(16, 6, 20, D), (16, 2, 1300, D), (16, 2, 1300, D)]
    )
    assert version.arguments != kernel.arguments
    assert_same_bits(version(*batch.part(slice(None))), expected)


def test_the_default_looks_at_the_batch():
    """A sequence that is alone has more splits than one of sixteen: the option would else be for nothing."""
    batch = Batch()
    kernel = flash.compile(write(), target="emulate", schedule=f"key_tile={TILE},split_ctas=132")
    expected = kernel(*batch.part(slice(None)))
    output, _ = kernel(*batch.part(slice(0, 1)))
    assert not np.array_equal(output, expected[0][:1])
    assert_close(output, expected[0][:1], "float16")
