"""The offsets of documents, from their numbers."""

import numpy as np
import pytest

import flash_mlir as flash

ROW = [0, 0, 0, 2, 2, 3, 7]
BATCH = [[0, 0, 1, 1], [1, 1, 1, 1], [0, 2, 2, 2]]
CASES = [
    (ROW, None, [0, 3, 5, 6, 7]),
    (ROW, 4, [0, 3, 5, 6, 7]),
    (ROW, 6, [0, 3, 5, 6, 7, 7, 7]),
    # A document ends where its row does, also if the next one has the same number.
    (BATCH, None, [0, 2, 4, 8, 9, 12]),
    (BATCH, 6, [0, 2, 4, 8, 9, 12, 12]),
    ([5], None, [0, 1]),
    ([], None, [0]),
    ([], 2, [0, 0, 0]),
    ([[], []], None, [0]),
    ([[], []], 1, [0, 0]),
]


@pytest.mark.parametrize("ids, count, expected", CASES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_offsets(ids, count, expected, dtype):
    offsets = flash.document_offsets(np.array(ids, dtype), count)
    assert offsets.dtype == np.int64 and offsets.tolist() == expected


@pytest.mark.parametrize("ids, count, expected", CASES)
def test_offsets_of_tensors(ids, count, expected):
    torch = pytest.importorskip("torch")
    offsets = flash.document_offsets(torch.tensor(ids, dtype=torch.int32), count)
    assert offsets.dtype == torch.int64 and offsets.tolist() == expected


def test_refusals():
    for ids, count, kind, match in (
        ([0, 0, 1, 0], None, ValueError, r"ids decrease along a row.*; take documents\(ids\) as a mask"),
        ([[0, 1], [1, 0]], 4, ValueError, "ids decrease along a row"),
        (ROW, 3, ValueError, "ids are of 4 documents, and count is 3"),
        (ROW, -1, ValueError, "count is -1; it must not be negative"),
        (ROW, 2.5, TypeError, "count is 2.5; expected an integer"),
        ([[ROW]], None, ValueError, r"ids has 3 dimensions; expected \(length,\) or \(batch, length\)"),
        (0, None, ValueError, "ids has 0 dimensions"),
        ([0.5], None, TypeError, "ids has the dtype float64; expected integers"),
        ([True], None, TypeError, "ids has the dtype bool; expected integers"),
    ):
        with pytest.raises(kind, match=match):
            flash.document_offsets(np.array(ids), count)
    with pytest.raises(TypeError, match="ids is a list; expected an array of integers"):
        flash.document_offsets(ROW)


def test_packed_rows(rng):
    """Packed rows of a batch are what the mask of documents is, also where a bound leaves documents empty."""
    ids = np.sort(rng.integers(0, 5, (3, 40)))
    query, key, value = (rng.standard_normal((3, 2, 40, 16)).astype("float32") for _ in range(3))
    expected = flash.attention(query, key, value, mask=flash.documents(ids) & flash.causal())
    rows = [array.swapaxes(1, 2).reshape(120, 2, 16) for array in (query, key, value)]
    for count in (None, 20):
        offsets = flash.document_offsets(ids, count)
        output = flash.attention(*rows, mask=flash.causal(), query_offsets=offsets, key_offsets=offsets)
        np.testing.assert_allclose(output.reshape(3, 40, 2, 16).swapaxes(1, 2), expected, rtol=1e-5, atol=1e-5)


def test_in_graphs():
    """With a count there is no break, and nobody looks at what ids hold: documents beyond the count have no rows."""
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx

    rows = torch.randn(7, 2, 16)

    def attend(ids, rows):
        offsets = flash.document_offsets(ids, 4)
        return flash.attention(rows, rows, rows, mask=flash.causal(), query_offsets=offsets, key_offsets=offsets), offsets

    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    ids = torch.tensor(ROW)
    for function in (compiled, make_fx(attend)(ids, rows)):
        for each in (ids, torch.tensor([0, 0, 0, 0, 0, 1, 1])):
            assert all(map(torch.equal, function(each, rows), attend(each, rows)))
        output, offsets = function(torch.arange(7), rows)
        assert offsets.tolist() == [0, 1, 2, 3, 4] and (output[4:] == 0).all()
        torch.testing.assert_close(output[:4], rows[:4])
    made = flash.document_offsets(torch.empty(2, 30, dtype=torch.int32, device="meta"), 9)
    assert made.is_meta and made.shape == (10,)


def test_flex_attention():
    """A document mask of FlexAttention, said by offsets: forward and gradients."""
    torch = pytest.importorskip("torch")
    from torch.nn.attention.flex_attention import create_block_mask

    torch.manual_seed(0)
    ids = torch.tensor([[0] * 50 + [1] * 70 + [2] * 8, [0] * 127 + [1]])
    block_mask = create_block_mask(lambda b, h, q, k: (ids[b, q] == ids[b, k]) & (q >= k), 2, None, 128, 128, device="cpu")
    leaves = [torch.randn(2, 128, 2, 16, requires_grad=True) for _ in range(3)]
    query, key, value = (leaf.transpose(1, 2) for leaf in leaves)
    expected = flash.flex_attention(query, key, value, block_mask=block_mask).transpose(1, 2)
    offsets = flash.document_offsets(ids, 8)
    packed = [leaf.flatten(0, 1) for leaf in leaves]
    output = flash.attention(*packed, mask=flash.causal(), query_offsets=offsets, key_offsets=offsets)
    torch.testing.assert_close(output.unflatten(0, (2, 128)), expected, rtol=1e-5, atol=1e-5)
    grads = [torch.autograd.grad(result.square().sum(), leaves) for result in (output, expected)]
    for actual, wanted in zip(*grads):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)
