"""Keys and values of 8 bits, beside the same call on arrays of 16 bits: the results have the same bits."""

import numpy as np
import pytest

import flash_mlir as flash

ml_dtypes = pytest.importorskip("ml_dtypes")
F8 = ml_dtypes.float8_e4m3fn
FACTORS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def draw(rng, shape, dtype):
    if dtype is np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8), 1 / 64
    return rng.standard_normal(shape).astype(np.float32).astype(dtype), 1.0


def dequantize(array, scale, dtype):
    return (array.astype(np.float32) * scale).astype(dtype)


def same(got, expected):
    return got.dtype == expected.dtype and got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", FACTORS)
@pytest.mark.parametrize("element", [F8, np.int8])
@pytest.mark.parametrize("kind", ["number", "tensor", "head", "row"])
def test_batch(dtype, element, kind):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 6, 5, 48)).astype(FACTORS[dtype])
    (k, unit), (v, _) = draw(rng, (2, 3, 77, 48), element), draw(rng, (2, 3, 77, 32), element)
    shape = {"number": (), "tensor": (1, 1), "head": (2, 3), "row": (2, 3, 77)}[kind]
    scales = [(unit * rng.uniform(0.5, 2, shape)).astype(np.float32) for _ in "kv"]
    wide = [scale.reshape(scale.shape + (1,) * (4 - scale.ndim)) if scale.ndim > 1 else scale for scale in scales]
    expected = flash.attention(q, *(dequantize(x, s, q.dtype) for x, s in zip((k, v), wide)), mask=flash.causal(), return_lse=True)
    given = [float(scale) if kind == "number" else scale for scale in scales]
    got = flash.attention(q, k, v, mask=flash.causal(), return_lse=True, key_scale=given[0], value_scale=given[1])
    assert all(map(same, got, expected))


def make_pages(rng, element, rows=16):
    lengths = np.array([50, 0, 33], np.int32)
    table = rng.permutation(16)[:12].reshape(3, 4).astype(np.int32)
    (k, unit), (v, _) = draw(rng, (16, rows, 2, 32), element), draw(rng, (16, rows, 2, 32), element)
    return k, v, unit, table, lengths


@pytest.mark.parametrize("element", [F8, np.int8])
@pytest.mark.parametrize("kind", ["tensor", "head", "row"])
@pytest.mark.parametrize("are_packed", [False, True])
def test_pages(element, kind, are_packed):
    rng = np.random.default_rng(1)
    k, v, unit, table, lengths = make_pages(rng, element)
    q = rng.standard_normal((11, 4, 32) if are_packed else (3, 4, 2, 32)).astype(np.float16)
    shape = {"tensor": (1,), "head": (3, 2), "row": (16, 16, 2)}[kind]
    scales = [(unit * rng.uniform(0.5, 2, shape)).astype(np.float32) for _ in "kv"]
    of_pages = []
    for scale in scales:
        if kind == "head":
            # No two sequences share a page here.
            full = np.ones((16, 2), np.float32)
            full[table] = scale[:, None]
            scale = full[:, None]
        of_pages.append(scale[..., None] if kind != "tensor" else scale)
    options = dict(page_table=table, key_lengths=lengths, mask=flash.causal(), score=lambda s, b, h, q, k: s * 0.5 + 0.01 * k)
    if are_packed:
        options["query_offsets"] = np.array([0, 4, 5, 11], np.int32)
    expected = flash.attention(q, *(dequantize(x, s, q.dtype) for x, s in zip((k, v), of_pages)), **options)
    got = flash.attention(q, k, v, key_scale=scales[0], value_scale=scales[1], **options)
    assert same(got, expected)


def test_packed_keys():
    rng = np.random.default_rng(2)
    q, offsets = rng.standard_normal((9, 4, 32)).astype(np.float16), np.array([0, 20, 50], np.int32)
    k, v = (draw(rng, (50, 2, 32), F8)[0] for _ in "kv")
    scales = rng.uniform(0.5, 2, (2, 2)).astype(np.float32)
    of_rows = np.repeat(scales, [20, 30], axis=0)[..., None]
    options = dict(query_offsets=np.array([0, 3, 9], np.int32), key_offsets=offsets, mask=flash.causal())
    expected = flash.attention(q, dequantize(k, of_rows, q.dtype), dequantize(v, of_rows, q.dtype), **options)
    assert same(flash.attention(q, k, v, key_scale=scales, value_scale=scales, **options), expected)
    with pytest.raises(ValueError, match=r"key_scale has the shape \(2, 50, 1\); expected a number or one element, \(2, 2\), one for each sequence and key head$"):
        flash.attention(q, k, v, key_scale=np.ones((2, 50, 1), np.float32), value_scale=1, **options)


def test_values_alone_and_captured_arrays():
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((2, 2, 4, 16)).astype(np.float16), rng.standard_normal((2, 2, 40, 16)).astype(np.float16)
    v, _ = draw(rng, (2, 2, 40, 16), F8)
    bias, keep, sink = rng.standard_normal(40).astype(np.float32), rng.random(40) < 0.7, rng.standard_normal(2).astype(np.float16)
    options = dict(mask=lambda b, h, q, k: keep[k], score=lambda s, b, h, q, k: s + bias[k], sink=sink, lengths=np.array([40, 17]))
    expected = flash.attention(q, k, dequantize(v, 0.25, q.dtype), **options)
    out = np.empty_like(expected)
    assert same(flash.attention(q, k, v, value_scale=0.25, out=out, **options), expected) and same(out, expected)


def test_doors_of_flash_attention():
    rng = np.random.default_rng(4)
    q = rng.standard_normal((2, 3, 4, 32)).astype(np.float16)
    k, v = (draw(rng, (2, 40, 2, 32), F8)[0] for _ in "kv")
    scale = rng.uniform(0.5, 2, (2, 2)).astype(np.float32)
    expected = flash.flash_attn_func(q, dequantize(k, scale[:, None, :, None], q.dtype), v.astype(np.float16), causal=True)
    assert same(flash.flash_attn_func(q, k, v, causal=True, k_descale=scale), expected)
    # As in FlashAttention, which has no int8.
    assert same(flash.flash_attn_func(q, k, v), flash.flash_attn_func(q, k.astype(q.dtype), v.astype(q.dtype)))
    with pytest.raises(ValueError, match="^v is int8, and k_descale and v_descale are left out"):
        flash.flash_attn_func(q, k.astype(q.dtype), v.view(np.int8))
    with pytest.raises(TypeError, match="k_descale is a bool; expected a number or an array"):
        flash.flash_attn_func(q, k, v, k_descale=True)
    with pytest.raises(ValueError, match=r"^k_descale has the shape \(2, 40, 2\); .* or \(2, 2, 40\), one for each row of k$"):
        flash.flash_attn_func(q, k, v, k_descale=np.ones((2, 40, 2), np.float32))
    with pytest.raises(ValueError, match="q_descale is given, and it is the scale of queries of 8 bits in a batch"):
        flash.flash_attn_func(q, k, v, q_descale=scale, k_descale=scale)
    packed = [x.astype(F8)[0] for x in (q, k, v)]
    with pytest.raises(ValueError, match="^q is float8_e4m3fn, and there are arrays of sequences; queries of 8 bits are of a batch"):
        flash.flash_attn_varlen_func(*packed, np.array([0, 3]), np.array([0, 40]))
    k, v, _, table, lengths = make_pages(rng, F8)
    rows = rng.standard_normal((11, 4, 32)).astype(np.float16)
    options = dict(cu_seqlens_q=np.array([0, 4, 5, 11], np.int32), seqused_k=lengths, block_table=table, causal=True)
    expected = flash.flash_attn_varlen_func(rows, dequantize(k, 0.5, q.dtype), dequantize(v, 2, q.dtype), **options)
    assert same(flash.flash_attn_varlen_func(rows, k, v, k_descale=0.5, v_descale=2.0, **options), expected)
    options["seqused_k"] = np.array([65, 0, 33], np.int32)
    with pytest.raises(ValueError, match=r"^seqused_k\[0\] is 65; lengths are from 0 to 64, the rows that block_table has room for$"):
        flash.flash_attn_varlen_func(rows, k, v, k_descale=0.5, **options)


@pytest.mark.parametrize("element", [F8, np.int8])
@pytest.mark.parametrize("place", ["batch", "chosen", "pages"])
def test_cache(element, place):
    """Caches to which keys of 8 bits are appended, beside caches of what they stand for."""
    rng = np.random.default_rng(6)
    (k, unit), (v, _) = draw(rng, (5, 32, 2, 32), element), draw(rng, (5, 32, 2, 16), element)
    new = [draw(rng, (2, 3, 2, dim), element)[0] for dim in (32, 16)]
    q, lengths = rng.standard_normal((2, 3, 4, 32)).astype(np.float16), np.array([7, 29], np.int32)
    where = {"batch": {}, "chosen": dict(cache_batch_idx=np.array([3, 1])), "pages": dict(block_table=np.array([[4], [2]], np.int32))}[place]
    if place == "batch":
        k, v = k[:2].copy(), v[:2].copy()
    scales = (unit * rng.uniform(0.5, 2, 2)).astype(np.float32)
    options = dict(cache_seqlens=lengths, causal=True, return_softmax_lse=True, **where)
    wide = [dequantize(x, s, q.dtype) for x, s in zip((k, v, *new), (*scales, *scales))]
    expected = flash.flash_attn_with_kvcache(q, *wide, **options)
    got = flash.flash_attn_with_kvcache(q, k, v, *new, k_descale=float(scales[0]), v_descale=scales[1:], **options)
    assert all(map(same, got, expected))
    assert all(same(dequantize(x, s, q.dtype), w) for x, s, w in zip((k, v), scales, wide))
    # Without splits a sequence has the same bits alone.
    if place == "pages":
        apart = dict(k_descale=1, v_descale=unit, causal=True, num_splits=1)
        both = flash.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths + 3, **where, **apart)
        first = {name: x[:1] for name, x in where.items()}
        assert same(flash.flash_attn_with_kvcache(q[:1], k, v, cache_seqlens=lengths[:1] + 3, **first, **apart)[0], both[0])
    # What is wrong is said with the names that callers know, before something is written.
    before = k.copy()
    with pytest.raises(ValueError, match=r"^k_descale has the shape \(3,\); expected a number or one element, \(2, 2\), one for each sequence and key head"):
        flash.flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=lengths - 3, k_descale=np.ones(3, np.float32), v_descale=1, **where)
    with pytest.raises(ValueError, match="q_descale is given, and it is the scale of queries of 8 bits in a batch"):
        flash.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, q_descale=1, k_descale=1, **where)
    with pytest.raises(TypeError, match=f"k has the dtype float16, k_cache {k.dtype}; they must agree"):
        flash.flash_attn_with_kvcache(q, k, v, wide[2], wide[3], cache_seqlens=lengths, k_descale=1, **where)
    with pytest.raises(ValueError, match="alibi_slopes has size 3 in dimension 0, where h goes from 0 to 3"):
        flash.flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=lengths - 3, k_descale=1, alibi_slopes=np.zeros(3, np.float32), **where)
    for out in (np.empty((2, 3, 4, 16), np.float32), np.broadcast_to(np.float16(0), (2, 3, 4, 16))):
        with pytest.raises((TypeError, ValueError), match="^out "):
            flash.flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=lengths - 3, k_descale=1, out=out, **where)
    with pytest.raises(ValueError, match="out has the shape"):
        flash.flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=lengths - 3, k_descale=1, out=np.empty((2, 3, 4, 8), np.float16), **where)
    assert same(k, before)
    # Scales that are left out are 1 where FlashAttention has the elements.
    unscaled = dict(cache_seqlens=lengths, causal=True, **where)
    if element is F8:
        as_16 = [x.astype(q.dtype) for x in (k, v)]
        assert same(flash.flash_attn_with_kvcache(q, k, v, **unscaled), flash.flash_attn_with_kvcache(q, *as_16, **unscaled))
    else:
        with pytest.raises(ValueError, match="^k_cache is int8, and k_descale and v_descale are left out"):
            flash.flash_attn_with_kvcache(q, k, v, **unscaled)
    # One of them has 16 bits, and no scale.
    options.update(v_descale=float(scales[1]))
    got = flash.flash_attn_with_kvcache(q, wide[0], v, wide[2], new[1], **options)
    del options["v_descale"]
    assert all(map(same, got, flash.flash_attn_with_kvcache(q, *wide, **options)))


def arrays(**changes):
    rng = np.random.default_rng(5)
    made = dict(query=rng.standard_normal((1, 2, 3, 16)).astype(np.float16))
    made |= {name: draw(rng, (1, 2, 8, 16), F8)[0] for name in ("key", "value")}
    return made | dict(key_scale=1, value_scale=1) | changes


@pytest.mark.parametrize(
    "changes, error, message",
    [
        (dict(query=np.zeros((1, 2, 3, 16), np.float32)), TypeError, "query has the dtype float32; with key_scale or value_scale float16 and bfloat16"),
        (dict(key_scale=None), ValueError, "key is float8_e4m3fn, and key_scale, by which it is dequantized, is missing"),
        (dict(value_scale=None), ValueError, "value is float8_e4m3fn, and value_scale, by which it is dequantized, is missing"),
        (dict(key_scale=None, value_scale=None), TypeError, "key is float8_e4m3fn of shape .*, and key_scale, by which it is dequantized, is missing"),
        (dict(key=np.zeros((1, 2, 8, 16), np.uint8)), TypeError, "key has the dtype uint8, and key_scale is given; float8_e4m3fn .* and int8 are"),
        (dict(key=np.zeros((1, 2, 8, 16), np.float16)), TypeError, "key has the dtype float16, and key_scale is given"),
        (dict(value=np.zeros((1, 2, 8, 16), np.float32), value_scale=None), TypeError, "value has the dtype float32, query float16; they must agree"),
        (dict(key_scale=np.ones((3,), np.float32)), ValueError, r"key_scale has the shape \(3,\); expected a number or one element, \(1, 2\), one for .* or \(1, 2, 8\), one for each row of key"),
        (dict(key_scale=np.ones((1, 3), np.float32)), ValueError, r"key_scale has the shape \(1, 3\)"),
        (dict(key_scale=np.ones((1, 2), np.int32)), TypeError, "key_scale has the dtype int32; expected floating-point numbers"),
        (dict(key_scale="1"), TypeError, "key_scale is a str; expected a number or an array"),
        (dict(query=np.zeros((2, 3, 16), np.float16)), ValueError, "query has 3 dimensions; with key_scale or value_scale it is"),
        (dict(blocks=1), ValueError, "key_scale or value_scale is given beside blocks"),
        (dict(key_lengths=np.array([9], np.int32)), ValueError, r"key_lengths\[0\] is 9; lengths are from 0 to 8"),
        (dict(query=np.zeros((1, 2, 3, 32), np.float16)), ValueError, "key has head dimension 16, query has 32; they must agree"),
        (dict(lengths=np.array([8, 8])), ValueError, r"lengths is .*; expected integers of shape \(1,\), one for each batch"),
    ],
)
def test_errors(changes, error, message):
    with pytest.raises(error, match=message):
        flash.attention(**arrays(**changes))


def test_errors_of_pages():
    rng = np.random.default_rng(6)
    k, v, _, table, lengths = make_pages(rng, F8)
    q = np.zeros((3, 4, 2, 32), np.float16)
    table[2, 1] = 16
    with pytest.raises(ValueError, match=r"page_table\[2, 1\] is 16, of a page in which there are keys; such pages are from 0 to 15"):
        flash.attention(q, k, v, key_scale=1, value_scale=1, page_table=table, key_lengths=lengths)
    table[2, 1] = 15
    with pytest.raises(ValueError, match=r"value is float16 of shape \(9, 16, 2, 32\), key .*; the numbers of pages must agree"):
        flash.attention(q, k, v[:9], key_scale=1, value_scale=1, page_table=table, key_lengths=lengths)
    with pytest.raises(ValueError, match="value has length 8, key has 16; they must agree"):
        flash.attention(q, k, v[:, :8], key_scale=1, value_scale=1, page_table=table, key_lengths=lengths)
    dim = np.zeros((3, 4, 2, 12), np.float16)
    with pytest.raises(ValueError, match="query has head dimension 12; with key_scale or value_scale multiples of 8 up to 576 are possible"):
        flash.attention(dim, k[..., :12], v, key_scale=1, value_scale=1, page_table=table[:2], key_lengths=lengths[:2])


def test_errors_of_sequences():
    """What arrays on the host say is looked at as that of keys of 16 bits is: nothing is read out of range, and no gradient is lost."""
    rng = np.random.default_rng(8)
    q, offsets = rng.standard_normal((11, 4, 32)).astype(np.float16), np.array([0, 20, 50], np.int32)
    k, v = (draw(rng, (50, 2, 32), np.int8)[0] for _ in "kv")
    bias = np.zeros(30, np.float32)
    options = dict(query_offsets=np.array([0, 4, 11], np.int32), score=lambda s, b, h, q, k: s + bias[k], key_scale=1, value_scale=1)
    flash.attention(q, k, v, key_offsets=offsets, **options)
    for wrong, message in [([0, 20, 51], r"key_offsets\[2\] is 51"), ([0, 51, 50], r"key_offsets\[1\] is 51"), ([5, 3, 50], r"key_offsets\[1\] is 3, after 5")]:
        with pytest.raises(ValueError, match=f"{message}; offsets do not decrease and are from 0 to 50, the rows of key"):
            flash.attention(q, k, v, key_offsets=np.array(wrong, np.int32), **options)
    bias = np.zeros(29, np.float32)
    with pytest.raises(ValueError, match="bias has size 29 in dimension 0, where k goes from 0 to 29 in sequence 1"):
        flash.attention(q, k, v, key_offsets=offsets, **options)


def test_checks():
    table, places = np.arange(7, dtype=np.float32), np.arange(8)
    options = arrays(score=lambda s, b, h, q, k: s + table[places[k]])
    with flash.checks():
        flash.attention(**arrays())
        with pytest.raises(ValueError, match="table is read out of range: the index of dimension 0 is not below its size, 7"):
            flash.attention(**options)
        with pytest.raises(ValueError, match="lengths has 9 for batch 0, and there are 8 keys"):
            flash.attention(**arrays(lengths=np.array([9])))


def test_pytorch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 32).half(), torch.randn(2, 2, 40, 32).to(torch.float8_e4m3fn), torch.randn(2, 2, 40, 32).to(torch.float8_e4m3fn)
    scale = torch.rand(2, 2) + 0.5
    expected = flash.attention(q, (k.float() * scale[..., None, None]).half(), (v.float() * 0.5).half())
    got = flash.attention(q, k, v, key_scale=scale, value_scale=torch.tensor(0.5))
    assert isinstance(got, torch.Tensor) and torch.equal(got, expected)
    with pytest.raises(NotImplementedError, match="query requires gradients, and there are none of attention with keys and values of 8 bits"):
        flash.attention(q.requires_grad_(), k, v, key_scale=1, value_scale=1)
    bias = torch.zeros(40, requires_grad=True)
    options = dict(score=lambda s, b, h, q, k: s + bias[k], key_scale=scale, value_scale=0.5)
    with pytest.raises(NotImplementedError, match="bias requires gradients, and there are none of attention with keys and values of 8 bits"):
        flash.attention(q.detach(), k, v, **options)
    with torch.no_grad():
        assert torch.equal(flash.attention(q, k, v, key_scale=scale, value_scale=0.5), expected)
        torch.testing.assert_close(flash.attention(q, k, v, **options), expected)
    with pytest.raises(TypeError, match="and key_scale, by which it is dequantized, is missing"):
        flash.attention(q.detach(), k, v)
    with pytest.raises(TypeError, match="and key_scale, .* is missing; the function flash_mlir.attention takes one"):
        flash.Attention(flash.causal())(q.detach(), k, v)
    with pytest.raises(TypeError, match="query is float8_e4m3fn of shape .* and query_scale, by which it is dequantized, is missing"):
        flash.attention(k, k, v)


@pytest.mark.parametrize("dtype", [None, *FACTORS])
@pytest.mark.parametrize("kind", ["number", "tensor", "head"])
def test_queries(dtype, kind):
    """On the CPU queries are dequantized, too. Without `out` results are bfloat16."""
    rng = np.random.default_rng(7)
    (q, _), (k, _), (v, _) = draw(rng, (2, 6, 5, 48), F8), draw(rng, (2, 3, 77, 48), F8), draw(rng, (2, 3, 77, 32), F8)
    shapes = {"number": [()] * 3, "tensor": [(1, 1)] * 3, "head": [(2, 6), (2, 3), (2, 3)]}[kind]
    scales = [rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]
    element = FACTORS[dtype or "bfloat16"]
    wide = [dequantize(x, s.reshape(s.shape + (1, 1)) if s.ndim else s, element) for x, s in zip((q, k, v), scales)]
    expected = flash.attention(*wide, mask=flash.causal(), return_lse=True, score=lambda s, b, h, q, k: s + 0.01 * (k - q))
    given = dict(zip(("query_scale", "key_scale", "value_scale"), [float(s) if kind == "number" else s for s in scales]))
    out = np.empty((2, 6, 5, 32), element) if dtype else None
    got = flash.attention(q, k, v, mask=flash.causal(), return_lse=True, out=out, score=lambda s, b, h, q, k: s + 0.01 * (k - q), **given)
    assert all(map(same, got, expected))
    assert out is None or got[0] is out


def test_queries_of_flash_attention():
    rng = np.random.default_rng(8)
    (q, _), (k, _), (v, _) = draw(rng, (2, 5, 6, 32), F8), draw(rng, (2, 40, 3, 32), F8), draw(rng, (2, 40, 3, 32), F8)
    scales = [rng.uniform(0.5, 2, (2, 3)).astype(np.float32) for _ in "qkv"]
    # One for the queries of a head of keys.
    wide = [dequantize(x, s.repeat(x.shape[2] // 3, 1)[:, None, :, None], ml_dtypes.bfloat16) for x, s in zip((q, k, v), scales)]
    names = "q_descale", "k_descale", "v_descale"
    assert same(flash.flash_attn_func(q, k, v, causal=True, **dict(zip(names, scales))), flash.flash_attn_func(*wide, causal=True))
    one = [x.astype(ml_dtypes.bfloat16) for x in (q, k, v)]
    assert same(flash.flash_attn_func(q, k, v), flash.flash_attn_func(*one))
    with pytest.raises(TypeError, match="^k has the dtype bfloat16, q float8_e4m3fn; they must agree$"):
        flash.flash_attn_func(q, *one[1:])
    for count in (0, 2, 7):
        with pytest.raises(ValueError, match=rf"q_descale has the shape \(2, {count}\); expected a number or one element, \(2, 6\), one for each sequence and head"):
            flash.flash_attn_func(q, k, v, q_descale=np.ones((2, count), np.float32))


@pytest.mark.parametrize(
    "changes, error, message",
    [
        (dict(query_scale=None), ValueError, "query is float8_e4m3fn, and query_scale, by which it is dequantized, is missing"),
        (dict(query=np.zeros((1, 2, 3, 16), np.float16)), TypeError, "query has the dtype float16, and query_scale is given"),
        (dict(query=np.zeros((1, 2, 3, 16), np.float32), query_scale=None), TypeError, "and float8_e4m3fn with query_scale"),
        (dict(key=np.zeros((1, 2, 9, 16), np.int8)), TypeError, "query is float8_e4m3fn, and key has the dtype int8; they must agree"),
        (dict(value_scale=np.ones((1, 2, 9), np.float32)), ValueError, r"value_scale has the shape \(1, 2, 9\), one for each row; beside queries"),
        (dict(key_lengths=np.full(1, 9, np.int32)), ValueError, "query is float8_e4m3fn, and there are arrays of sequences"),
        (dict(scale=0.0), ValueError, "scale is 0.0; beside queries of 8 bits it is positive"),
        (dict(out=np.empty((1, 2, 3, 16), np.float32)), TypeError, "out has the dtype float32; expected bfloat16, as results have"),
    ],
)
def test_errors_of_queries(changes, error, message):
    arrays = dict(query=np.zeros((1, 2, 3, 16), F8), key=np.zeros((1, 2, 9, 16), F8), value=np.zeros((1, 2, 9, 16), F8))
    with pytest.raises(error, match=message):
        flash.attention(**{**arrays, "query_scale": 1, "key_scale": 1, "value_scale": 1, **changes})
