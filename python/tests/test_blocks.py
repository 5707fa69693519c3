"""Lists of blocks that a caller gives, beside attention that asks of each element whether its block is listed."""

import re

import numpy as np
import pytest
from conftest import assert_close, reference
from test_gradients import differentiate

import flash_mlir as flash

BATCH, HEADS, QUERIES, KEYS = 2, 4, 37, 53
SIZE = 8, 16


def make_lists(rng, batches=BATCH, heads=HEADS, width=6):
    """`Blocks` and their mask: the blocks that are listed as partial keep what is causal. Entries behind are no blocks."""
    rows, columns = -(-QUERIES // SIZE[0]), -(-KEYS // SIZE[1])
    table = rng.integers(0, 3, (batches, heads, rows, columns))

    def make(of_rows, length):
        indices = np.full((*of_rows.shape[:3], length), 1 << 30, np.int32)
        counts = np.zeros((*of_rows.shape[:3], 2), np.int32)
        for place in np.ndindex(*counts.shape[:3]):
            parts, whole = (rng.permutation(np.flatnonzero(of_rows[place] == kind)) for kind in (1, 2))
            counts[place] = len(parts), len(parts) + len(whole)
            indices[place][: counts[place][1]] = [*parts, *whole]
        return indices, counts

    def keep(b, h, q, k):
        left = table[b * (batches > 1), h * (heads > 1), q // SIZE[0], k // SIZE[1]]
        return (left == 2) | ((left == 1) & (k <= q + KEYS - QUERIES))

    blocks = flash.Blocks(*make(table, width), SIZE, *make(table.swapaxes(2, 3), rows))
    return blocks, keep


@pytest.mark.parametrize("batches, heads", [(BATCH, HEADS), (1, HEADS), (1, 1)])
def test_lists(make, rng, batches, heads):
    blocks, keep = make_lists(rng, batches, heads)
    lengths = np.array([20, 53])
    differentiate(make, rng, keep=keep, mask=flash.causal(), blocks=blocks)
    differentiate(make, rng, keep=keep, mask=lambda b, h, q, k: k <= q + KEYS - QUERIES, blocks=blocks, lengths=lengths)
    query, key, value = make(dtype="float16")
    forward = blocks._replace(query_indices=None, query_counts=None)
    actual = flash.attention(query, key, value, mask=flash.causal(), blocks=forward)
    assert_close(actual, reference(query, key, value, keep)[0], "float16")


def test_without_blocks(make):
    """Of lists without room for a block all rows are empty, and without a mask partial blocks are whole."""
    query, key, value = make()
    rows = -(-QUERIES // SIZE[0])
    counts = np.zeros((1, 1, rows, 2), np.int32)
    output, lse = flash.attention(
        query, key, value, blocks=flash.Blocks(np.zeros((1, 1, rows, 0), np.int32), counts, SIZE), return_lse=True
    )
    assert not output.any() and np.isneginf(lse).all()
    indices = np.tile(np.arange(4, dtype=np.int32)[::-1], (1, 1, rows, 1))
    blocks = flash.Blocks(indices, counts + 4, SIZE)
    assert_close(flash.attention(query, key, value, blocks=blocks), reference(query, key, value)[0], "float32")


def test_checks(make, rng):
    query, key, value = make()
    blocks, keep = make_lists(rng, 1, 1)
    rows = blocks.counts.shape[2]

    def attend(indices, counts):
        given = np.broadcast_to(np.array(indices, np.int32), (1, 1, rows, len(indices)))
        counts = np.broadcast_to(np.array(counts, np.int32), (1, 1, rows, 2))
        return flash.attention(query, key, value, blocks=flash.Blocks(given, counts, SIZE))

    with flash.checks():
        actual = flash.attention(query, key, value, mask=flash.causal(), blocks=blocks)
        assert_close(actual, reference(query, key, value, keep)[0], "float32")
        for indices, counts, fault in [
            ([0, 4], (1, 2), "a number that is not below how many blocks there are"),
            ([0, -1], (1, 2), "a negative number"),
            ([0, 0], (1, 2), "a block twice"),
            ([0, 1], (1, 3), "a count above its length"),
            ([0, 1], (2, 1), "more partial blocks than blocks"),
            ([0, 1], (-1, 1), "a negative count"),
        ]:
            with pytest.raises(ValueError, match=f"^a list of blocks has {fault}$"):
                attend(indices, counts)
    # Elsewhere nothing outside of arrays is read.
    attend([2**31 - 1, -(2**31)], (2**31 - 1, -1))


def test_errors(make, rng):
    query, key, value = make()
    blocks, _ = make_lists(rng, 1, 1)

    def attend(blocks, **options):
        return flash.attention(query, key, value, blocks=blocks, **options)

    with pytest.raises(TypeError, match="blocks is a tuple; expected flash_mlir.Blocks"):
        attend(tuple(blocks))
    for size in ((8, 0), (8,), 8, (8.5, 16), "ab"):
        with pytest.raises(ValueError, match=f"blocks has the size {re.escape(repr(size))}; expected two positive numbers, of queries and of keys"):
            attend(blocks._replace(size=size))
    with pytest.raises(ValueError, match=r"blocks has the size \(7, 20\); sizes of blocks are multiples of 8, the nearest is \(8, 24\)"):
        attend(blocks._replace(size=(7, 20)))
    with pytest.raises(TypeError, match="indices of blocks has the dtype int64; expected int32"):
        attend(blocks._replace(indices=blocks.indices.astype(np.int64)))
    with pytest.raises(TypeError, match="counts of blocks is a list; expected an array of int32"):
        attend(blocks._replace(counts=[1]))
    with pytest.raises(ValueError, match="query_counts of blocks has 3 dimensions"):
        attend(blocks._replace(query_counts=blocks.query_counts[0]))
    with pytest.raises(ValueError, match="query_indices and query_counts of blocks belong together; give both or none"):
        attend(blocks._replace(query_counts=None))
    with pytest.raises(ValueError, match="query has 3 dimensions; expected 4"):
        flash.attention(query[0], key[0], value[0], blocks=blocks)
    with pytest.raises(ValueError, match="blocks are given beside a plan"):
        attend(blocks, mask=flash.plan(flash.causal(), query, key))
    for name, expected in {
        "indices": r"\(2 or 1, 4 or 1, 5, any number\) for 37 rows in blocks of 8",
        "counts": r"\(1, 1, 5, 2\), as indices has \(1, 1, 5, 6\)",
        "query_indices": r"\(2 or 1, 4 or 1, 4, any number\) for 53 rows in blocks of 16",
        "query_counts": r"\(1, 1, 4, 2\), as query_indices has \(1, 1, 4, 5\)",
    }.items():
        array = getattr(blocks, name)
        of_others = [np.repeat(array, 3, 0), np.repeat(array, 3, 1), array[:, :, 1:], np.repeat(array, 2, 2)]
        for other in of_others + [np.repeat(array, 2, 3)] * name.endswith("counts"):
            with pytest.raises(ValueError, match=f"^{name} of blocks has the shape {re.escape(str(other.shape))}; expected {expected}$"):
                attend(blocks._replace(**{name: other}))
    output, lse = attend(blocks, return_lse=True)
    with pytest.raises(ValueError, match="gradients need the blocks of queries of each block of keys, too"):
        flash.attention_grad(
            query, key, value, output, lse, output, blocks=blocks._replace(query_indices=None, query_counts=None)
        )
    with pytest.raises(ValueError, match="wrt and blocks are given"):
        flash.attention_grad(query, key, value, output, lse, output, blocks=blocks, wrt=(lse,))


def test_autograd(make, rng):
    """Where gradients have no lists to go over, or are of what a score function reads, the result is as right."""
    torch = pytest.importorskip("torch")
    blocks, keep = make_lists(rng, 1, HEADS)
    arrays = [torch.from_numpy(array) for array in make()]
    given = flash.Blocks(*[torch.from_numpy(array) if hasattr(array, "dtype") else array for array in blocks])
    bias = torch.from_numpy(rng.standard_normal(KEYS).astype(np.float32))
    b, h, q, k = (torch.arange(n).reshape([-1 if i == d else 1 for d in range(4)]) for i, n in enumerate((1, HEADS, QUERIES, KEYS)))
    kept = torch.from_numpy(keep(b.numpy(), h.numpy(), q.numpy(), k.numpy()))

    def attend(query, key, value, bias):
        key, value = (x.repeat_interleave(2, 1) for x in (key, value))
        scores = (query @ key.transpose(2, 3) * query.shape[3] ** -0.5 + bias).masked_fill(~kept, -float("inf"))
        weights = torch.where(kept.any(-1, keepdim=True), scores, 0).softmax(-1) * kept
        return weights @ value

    for without_lists in (False, True):
        for of_bias in (False, True):
            for mask in (flash.causal(), lambda b, h, q, k: k <= q + KEYS - QUERIES):
                leaves = [array.clone().requires_grad_() for array in arrays]
                leaf = bias.clone().requires_grad_(of_bias)
                lists = given._replace(query_indices=None, query_counts=None) if without_lists else given
                actual = flash.attention(*leaves, mask=mask, score=lambda s, b, h, q, k: s + leaf[k], blocks=lists)  # noqa: B023
                expected = attend(*leaves, leaf)
                torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
                wanted = leaves + [leaf] * of_bias
                grads = [torch.autograd.grad(output.square().sum(), wanted) for output in (actual, expected)]
                torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
