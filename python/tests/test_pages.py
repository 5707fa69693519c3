"""Keys and values in pages: caches in any order of their dimensions, as those of serving engines are, beside a loop in fp64."""

import json

import numpy as np
import pytest
from conftest import TOLERANCE, reference

import flash_mlir as flash
from flash_mlir import _core, flash_attn, programs

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


HEADS, KEY_HEADS, QUERIES, PAGE = 4, 2, 5, 16
# As long as the table has room for, of no keys, ending in a page and with one, of fewer keys than there are queries.
LENGTHS = [20, 0, 64, 1, 48, 3]
# Sequences share pages; what stands behind the last one is never read.
PAGES = [[7, 3], [], [0, 7, 5, 1], [19], [2, 2, 4], [6]]
QUERY_OFFSETS = [2, 3, 5, 5, 40, 41, 45]


def make_cache(rng, dtype="float32", dim=64, value_dim=64, order="heads_inside", page=PAGE):
    """Pages (pages, page, heads, D) of which all that no sequence has is NaN, and the table, whose other entries are of no page."""
    table = np.array([own + [-1, 10**9, 2**31 - 1, -(2**31)][: 4 - len(own)] for own in PAGES], np.int32)
    used = np.zeros((20, page), bool)
    for own, length in zip(PAGES, LENGTHS):
        for place, page_number in enumerate(own):
            used[page_number, : max(0, length - place * page)] = True
    shape = {"heads_inside": (20, page, KEY_HEADS), "heads_outside": (20, KEY_HEADS, page), "rows_outside": (page, KEY_HEADS, 20)}[order]
    to_cache = {"heads_inside": (0, 1, 2, 3), "heads_outside": (0, 2, 1, 3), "rows_outside": (2, 0, 1, 3)}[order]
    both = rng.standard_normal((*shape, dim + value_dim)).astype("float32").astype(dtype).transpose(to_cache)
    both[~used] = np.nan
    return both[..., :dim], both[..., dim:], table


def loop(query, key, value, table, lengths=LENGTHS, keep=None, score=None, sink=None, scale=None, query_offsets=None):
    """Attention of each sequence in fp64. Functions get the lengths and the number of the sequence in place of b."""
    packed = query if query_offsets is not None else np.concatenate(query.swapaxes(1, 2))
    count = len(lengths)
    ends = query_offsets if query_offsets is not None else np.arange(count + 1) * query.shape[2]
    output = np.zeros((*packed.shape[:2], value.shape[3]))
    lse = np.full(packed.shape[1::-1], -np.inf)
    for b in range(count):
        rows, m = slice(ends[b], ends[b + 1]), lengths[b]
        n = rows.stop - rows.start
        used = table[b, : -(-m // key.shape[1])]
        keys, values = (np.concatenate([x[:0].reshape(0, *x.shape[2:]), *x[used]])[:m] for x in (key, value))
        parts = [x[None].swapaxes(1, 2) for x in (packed[rows], keys, values)]
        kept = keep and (lambda _, h, q, k: keep(q, k, n, m))  # noqa: B023
        scored = score and (lambda s, _, h, q, k: score(s, b, h, q, k, n, m))  # noqa: B023
        found, of_rows = reference(*parts, kept, scored, scale, sink=sink)
        output[rows], lse[:, rows] = found[0].swapaxes(0, 1), of_rows[0]
    if query_offsets is not None:
        return output, lse
    return output.reshape(count, -1, *output.shape[1:]).swapaxes(1, 2), lse.reshape(len(lse), count, -1).swapaxes(0, 1)


def check(actual, expected, dtype="float32"):
    for array, wanted in zip(actual, expected):
        array = np.asarray(array, np.float64)
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def draw_queries(rng, is_packed, dtype="float32", dim=64):
    shape = (QUERY_OFFSETS[-1] + 3, HEADS, dim) if is_packed else (len(LENGTHS), HEADS, QUERIES, dim)
    return rng.standard_normal(shape).astype("float32").astype(dtype)


@pytest.mark.parametrize("order", ["heads_inside", "heads_outside", "rows_outside"])
@pytest.mark.parametrize("is_packed", [False, True], ids=["batch", "packed"])
def test_numpy(rng, order, is_packed):
    query = draw_queries(rng, is_packed)
    key, value, table = make_cache(rng, order=order, value_dim=48)
    lengths = np.array(LENGTHS, np.int32)
    options = dict(query_offsets=np.array(QUERY_OFFSETS)) if is_packed else {}
    offsets = QUERY_OFFSETS if is_packed else None
    actual = flash.attention(query, key, value, page_table=table, key_lengths=lengths, return_lse=True, **options)
    check(actual, loop(query, key, value, table, query_offsets=offsets))
    causal = flash.attention(query, key, value, flash.causal(), page_table=table, key_lengths=lengths, return_lse=True, **options)
    check(causal, loop(query, key, value, table, keep=lambda q, k, n, m: k <= q + m - n, query_offsets=offsets))
    if is_packed:
        assert (causal[0][45:] == 0).all() and (causal[0][:2] == 0).all() and np.isneginf(causal[1][:, 45:]).all()
    else:
        assert (causal[0][1] == 0).all() and np.isneginf(causal[1][1]).all()
    attend = flash.Attention(flash.causal(), return_lse=True)
    again = attend(query, key, value, page_table=table, key_lengths=lengths, **options)
    assert all((x == y).all() for x, y in zip(again, causal))
    text = attend.mlir(query, key, value, page_table=table, key_lengths=lengths, **options)
    assert "flash.unpage %value by %page_table lengths(%key_lengths : tensor<?xi32>) : tensor<?x?x16x48xf32>" in text
    double = [x.astype(np.float64) for x in (query, key, value)]
    check(flash.attention(*double, flash.causal(), page_table=table, key_lengths=lengths, return_lse=True, **options), causal)


@pytest.mark.parametrize("is_packed", [False, True], ids=["batch", "packed"])
def test_functions(rng, is_packed):
    """Functions see positions inside of the sequence and its lengths."""
    query = draw_queries(rng, is_packed)
    key, value, table = make_cache(rng)
    per_key, slopes = rng.standard_normal(64).astype("float32"), rng.standard_normal(len(LENGTHS)).astype("float32")
    bias, sink = np.float32(0.3), rng.standard_normal(HEADS).astype("float32")
    bias = np.array(bias)

    def score(s, b, h, q, k):
        return 5 * flash.tanh(s / 5) + per_key[k] * slopes[b] + bias * h * (q + flash.key_length - flash.query_length - k)

    def expected(s, b, h, q, k, n, m):
        return 5 * np.tanh(s / 5) + per_key[k] * slopes[b] + bias * h * (q + m - n - k)

    options = dict(page_table=table, key_lengths=np.array(LENGTHS, np.int32), sink=sink, scale=0.2, return_lse=True)
    options.update(dict(query_offsets=np.array(QUERY_OFFSETS)) if is_packed else {})
    wanted = dict(sink=sink, scale=0.2, query_offsets=QUERY_OFFSETS if is_packed else None)
    actual = flash.attention(query, key, value, mask=flash.window(left=20, right=3), score=score, **options)
    kept = lambda q, k, n, m: (k >= q + m - n - 20) & (k <= q + m - n + 3)
    check(actual, loop(query, key, value, table, keep=kept, score=expected, **wanted))
    ids = rng.integers(0, 3, 64)
    actual = flash.attention(query, key, value, lambda b, h, q, k: (ids[k] == q % 3) | (k < 2), **options)
    check(actual, loop(query, key, value, table, keep=lambda q, k, n, m: (ids[k] == q % 3) | (k < 2), **wanted))
    # Fewer than those that there are.
    fewer = np.array([4, 1, 64, 0, 20, 3])
    actual = flash.attention(query, key, value, lengths=fewer, **options)
    hidden = lambda s, b, h, q, k, n, m: np.where(k < fewer[b], s, -np.inf)
    check(actual, loop(query, key, value, table, score=hidden, **wanted))
    per_key = per_key[:63]
    with pytest.raises(ValueError, match="per_key has size 63 in dimension 0, where k goes from 0 to 63 in sequence 2"):
        flash.attention(query, key, value, score=score, **options)


def test_large_cache(rng):
    """Of pages that are copied for the CPU, only those of the sequences are: these do not fit into memory."""
    page = rng.standard_normal((1, PAGE, KEY_HEADS, 64)).astype("float32")
    cache = np.broadcast_to(page, (10**9, *page.shape[1:]))
    table, query = np.array([[10**9 - 1, 5]], np.int32), rng.standard_normal((1, HEADS, 1, 64)).astype("float32")
    options = dict(page_table=table, key_lengths=np.array([20], np.int32), return_lse=True)
    actual = flash.attention(query, cache, cache, **options)
    check(actual, loop(query, cache, cache, table, [20]))
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(x) for x in (query, page)]
    options = dict(page_table=torch.from_numpy(table), key_lengths=torch.tensor([20], dtype=torch.int32), return_lse=True)
    cache = tensors[1].expand(10**9, -1, -1, -1)
    check(flash.attention(tensors[0], cache, cache, **options), actual)


@pytest.mark.parametrize("dtype, page", [("float16", 16), ("bfloat16", 32), ("float32", 8)])
def test_tensors(rng, dtype, page):
    torch = pytest.importorskip("torch")
    key, value, table = make_cache(rng, page=page)
    lengths = [min(length, page * len(own)) for length, own in zip(LENGTHS, PAGES)]
    query = draw_queries(rng, False)
    to = lambda array: torch.from_numpy(np.ascontiguousarray(array)).to(getattr(torch, dtype))
    query, both = to(query), to(np.concatenate([key, value], -1).swapaxes(1, 2))
    # Keys and values side by side, with the heads outside.
    key, value = both.transpose(1, 2).split(64, -1)
    options = dict(page_table=torch.from_numpy(table), key_lengths=torch.tensor(lengths, dtype=torch.int32))
    expected = loop(*(x.double().numpy() for x in (query, key, value)), table, lengths, keep=lambda q, k, n, m: k <= q + m - n)

    def attend(query, key, value, page_table, key_lengths):
        return flash.attention(query, key, value, flash.causal(), return_lse=True, page_table=page_table, key_lengths=key_lengths)

    actual = attend(query, key, value, **options)
    assert actual[0].dtype == query.dtype
    check((actual[0].double(), actual[1]), expected, dtype)
    # Of a table with more columns, as a slice.
    wide = torch.cat([options["page_table"], options["page_table"]], 1)[:, :4]
    assert torch.equal(attend(query, key, value, wide, options["key_lengths"])[0], actual[0])
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, compiled(query, key, value, **options), actual))
    kept = flash.Attention(flash.causal(), return_lse=True)
    compiled = torch.compile(lambda *x: kept(*x, **options), backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, compiled(query, key, value), actual))
    with torch.device("meta"):
        meta = attend(*(x.to("meta") for x in (query, key, value)), **{name: x.to("meta") for name, x in options.items()})
    assert [x.shape for x in meta] == [x.shape for x in actual]
    with flash.checks():
        assert all(map(torch.equal, attend(query, key, value, **options), actual))


def test_no_gradients(rng):
    torch = pytest.importorskip("torch")
    key, value, table = (torch.from_numpy(np.ascontiguousarray(array)) for array in make_cache(rng))
    query = torch.from_numpy(draw_queries(rng, False)).requires_grad_()
    options = dict(page_table=table, key_lengths=torch.tensor(LENGTHS, dtype=torch.int32))
    attend = lambda x: flash.attention(x, key, value, **options)
    for call in (attend, torch.compile(attend, backend="aot_eager")):
        with pytest.raises(Exception, match="no gradients of keys in pages .*; call it under torch.no_grad"):
            call(query)
    with torch.no_grad():
        assert torch.equal(attend(query), attend(query.detach()))


@pytest.mark.parametrize("is_packed", [False, True], ids=["batch", "packed"])
def test_lengths_of_a_batch(rng, is_packed):
    """A cache without pages, of which so many keys are there: causal masks are aligned to these, other than with `lengths`."""
    query = draw_queries(rng, is_packed)
    key, value = rng.standard_normal((2, len(LENGTHS), KEY_HEADS, 70, 64)).astype("float32")
    for b, length in enumerate(LENGTHS):
        key[b, :, length:] = value[b, :, length:] = np.nan
    table = np.arange(len(LENGTHS))[:, None]
    rows = key.swapaxes(1, 2), value.swapaxes(1, 2)
    options = dict(key_lengths=np.array(LENGTHS, np.int32), **(dict(query_offsets=np.array(QUERY_OFFSETS)) if is_packed else {}))
    actual = flash.attention(query, key, value, flash.causal(), return_lse=True, **options)
    keep = lambda q, k, n, m: k <= q + m - n
    check(actual, loop(query, *rows, table, keep=keep, query_offsets=QUERY_OFFSETS if is_packed else None))
    with pytest.raises(ValueError, match=r"key_lengths\[2\] is 71; lengths are from 0 to 70, the rows that key has"):
        flash.attention(query, key, value, **{**options, "key_lengths": np.array([20, 0, 71, 1, 48, 3], np.int32)})


def test_gradients_of_lengths(rng):
    torch = pytest.importorskip("torch")
    lengths = torch.tensor([20, 0, 33], dtype=torch.int32)
    leaves = [torch.randn(3, heads, n, 64, dtype=torch.float64, requires_grad=True) for heads, n in ((4, 5), (2, 33), (2, 33))]
    arrays = [leaf.detach().float().requires_grad_() for leaf in leaves]
    output = flash.attention(*arrays, flash.causal(), key_lengths=lengths)
    output_grad = torch.randn_like(output)
    grads = torch.autograd.grad(output, arrays, output_grad)
    query, key, value = leaves
    parts = []
    for b, length in enumerate(lengths.tolist()):
        keys, values = (x[b, :, :length].repeat_interleave(2, 0) for x in (key, value))
        q, k = torch.arange(5)[:, None], torch.arange(length)
        scores = (query[b] @ keys.mT / 8).masked_fill(k > q + length - 5, -torch.inf)
        parts.append(scores.softmax(-1) @ values if length else query[b] * 0)
    wanted = torch.autograd.grad(torch.stack(parts), leaves, output_grad.double())
    for grad, other in zip(grads, wanted):
        torch.testing.assert_close(grad.double(), other, rtol=1e-4, atol=1e-5)
    output, lse = flash.attention(*[x.detach() for x in arrays], flash.causal(), key_lengths=lengths, return_lse=True)
    given = [x.detach().numpy() for x in (*arrays, output, lse, output_grad)]
    for grad, other in zip(flash.attention_grad(*given, flash.causal(), key_lengths=lengths.numpy()), grads):
        np.testing.assert_array_equal(grad, other)


def test_one_kernel(rng):
    """Other tables, lengths and numbers of pages need no other kernel, and a sequence has the bits that it has alone."""
    query = draw_queries(rng, False)
    key, value, table = make_cache(rng)
    lengths = np.array(LENGTHS, np.int32)
    whole = flash.attention(query, key, value, flash.causal(), page_table=table, key_lengths=lengths)
    count = len(flash.cache._kernels)
    for b in range(len(LENGTHS)):
        part = slice(b, b + 1)
        alone = flash.attention(query[part], key, value, flash.causal(), page_table=table[part], key_lengths=lengths[part])
        assert (alone == whole[part]).all()
    moved = [np.concatenate([x[10:], x[:10]]) for x in (key, value)]
    other = flash.attention(query, *moved, flash.causal(), page_table=np.where(lengths[:, None] > 0, (table + 10) % 20, table).astype(np.int32),
                            key_lengths=lengths)
    assert (other == whole).all() and len(flash.cache._kernels) == count
    nothing = flash.attention(query[:0], key, value, flash.causal(), page_table=table[:0], key_lengths=lengths[:0])
    assert nothing.shape == (0, HEADS, QUERIES, 64)


def test_versions():
    """On a GPU a call takes the version for its batch, queries and the room of its table, with what functions read before that."""
    bias, table = np.zeros(3, np.float32), np.array(1.0, np.float32)
    attend = flash.Attention(flash.causal(), lambda s, b, h, q, k: s + bias[b] * table)
    for packed in ((None, 16), ("i32", 16)):
        for index, lengths in ((0, {}), (3, {"lengths": True})):
            config = programs.with_packing(attend._configs[index], packed)
            sizes = [[4, 32, 1, 128], [4, 8, 16, 128], [4, 8, 16, 128], [4, 200]]
            chosen = programs.choose_sizes(json.loads(config), "sm_90a", sizes)
            text = programs.print_program(config, "bf16", 4, 128, 128)
            version = _core.Kernel.specialize(text, "sm_90a", "", "", chosen)
            assert "packed_heads = 4" in version and "split_ctas = " in version


@pytest.mark.parametrize("target, page", [("sm_90a", 16), ("sm_90a", 48), ("sm_80", 64)])
@pytest.mark.parametrize("is_packed", [False, True], ids=["batch", "packed"])
def test_emulated(rng, target, page, is_packed):
    """Versions for GPUs, with heads that share tiles, of programs as Python writes them."""
    key, value, table = make_cache(rng, "float16", page=page)
    lengths = np.array([min(length, page * len(own)) for length, own in zip(LENGTHS, PAGES)], np.int32)
    query, sink = draw_queries(rng, is_packed, "float16"), rng.standard_normal(HEADS).astype("float32")
    per_key, factor = rng.standard_normal(4 * page).astype("float32"), np.array(0.5, np.float32)
    attend = flash.Attention(flash.causal(), lambda s, b, h, q, k: s + per_key[k] * factor, return_lse=True)
    config = programs.with_packing(attend._configs[1], ("i64" if is_packed else None, page))
    sizes = [[6, HEADS, 5, 64], [6, KEY_HEADS, page, 64], [6, KEY_HEADS, page, 64], [6, 4]]
    sizes = programs.choose_sizes(json.loads(config), target, sizes)
    text = _core.Kernel.specialize(programs.print_program(config, "f16", 4, 64, 64), target, "", "", sizes)
    assert "packed_heads = 2" in text
    arrays = [query.swapaxes(0, 1)[None] if is_packed else query, *turn(key, value), sink, per_key, factor]
    arrays += [np.array(QUERY_OFFSETS)] if is_packed else []
    output, lse = flash.compile(text, target="emulate:sm_90a" if target == "sm_90a" else "emulate")(*arrays, table, lengths)
    expected = loop(
        query, key, value, table, lengths, lambda q, k, n, m: k <= q + m - n,
        lambda s, b, h, q, k, n, m: s + per_key[k] * 0.5, sink, query_offsets=QUERY_OFFSETS if is_packed else None,
    )  # fmt: skip
    if not is_packed:
        return check((output, lse), expected, "float16")
    rows = slice(QUERY_OFFSETS[0], QUERY_OFFSETS[-1])
    check((output[0].swapaxes(0, 1)[rows], lse[0][:, rows]), (expected[0][rows], expected[1][:, rows]), "float16")


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("page", [16, 48])
def test_bits(rng, target, page):
    """With num_splits=1 a sequence has the bits that it has alone, whatever the version that a GPU takes."""
    columns, ends, lengths = 336 // page, np.array([0, 1, 4, 9], np.int32), np.array([330, 100, 7], np.int32)
    key, value = rng.standard_normal((2, 3 * columns, page, KEY_HEADS, 64)).astype("float16")
    table = rng.permutation(3 * columns).reshape(3, columns).astype(np.int32)
    query = rng.standard_normal((9, HEADS, 64)).astype("float16")
    schedule = flash_attn.get_schedule(1, key, True)
    config = programs.with_packing(programs.with_schedules(flash.Attention(flash.causal())._configs[0], schedule, None), ("i32", page))

    def compile(batch, length):
        text = programs.print_program(config, "f16", 4, 64, 64)
        if batch:
            caches = [[batch, KEY_HEADS, page, 64]] * 2
            sizes = programs.choose_sizes(json.loads(config), target, [[batch, HEADS, length, 64], *caches, [batch, columns]])
            text = _core.Kernel.specialize(text, target, "", "", sizes)
        return flash.compile(text, target="emulate:sm_90a" if target == "sm_90a" else "emulate")

    def run(kernel, first, last):
        rows = query[ends[first] : ends[last]].swapaxes(0, 1)[None]
        given = ends[first : last + 1] - ends[first], table[first:last], lengths[first:last]
        return kernel(rows, *turn(key, value), *given)[0].swapaxes(0, 1)

    whole = run(compile(400, 3), 0, 3)
    for version in ((1, 1), (0, 0)):
        kernel = compile(*version)
        for first in range(3):
            assert (run(kernel, first, first + 1) == whole[ends[first] : ends[first + 1]]).all()


@pytest.mark.parametrize("dtype, page, tile", [("float16", None, 64), ("float32", None, 32), ("float16", 16, 64), ("float16", 40, 80),
                                               ("float16", 72, 144), ("float16", 80, 16), ("float16", 256, 64), ("float32", 8, 32)])
def test_tile_without_splits(dtype, page, tile):
    """It is a part of a page or some of them, and a multiple of 16."""
    key = np.zeros((1, page or 1, 1, 8), dtype)
    assert flash_attn.get_schedule(1, key, page is not None) == f"key_tile={tile},split_keys={2**20 // tile * tile}"


def test_refusals(rng):
    query = draw_queries(rng, False)
    key, value, table = make_cache(rng)
    lengths = np.array(LENGTHS, np.int32)

    def refuse(error, match, arrays=(query, key, value), call=flash.attention, **changes):
        options = {**dict(page_table=table, key_lengths=lengths), **changes}
        with pytest.raises(error, match=match):
            call(*arrays, **options)

    refuse(TypeError, "page_table has the dtype int64; expected int32", page_table=table.astype(int))
    refuse(TypeError, "key_lengths is a list; expected an array of int32", key_lengths=LENGTHS)
    refuse(ValueError, "page_table has 1 dimensions; expected 2: the pages of each sequence", page_table=table[0])
    refuse(ValueError, "page_table is given without key_lengths", key_lengths=None)
    refuse(ValueError, "key_lengths and key_offsets are given", key_offsets=np.zeros(7, int))
    refuse(ValueError, "key has 3 dimensions; with page_table it is .pages, rows of a page, heads", arrays=(query, key[0], value[0]))
    refuse(ValueError, "value is .*; the numbers of pages must agree", arrays=(query, key, value[:3]))
    refuse(ValueError, "value has length 8, key has 16", arrays=(query, key, value[:, :8]))
    refuse(ValueError, "queries are of 5 sequences and keys of 6", arrays=(query[:5], key, value))
    refuse(ValueError, "key_lengths is int32 of shape .5.*; expected one for each of the 6 sequences", key_lengths=lengths[:5])
    refuse(ValueError, r"key_lengths\[2\] is 65; lengths are from 0 to 64, the rows that page_table has", key_lengths=lengths + np.int32(1))
    refuse(ValueError, r"key_lengths\[1\] is -1", key_lengths=lengths - np.int32(1))
    refuse(ValueError, r"page_table\[0, 1\] is -2, of a page in which there are keys; such pages are from 0 to 19", page_table=table - np.int32(5))
    refuse(ValueError, "and key has no pages", arrays=(query, key[:0], value[:0]))
    refuse(ValueError, "key has pages of no rows", arrays=(query, key[:, :0], value[:, :0]))
    refuse(ValueError, "query has head dimension 12; with page_table multiples of 8", arrays=(query[..., :12], key[..., :12], value))
    long = np.zeros((20, 129, KEY_HEADS, 64), np.float32)
    refuse(flash.CompileError, "129 rows", arrays=(query, long, long))
    refuse(ValueError, "page_table, key_lengths or offsets are given beside blocks", blocks=1)
    plan = flash.plan(flash.causal(), query, query)
    refuse(ValueError, "page_table, key_lengths or offsets are given beside a plan", mask=plan)


def turn(*arrays):
    return [array.swapaxes(1, 2) for array in arrays]


def test_varlen_functions(rng):
    """Those of FlashAttention and of PyTorch, with tables, used keys, and both beside offsets."""
    key, value, table = make_cache(rng)
    lengths, offsets = np.array(LENGTHS, np.int32), np.array(QUERY_OFFSETS, np.int32)
    packed, batch = draw_queries(rng, True), draw_queries(rng, False)
    keep = lambda q, k, n, m: (k <= q + m - n) & (k >= q + m - n - 9)
    slopes = rng.random((len(LENGTHS), HEADS)).astype("float32")
    sink = rng.standard_normal(HEADS).astype("float32")
    score = lambda s, b, h, q, k, n, m: 2 * np.tanh(s / 2) - slopes[b, h] * abs(q + m - n - k)
    options = dict(causal=True, window_size=(9, -1), softcap=2.0, alibi_slopes=slopes, learnable_sink=sink, return_lse=True)
    expected = loop(packed, key, value, table, keep=keep, score=score, sink=sink, query_offsets=QUERY_OFFSETS)
    call = flash.flash_attn_varlen_func
    check(call(packed, key, value, offsets, None, 35, 64, block_table=table, seqused_k=lengths, **options), expected)
    ends = np.concatenate([[0], np.cumsum(LENGTHS)])
    for cumulative in (ends, ends.astype(np.int32)):
        check(call(packed, key, value, offsets, cumulative, 35, 64, block_table=table, **options), expected)
    output, lse = loop(batch, key, value, table, keep=keep, score=score, sink=sink)
    check(call(turn(batch)[0], key, value, None, None, 5, 64, block_table=table, seqused_k=lengths, **options), (*turn(output), lse))
    torch_options = dict(window_size=(9, 0), enable_gqa=True, return_aux=type("AuxRequest", (), {"lse": True}))
    expected = loop(packed, key, value, table, keep=keep, query_offsets=QUERY_OFFSETS)
    check(flash.varlen_attn(packed, key, value, offsets, None, 35, 64, block_table=table, seqused_k=lengths, **torch_options), expected)
    # A batch of caches, of which so many keys are there, and the same behind each other, with room behind each.
    keys, values = (np.full((len(LENGTHS), 70, KEY_HEADS, 64), np.nan, np.float32) for _ in range(2))
    for b, length in enumerate(LENGTHS):
        for cache, rows in ((key, keys), (value, values)):
            rows[b, :length] = np.concatenate([cache[:0].reshape(0, KEY_HEADS, 64), *cache[PAGES[b]]])[:length]
    check(flash.varlen_attn(packed, keys, values, offsets, None, 35, 64, seqused_k=lengths, **torch_options), expected)
    slots = np.concatenate(keys), np.concatenate(values), offsets, np.arange(0, 70 * 6 + 1, 70)
    check(flash.varlen_attn(packed, *slots, 35, 64, seqused_k=lengths, **torch_options), expected)
    full = flash.varlen_attn(packed, *slots, 35, 64, seqused_k=lengths, enable_gqa=True)
    check((full,), loop(packed, key, value, table, query_offsets=QUERY_OFFSETS)[:1])
    unsplit = flash.varlen_attn(packed, *slots, 35, 64, seqused_k=lengths, num_splits=1, **torch_options)
    check(unsplit, expected)
    expected = loop(packed, key, value, table, keep=keep, score=score, sink=sink, query_offsets=QUERY_OFFSETS)
    check(call(packed, *slots, 35, 64, seqused_k=lengths, **options), expected)
    for changes, kind, match in (
        (dict(cu_seq_k=ends, seqused_k=lengths, num_splits=4), ValueError, "num_splits is 4; only 0 is possible"),
        (dict(), ValueError, "cu_seq_q, and cu_seq_k or seqused_k, are needed"),
        (dict(seqused_k=lengths.astype(int)), TypeError, "seqused_k has the dtype int64; expected int32"),
        (dict(seqused_k=lengths, block_table=table.astype(int)), TypeError, "block_table has the dtype int64; expected int32"),
    ):
        with pytest.raises(kind, match=match):
            flash.varlen_attn(**{**dict(query=packed, key=key, value=value, cu_seq_q=offsets, cu_seq_k=None, block_table=table,
                                        enable_gqa=True), **changes})
    with pytest.raises(ValueError, match="block_table is given without seqused_k"):
        call(packed, key, value, offsets, block_table=table)


NEW = 3


def make_new(rng, *heads_and_dims):
    return [rng.standard_normal((len(LENGTHS), NEW, *each)).astype("float32") for each in heads_and_dims]


def to_torch(*arrays):
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(np.array(array)) for array in arrays]


@pytest.mark.parametrize("kind", ["numpy", "torch", "compiled"])
def test_kv_cache_in_pages(rng, kind):
    """New keys and values are written into the pages, of which those behind the lengths were NaN, and seen."""
    _, _, table = make_cache(rng)
    lengths = np.array([29, 0, 60, 1, 45, 3], np.int32)
    table[0, :2], table[1, 0], table[3, 0], table[4, :3], table[5, 0] = [7, 3], 8, 19, [2, 11, 4], 6
    table[2] = [0, 9, 5, 1]
    both = rng.standard_normal((20, KEY_HEADS, PAGE, 128)).astype("float32").transpose(0, 2, 1, 3)
    for b, length in enumerate(lengths):
        for at in range(length, 64):
            if 0 <= table[b, at // PAGE] < 20:
                both[table[b, at // PAGE], at % PAGE] = np.nan
    q, k, v = make_new(rng, (HEADS, 64), (KEY_HEADS, 64), (KEY_HEADS, 64))
    expected = both.copy()
    for b, length in enumerate(lengths):
        for i in range(NEW):
            page = expected[table[b, (length + i) // PAGE], (length + i) % PAGE]
            page[:, :64], page[:, 64:] = k[b, i], v[b, i]
    if kind == "numpy":
        cache, arrays = both, (q, k, v, lengths, table)
    else:
        cache, *arrays = to_torch(both, q, k, v, lengths, table)
    q, k, v, given, blocks = arrays

    def call(cache, q, k, v, given, blocks):
        options = dict(cache_seqlens=given, block_table=blocks, causal=True, window_size=(30, 0), return_softmax_lse=True)
        return flash.flash_attn_with_kvcache(q, cache[..., :64], cache[..., 64:], k, v, **options)

    if kind == "compiled":
        import torch

        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    output, lse = call(cache, q, k, v, given, blocks)
    np.testing.assert_array_equal(np.asarray(cache), expected)
    keep = lambda q, k, n, m: (k <= q + m - n) & (k >= q + m - n - 30)
    new_lengths = [int(length) + NEW for length in lengths]
    wanted, rows = loop(np.asarray(q).swapaxes(1, 2), expected[..., :64], expected[..., 64:], table, new_lengths, keep=keep)
    check((output, lse), (*turn(wanted), rows))
    # They are there now.
    again = flash.flash_attn_with_kvcache(
        q, cache[..., :64], cache[..., 64:], cache_seqlens=given + NEW, block_table=blocks, causal=True, window_size=(30, 0)
    )
    assert (again == output).all()
    unsplit = flash.flash_attn_with_kvcache(
        q, cache[..., :64], cache[..., 64:], cache_seqlens=given + NEW, block_table=blocks, causal=True, window_size=(30, 0), num_splits=1
    )
    check((unsplit,), turn(wanted))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("chosen", [None, [3, 0, 5, 4, 1, 7]], ids=["in_order", "chosen"])
def test_kv_cache_of_a_batch(rng, kind, chosen):
    lengths = np.array([13, 0, 60, 1, 45, 3], np.int32)
    rows = np.arange(6) if chosen is None else np.array(chosen)
    caches = rng.standard_normal((2, 6 if chosen is None else 8, 64, KEY_HEADS, 64)).astype("float32")
    for b, length in enumerate(lengths):
        caches[:, rows[b], length:] = np.nan
    q, k, v = make_new(rng, (HEADS, 64), (KEY_HEADS, 64), (KEY_HEADS, 64))
    expected = caches.copy()
    for b, length in enumerate(lengths):
        expected[0, rows[b], length : length + NEW], expected[1, rows[b], length : length + NEW] = k[b], v[b]
    table, leftpad = rows[:, None].astype(np.int32), np.array([2, 0, 3, 0, 1, 1])
    new_lengths = [int(length) + NEW for length in lengths]
    given = [caches, q, k, v, lengths, leftpad, None if chosen is None else table[:, 0]]
    if kind == "torch":
        *given, index = to_torch(*given[:-1], table[:, 0])
        given.append(index if chosen else None)
    caches, q, k, v, seqlens, padding, index = given
    slopes = rng.random(HEADS).astype("float32")
    of_scores = dict(softcap=2.0, alibi_slopes=slopes if kind == "numpy" else to_torch(slopes)[0], softmax_scale=0.1)
    options = dict(cache_batch_idx=index, causal=True, cache_leftpad=padding, return_softmax_lse=True, **of_scores)
    actual = flash.flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=seqlens, **options)
    np.testing.assert_array_equal(np.asarray(caches), expected)

    def score(s, b, h, q, k, n, m):
        return np.where(k >= leftpad[b], 2 * np.tanh(s / 2) - slopes[h] * abs(q + m - n - k), -np.inf)

    queries = np.asarray(q).swapaxes(1, 2)
    causal = dict(keep=lambda q, k, n, m: k <= q + m - n, score=score, scale=0.1)
    wanted = loop(queries, *expected, table, new_lengths, **causal)
    check(actual, (*turn(wanted[0]), wanted[1]))
    # A number for all, and all that there is room for, without new ones.
    caches[caches != caches] = 0.5
    for count in (5, None):
        actual = flash.flash_attn_with_kvcache(q, *caches, cache_seqlens=count, **options)
        wanted = loop(queries, *np.asarray(caches), table, [64 if count is None else count] * 6, **causal)
        check(actual, (*turn(wanted[0]), wanted[1]))
    empty = flash.flash_attn_with_kvcache(q, *caches, cache_seqlens=0, cache_batch_idx=index)
    assert (empty == 0).all()


def test_kv_cache_refuses(rng):
    key, value, table = make_cache(rng)
    lengths = np.array(LENGTHS, np.int32)
    q, k, v = make_new(rng, (HEADS, 64), (KEY_HEADS, 64), (KEY_HEADS, 64))

    def refuse(kind, match, **changes):
        before = key.copy()
        options = {**dict(q=q, k_cache=key, v_cache=value, k=k, v=v, cache_seqlens=lengths, block_table=table), **changes}
        with pytest.raises(kind, match=match):
            flash.flash_attn_with_kvcache(**options)
        np.testing.assert_array_equal(key, before)

    refuse(NotImplementedError, "rotate q, and k, by their positions", rotary_cos=q)
    refuse(ValueError, "num_splits is 3; only 0 is possible", num_splits=3, cache_seqlens=lengths * 0)
    refuse(ValueError, "window_size has -3", window_size=(-3, 0), cache_seqlens=lengths * 0)
    refuse(ValueError, "q has 3 dimensions; expected 4", q=q[0])
    refuse(ValueError, "k and v belong together", v=None)
    refuse(ValueError, "k is given without cache_seqlens", cache_seqlens=None)
    refuse(TypeError, "cache_seqlens has the dtype int64; expected int32", cache_seqlens=lengths.astype(int))
    refuse(ValueError, "cache_batch_idx is given beside block_table", cache_batch_idx=lengths)
    refuse(ValueError, r"k has the shape .6, 3, 2, 32.; expected .6, 'new keys', 2, 64.", k=k[..., :32])
    refuse(TypeError, "v has the dtype float16, v_cache float32", v=v.astype(np.float16))
    refuse(ValueError, "all but the last must agree", v_cache=value[:5])
    refuse(ValueError, "k_cache has 20 rows and q 6; cache_batch_idx, or block_table", block_table=None)
    refuse(ValueError, "new keys are the ones from 0 to 66 of their sequences, and there is room for 64")
    refuse(ValueError, "block_table has -1 to .* for new keys; pages of k_cache are from 0 to 19", cache_seqlens=np.minimum(lengths, 60))
    refuse(ValueError, "cache_batch_idx has 0 to 25 for new keys; rows of k_cache are from 0 to 19", block_table=None, cache_seqlens=0,
           cache_batch_idx=np.arange(6) * 5)
    refuse(ValueError, "k has 3 new keys and v 1; they must agree", v=v[:, :1], cache_seqlens=lengths * 0)
    refuse(TypeError, "k is a list; expected an array of shape .6, 'new keys', 2, 64.", k=[1])
    for name, array in dict(cache_seqlens=lengths[:1], block_table=table[:1], cache_leftpad=lengths[:1]).items():
        refuse(ValueError, f"{name} is of 1 sequences, and q of 6; they must agree", **{name: array})
    refuse(TypeError, "cache_seqlens is a float; expected an array of int32 of shape .batch,., or an integer", cache_seqlens=2.0)
    for number in (-1, 65, 2**40):
        refuse(ValueError, f"cache_seqlens is {number}; lengths are from 0 to 64", cache_seqlens=number, k=None, v=None)
    refuse(TypeError, "cache_leftpad is float64 of shape .6,.; expected integers of shape .batch,.", cache_leftpad=lengths * 1.0)
    rows = dict(block_table=None, k=None, v=None, cache_seqlens=1)
    refuse(ValueError, "cache_batch_idx is of 1 sequences", **rows, cache_batch_idx=lengths[:1])
    refuse(TypeError, "cache_batch_idx is a list; expected integers of shape .batch,.", **rows, cache_batch_idx=[0] * 6)
    for array in (lengths * 1.0, lengths > 0, lengths[:, None]):
        refuse(TypeError, "cache_batch_idx is .* of shape .6,.*; expected integers of shape .batch,.", **rows, cache_batch_idx=array)
    for number in (-1, 20, 2**32):
        refuse(ValueError, rf"^cache_batch_idx\[2\] is {number}; rows of k_cache are from 0 to 19$", **rows,
               cache_batch_idx=np.array([0, 0, number, 0, 0, 0]))
    refuse(ValueError, r"k_cache has the shape .20, 0, 2, 64.; cache_batch_idx chooses from at least one row of at least one key",
           **{**rows, "cache_seqlens": 0}, k_cache=key[:, :0], v_cache=value[:, :0], cache_batch_idx=lengths)
    uneven = [rng.standard_normal((2, 257, KEY_HEADS, 64)).astype(np.float32) for _ in range(2)]
    refuse(flash.CompileError, r"^k_cache has rows of 257 keys, .* none may be of 257 keys; the nearest length is 256\. Allocate caches of",
           **rows, k_cache=uneven[0], v_cache=uneven[1], cache_batch_idx=lengths * 0)
    # What attention refuses, or the compiler.
    room = dict(cache_seqlens=lengths * 0 + 1, block_table=np.abs(table) % 20)
    refuse(TypeError, "k_cache is float32 .*, q float16 .*; the dtypes must agree", **room, q=q.astype(np.float16))
    refuse(ValueError, "q has 3 heads, k_cache has 2", **room, q=q[:, :, :3])
    refuse(ValueError, "k_cache has head dimension 64, q has 32", **room, q=q[..., :32])
    refuse(ValueError, "sink is float32 of shape .3,.", **room, learnable_sink=np.zeros(3, np.float32))
    refuse(ValueError, "alibi_slopes has size 3 in dimension 0, where h goes from 0 to 3", **room, alibi_slopes=np.zeros(3, np.float32))
    refuse(flash.TraceError, "the truth of a traced value is known only when the kernel runs", **room, score=lambda s, b, h, q, k: s if s > 0 else -s)
    refuse(ValueError, "scale is inf", **room, softmax_scale=np.inf)
    refuse(ValueError, r"block_table\[0, 0\] is -1, of a page in which", cache_seqlens=lengths * 0 + 16,
           block_table=np.where(np.arange(4) == 0, -1, room["block_table"]).astype(np.int32))
    odd = rng.standard_normal((2, 3, 129, KEY_HEADS, 64), np.float32)
    before = odd.copy()
    with pytest.raises(flash.CompileError):
        flash.flash_attn_with_kvcache(q, *odd, k, v, cache_seqlens=lengths * 0, block_table=np.zeros((6, 1), np.int32))
    np.testing.assert_array_equal(odd, before)
    q, k, v, key, value, table, lengths = to_torch(q, k, v, np.ascontiguousarray(key), np.ascontiguousarray(value), table, lengths)
    refuse_torch = dict(q=q.requires_grad_(), k_cache=key, v_cache=value, cache_seqlens=lengths, block_table=table)
    with pytest.raises(NotImplementedError, match="flash_attn_with_kvcache has no gradients.*torch.no_grad"):
        flash.flash_attn_with_kvcache(**refuse_torch)
    with pytest.raises(ValueError, match="block_table has -1 to .* for new keys"), __import__("torch").no_grad():
        flash.flash_attn_with_kvcache(k=k, v=v, **{**refuse_torch, "cache_seqlens": lengths.clamp(max=60)})


def test_nothing_waits(rng):
    """What a call of tensors on CUDA asks PyTorch for, none of which may be a number: that would wait for the device."""
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.device("cuda"):
        caches = torch.empty(20, PAGE, KEY_HEADS, 128).split(64, -1)
        q, new = torch.empty(6, 1, HEADS, 64), torch.empty(6, 1, KEY_HEADS, 64)
        lengths, table, offsets = (torch.empty(shape, dtype=torch.int32) for shape in ((6,), (6, 4), (7,)))
        for options in (dict(block_table=table), dict(cache_batch_idx=lengths), dict(block_table=table, cache_leftpad=lengths)):
            for cache_seqlens in (lengths, 3):
                output = flash.flash_attn_with_kvcache(q, *caches, new, new, cache_seqlens=cache_seqlens, causal=True, **options)
                assert output.shape == q.shape and output.is_cuda
        rows = caches[0][:6]
        output, lse = flash.flash_attn_with_kvcache(q, rows, rows, cache_seqlens=lengths, return_softmax_lse=True)
        assert output.shape == q.shape and lse.shape == (6, HEADS, 1)
        packed = torch.empty(9, HEADS, 64)
        for options in (dict(seqused_k=lengths), dict(cu_seqlens_k=offsets)):
            output = flash.flash_attn_varlen_func(packed, *caches, offsets, block_table=table, causal=True, **options)
            assert output.shape == packed.shape


def test_errors_name_what_the_caller_wrote(rng):
    """FlashAttention's names of tables, offsets and lengths in place of those of `attention`."""
    query, token = rng.standard_normal((5, 4, 32), np.float32), rng.standard_normal((2, 1, 4, 32), np.float32)
    pages, rows = rng.standard_normal((4, 16, 2, 32), np.float32), rng.standard_normal((30, 2, 32), np.float32)
    offsets, ends, table, lengths = np.int32([0, 2, 5]), np.int32([0, 3, 30]), np.int32([[0, 1], [1, 2]]), np.int32([3, 20])
    wrong = np.int32([[0, 1], [1, 9]])
    varlen, cached = flash.flash_attn_varlen_func, flash.flash_attn_with_kvcache

    def of_torch(*arguments, **options):
        return flash.varlen_attn(*arguments, enable_gqa=True, **options)

    of_page = r"\[1, 1\] is 9, of a page in which there are keys; such pages are from 0 to 3"
    for call, arguments, options, kind, message in (
        (varlen, (query, pages, pages, offsets), dict(block_table=wrong, seqused_k=lengths), ValueError, f"^block_table{of_page}"),
        (of_torch, (query, pages, pages, offsets, None), dict(block_table=wrong, seqused_k=lengths), ValueError, f"^block_table{of_page}"),
        (cached, (token, pages, pages), dict(block_table=wrong, cache_seqlens=lengths), ValueError, f"^block_table{of_page}"),
        (
            cached, (token, pages, pages), dict(cache_batch_idx=np.int32([0, 7]), cache_seqlens=np.int32([3, 4])), ValueError,
            r"^cache_batch_idx\[1\] is 7; rows of k_cache are from 0 to 3$",
        ),
        (
            cached, (token, pages, pages), dict(block_table=table, cache_seqlens=np.int32([3, 40])), ValueError,
            r"^cache_seqlens\[1\] is 40; lengths are from 0 to 32, the rows that block_table has room for",
        ),
        (
            varlen, (query, pages, pages, offsets), dict(block_table=table, seqused_k=np.int32([3, 40])), ValueError,
            r"^seqused_k\[1\] is 40; lengths are from 0 to 32, the rows that block_table has room for",
        ),
        (
            varlen, (query, pages, pages, offsets, np.int32([0, 3, 43])), dict(block_table=table), ValueError,
            r"^\(cu_seqlens_k\[1:\] - cu_seqlens_k\[:-1\]\)\[1\] is 40; lengths are from 0 to 32, the rows that block_table has",
        ),
        (varlen, (query, pages, pages, offsets, np.float32(ends)), dict(block_table=table), TypeError, "^cu_seqlens_k has the dtype float32"),
        (varlen, (query, rows, rows, offsets, np.int32([0, 3, 40])), {}, ValueError, r"^cu_seqlens_k\[2\] is 40; offsets do not decrease"),
        (of_torch, (query, rows, rows, offsets, np.int32([0, 3, 40])), {}, ValueError, r"^cu_seq_k\[2\] is 40; offsets do not decrease"),
        (varlen, (query, rows, rows, offsets[None], ends), {}, ValueError, "^cu_seqlens_q has 2 dimensions; expected 1"),
        (of_torch, (query, rows, rows, offsets + 1, ends), {}, ValueError, r"^cu_seq_q\[2\] is 6; offsets do not decrease"),
        (varlen, (query, rows, rows, offsets, ends), dict(seqused_k=np.int32([3])), ValueError, r"^seqused_k is int32 of shape \(1,\); expected"),
        (
            varlen, (query, rows, rows, offsets, ends), dict(seqused_k=np.int32([3, 28])), ValueError,
            r"^seqused_k\[1\] is 28; lengths are from 0 to 27, the keys that cu_seqlens_k has for the sequence",
        ),
        (
            of_torch, (query, rows, rows, offsets, ends), dict(seqused_k=np.int32([-1, 2])), ValueError,
            r"^seqused_k\[0\] is -1; lengths are from 0 to 3, the keys that cu_seq_k has for the sequence",
        ),
    ):  # fmt: skip
        with pytest.raises(kind, match=message):
            call(*arguments, **options)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(x) for x in (query, rows, rows, offsets, ends)]
    with pytest.raises(ValueError, match=r"^seqused_k\[1\] is 28; lengths are from 0 to 27"):
        varlen(*tensors, seqused_k=torch.tensor([3, 28], dtype=torch.int32))
