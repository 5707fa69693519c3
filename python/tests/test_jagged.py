"""Jagged tensors of PyTorch beside packed rows, which they are."""

import pytest

torch = pytest.importorskip("torch")

import flash_mlir as flash  # noqa: E402

HEADS, KEY_HEADS, ROWS, DIM, VALUE_DIM = 4, 2, 12, 16, 24
OFFSETS = torch.tensor([0, 3, 3, 10]), torch.tensor([1, 6, 7, 12], dtype=torch.int32)
SIZES = (HEADS, DIM), (KEY_HEADS, DIM), (KEY_HEADS, VALUE_DIM)


def make_rows(requires_grad=False):
    torch.manual_seed(0)
    return [torch.randn(ROWS, *size, requires_grad=requires_grad) for size in SIZES]


def make_jagged(rows, offsets):
    """(batch, heads, ragged length, D)."""
    return torch.nested.nested_tensor_from_jagged(rows, offsets).transpose(1, 2)


def make_all(rows, offsets=OFFSETS):
    return [make_jagged(array, of) for array, of in zip(rows, (offsets[0], offsets[1], offsets[1]))]


def get_rows(result):
    return result.transpose(1, 2).values()


ENDS = dict(query_offsets=OFFSETS[0], key_offsets=OFFSETS[1])


def differentiate(results, leaves):
    """The gradients of a sum of squares of rows (rows, heads, ...), of which some are -inf."""
    return torch.autograd.grad(sum(rows.nan_to_num(neginf=0).square().sum() for rows in results), leaves)


@pytest.mark.parametrize("is_self", [False, True])
def test_jagged(is_self):
    """Results and gradients have the bits of packed rows, by the function, the object and compiled."""
    offsets = (OFFSETS[0], OFFSETS[0]) if is_self else OFFSETS
    ends = dict(query_offsets=offsets[0], key_offsets=offsets[1])
    rows = make_rows(requires_grad=True)
    sink = torch.randn(HEADS, requires_grad=True)
    attend = flash.Attention(flash.causal(), lambda s, b, h, q, k: s * (b + 1), return_lse=True)

    def call(query, key, value, **options):
        return flash.attention(query, key, value, mask=flash.window(left=4), scale=0.3, sink=sink, return_lse=True, **options)

    for function in (call, attend):
        leaves = [*rows, sink] if function is call else rows
        expected, of_rows = function(*rows, **ends)
        grads = differentiate((expected, of_rows.T), leaves)
        for each in (function, torch.compile(function, backend="aot_eager", fullgraph=True)):
            arrays = make_all(rows, offsets)
            output, lse = each(*arrays)
            assert output.shape == (3, HEADS, arrays[0].shape[2], VALUE_DIM) and lse.shape == output.shape[:3]
            assert output.offsets() is offsets[0]
            assert torch.equal(get_rows(output), expected) and torch.equal(get_rows(lse), of_rows.T)
            found = differentiate((get_rows(output), get_rows(lse)), leaves)
            assert all(map(torch.equal, found, grads))
    with torch.no_grad(), flash.checks():
        assert torch.equal(get_rows(call(*make_all(rows, offsets))[0]), call(*rows, **ends)[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = call(*make_all(rows, offsets))[0]
        assert output.dtype == torch.bfloat16 and torch.equal(get_rows(output), call(*rows, **ends)[0])
    text = attend.mlir(*make_all(rows, offsets))
    assert text == attend.mlir(*rows, **ends) and "flash.unpack %key" in text


def test_leaves():
    """Gradients of jagged leaves are jagged, and what scaled_dot_product_attention gives for each sequence."""
    torch.manual_seed(0)
    parts = [torch.randn(length, HEADS, DIM, requires_grad=True) for length in (3, 1, 7)]
    changes = torch.sin, torch.cos, torch.tanh
    leaf = torch.nested.nested_tensor([part.detach() for part in parts], layout=torch.jagged, requires_grad=True)
    output = flash.attention(*(change(leaf).transpose(1, 2) for change in changes), mask=flash.causal())
    (output * output).transpose(1, 2).values().sum().backward()
    assert leaf.grad.is_nested
    for part, result, grad in zip(parts, output.unbind(), leaf.grad.unbind()):
        query, key, value = (change(part).transpose(0, 1) for change in changes)
        expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        expected.square().sum().backward()
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(grad, part.grad, rtol=1e-5, atol=1e-5)


def test_one_side():
    """A batch as usual on the other side."""
    rows = make_rows()
    query, key, value = make_all(rows)
    queries, keys, values = (torch.randn(3, heads, 5, dim) for heads, dim in SIZES)
    output = flash.attention(queries, key, value)
    assert not output.is_nested and torch.equal(output, flash.attention(queries, *rows[1:], key_offsets=OFFSETS[1]))
    output, lse = flash.attention(query, keys, values, lengths=torch.tensor([5, 2, 4]), return_lse=True)
    options = dict(lengths=torch.tensor([5, 2, 4]), return_lse=True, query_offsets=OFFSETS[0])
    expected, of_rows = flash.attention(rows[0], keys, values, **options)
    assert torch.equal(get_rows(output), expected) and torch.equal(get_rows(lse), of_rows.T)


def test_layouts():
    """The ragged length of a tensor of rows of heads, heads of rows, and a part of a projection."""
    query, key, value = make_rows()
    value = value[..., :DIM].contiguous()
    expected = flash.attention(query, key, value, query_offsets=OFFSETS[0], key_offsets=OFFSETS[0])
    make = lambda x: torch.nested.nested_tensor_from_jagged(x.transpose(0, 1).contiguous(), OFFSETS[0], jagged_dim=2)
    assert torch.equal(get_rows(flash.attention(make(query), make(key), make(value))), expected)
    packed = torch.nested.nested_tensor_from_jagged(torch.cat([query, key, value], 1), OFFSETS[0])
    parts = [part.transpose(1, 2) for part in packed.split([HEADS, KEY_HEADS, KEY_HEADS], 2)]
    assert torch.equal(get_rows(flash.attention(*parts)), expected)
    # FlashAttention's function has heads behind the rows.
    arrays = [torch.nested.nested_tensor_from_jagged(array, OFFSETS[0]) for array in (query, key, value)]
    output, lse = flash.flash_attn_func(*arrays, return_lse=True)
    assert torch.equal(output.values(), expected) and lse.shape == (3, HEADS, output.shape[1])
    # Bounds that are known stay known.
    bounded = torch.nested.nested_tensor_from_jagged(query, OFFSETS[0], min_seqlen=0, max_seqlen=7).transpose(1, 2)
    output = flash.attention(bounded, *(x.transpose(1, 2) for x in arrays[1:]))
    assert (output._maybe_min_seqlen, output._maybe_max_seqlen) == (0, 7)


def test_flex_attention():
    """Without a BlockMask, which is of rows of one length."""
    from torch.nn.attention.flex_attention import create_block_mask

    query, key, value = make_all(make_rows())
    score = lambda s, b, h, q_idx, kv_idx: s + (b + 1) * (q_idx - kv_idx)
    output = flash.flex_attention(query, key, value, score_mod=score, enable_gqa=True)
    assert torch.equal(output.values(), flash.attention(query, key, value, score=score).values())
    block_mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, ROWS, ROWS, device="cpu")
    with pytest.raises(ValueError, match="block_mask is given beside jagged tensors; .* attention.query, key, value, mask=mask_mod"):
        flash.flex_attention(query, key, value, block_mask=block_mask, enable_gqa=True)


def test_nothing_waits():
    """No operator gives a number to the host."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            assert not {"_local_scalar_dense", "item", "nonzero", "equal", "_to_copy"} & {function.overloadpacket.__name__}
            return function(*arguments, **(options or {}))

    rows = make_rows(requires_grad=True)
    expected = flash.attention(*rows, mask=flash.causal(), **ENDS)
    with Watch():
        output = get_rows(flash.attention(*make_all(rows), mask=flash.causal()))
        grads = torch.autograd.grad(output, rows, torch.ones_like(output))
    assert torch.equal(output, expected)
    assert all(map(torch.equal, grads, torch.autograd.grad(expected, rows, torch.ones_like(expected))))


def test_refusals():
    rows = make_rows()
    query, key, value = make_all(rows)
    dense = torch.randn(3, KEY_HEADS, 5, DIM)
    holes = torch.nested.narrow(torch.randn(3, 8, HEADS, DIM), 1, torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5]), layout=torch.jagged)
    blocks = flash.Blocks(*(torch.zeros(1, 1, 1, n, dtype=torch.int32) for n in (1, 2)), (128, 128))
    plan = flash.plan(flash.causal(), dense, dense)
    for arrays, options, kind, match in (
        ((query, key, dense), {}, ValueError, "key is jagged and value is not; they must have the same offsets"),
        ((query, dense, value), {}, ValueError, "value is jagged and key is not"),
        ((dense, dense, value), {}, ValueError, "value is jagged and key is not"),
        ((query, key, make_jagged(rows[2], OFFSETS[1].clone())), {}, ValueError, "key and value have different ragged lengths"),
        ((holes.transpose(1, 2), key, value), {}, ValueError, "query is a jagged tensor with holes"),
        ((query.transpose(1, 2), key, value), {}, ValueError, "query has 4 dimensions, and dimension 1 is ragged; expected .batch,"),
        ((make_jagged(rows[0][..., 0], OFFSETS[0]), key, value), {}, ValueError, "query has 3 dimensions, and dimension 2 is ragged"),
        ((torch.nested.nested_tensor([rows[0]]), key, value), {}, TypeError, "query is a nested tensor"),
        ((query, key, value), dict(query_offsets=OFFSETS[0]), ValueError, "query_offsets or key_offsets are given beside jagged"),
        ((query, key, value), dict(blocks=blocks), ValueError, "jagged tensors are given beside blocks"),
        ((query, key, value), dict(mask=plan), ValueError, "jagged tensors are given beside a plan"),
        ((query, key, value), dict(sink=query), TypeError, "sink is a nested tensor"),
        ((query, make_jagged(rows[1], OFFSETS[1][:3]), make_jagged(rows[2], OFFSETS[1][:3])), {}, ValueError, "different ragged"),
        ((query, *[make_jagged(rows[1], OFFSETS[1][:3])] * 2), {}, ValueError, "queries are of 3 sequences and keys of 2"),
    ):
        with pytest.raises(kind, match=match):
            flash.attention(*arrays, **options)
    with pytest.raises(TypeError, match="query is a nested tensor; a dense one is needed"):
        flash.plan(flash.causal(), query, key, value)
    results = flash.attention(*rows, return_lse=True, **ENDS)
    with pytest.raises(TypeError, match="query is a nested tensor; a dense one is needed"):
        flash.attention_grad(query, key, value, *results, results[0])
