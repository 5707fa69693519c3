"""Arrays that say for each sequence whether it is causal, beside each sequence alone in fp64."""

import numpy as np
import pytest
from conftest import TOLERANCE, reference

import flash_mlir as flash
from flash_mlir import serving

HEADS, KEY_HEADS, DIM, PAGE = 4, 2, 32, 16


@pytest.fixture(params=["numpy", "torch"])
def to(request):
    """Arrays as a library has them."""
    if request.param == "numpy":
        return lambda array: array
    torch = pytest.importorskip("torch")
    return lambda array: torch.from_numpy(np.ascontiguousarray(array))


class Batch:
    """Sequences of random lengths, some of which have no queries or keys, or more queries than keys; which are causal, and what else
    calls have. Rows are (rows, heads, D)."""

    def __init__(self, seed, count=5, equal=None):
        rng = self.rng = np.random.default_rng(seed)
        lengths = rng.choice([0, 1, 3, 17, 33, 60], (2, count))
        self.queries, self.keys = (np.full(count, equal) if equal and side == 0 else lengths[side] for side in (0, 1))
        self.causal = rng.integers(0, 2, count).astype(rng.choice(["bool", "int32"]))
        if self.causal.dtype == np.int32:
            self.causal *= rng.choice([1, -3, 2**31 - 1], count).astype(np.int32)
        self.window = [(-1, -1), (7, -1), (-1, 5), (9, 4), (0, 0), (12, 0)][seed % 6]
        self.softcap = [0.0, 3.0][seed // 2 % 2]
        self.slopes = rng.standard_normal((count, HEADS)).astype(np.float32) if seed % 3 == 1 else None
        self.sink = rng.standard_normal(HEADS).astype(np.float32) if seed % 3 == 2 else None
        self.step = 1 + seed % 2
        self.rows = [self.draw(length, HEADS) for length in self.queries]
        self.cache = [(self.draw(length, KEY_HEADS), self.draw(length, KEY_HEADS)) for length in self.keys]

    def draw(self, rows, heads):
        return self.rng.standard_normal((rows, heads, DIM), np.float32)

    def get_options(self, to):
        """Arguments of FlashAttention's functions."""
        optional = dict(alibi_slopes=self.slopes, learnable_sink=self.sink)
        options = {name: to(array) for name, array in optional.items() if array is not None}
        step = self.step
        return dict(
            causal=to(self.causal), window_size=self.window, softcap=self.softcap, mask=lambda b, h, q, k: (q + k) % 5 != step, **options
        )

    def expect(self, b, keys=None):
        """Output and log-sum-exp of a sequence, (rows, heads, D) and (heads, rows)."""
        n, (key, value) = len(self.rows[b]), self.cache[b] if keys is None else keys
        end = len(key) - n
        left, right = (10**6 if side < 0 else side for side in self.window)
        right = 0 if self.causal[b] else right

        def keep(_, h, q, k):
            return (k >= q + end - left) & (k <= q + end + right) & ((q + k) % 5 != self.step)

        def score(s, _, h, q, k):
            s = self.softcap * np.tanh(s / self.softcap) if self.softcap else s
            return s if self.slopes is None else s - self.slopes[b][h] * abs(q + end - k)

        output, lse = reference(*(x[None].swapaxes(1, 2) for x in (self.rows[b], key, value)), keep, score, sink=self.sink)
        return output[0].swapaxes(0, 1), lse[0]

    def make_pages(self, room=4):
        """(keys, values, table) of pages in a random order; what no sequence has is NaN."""
        pages = self.rng.permutation(len(self.keys) * room)
        table = pages.reshape(-1, room).astype(np.int32)
        caches = np.full((2, len(pages), PAGE, KEY_HEADS, DIM), np.nan, np.float32)
        for b, both in enumerate(self.cache):
            for cache, rows in zip(caches, both):
                for first in range(0, len(rows), PAGE):
                    part = rows[first : first + PAGE]
                    cache[table[b, first // PAGE], : len(part)] = part
        return *caches, table


def check(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE["float32"], atol=TOLERANCE["float32"])


def check_packed(batch, results, starts):
    for b, first in enumerate(starts[:-1]):
        rows = slice(first, starts[b + 1])
        output, lse = batch.expect(b)
        check(results[0][rows], output)
        check(results[1][:, rows], lse)


def get_ends(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


@pytest.mark.parametrize("seed", range(6))
def test_packed(to, seed):
    batch = Batch(seed)
    starts, of_keys = get_ends(batch.queries), get_ends(batch.keys)
    query = np.concatenate(batch.rows)
    key, value = (np.concatenate(parts) for parts in zip(*batch.cache))
    arrays = [to(x) for x in (query, key, value, starts, of_keys)]
    check_packed(batch, flash.flash_attn_varlen_func(*arrays, return_lse=True, **batch.get_options(to)), starts)


@pytest.mark.parametrize("seed", range(12))
def test_pages(to, seed):
    batch = Batch(seed)
    starts = get_ends(batch.queries)
    key, value, table = (to(x) for x in batch.make_pages())
    options = dict(block_table=table, seqused_k=to(batch.keys.astype(np.int32)), return_lse=True, **batch.get_options(to))
    check_packed(batch, flash.flash_attn_varlen_func(to(np.concatenate(batch.rows)), key, value, to(starts), **options), starts)


@pytest.mark.parametrize("seed", range(6))
def test_used_keys(to, seed):
    """Packed keys of which fewer are used than there are between offsets."""
    batch = Batch(seed)
    # The caller's mask sees all keys as the length, so that it is another one; it reads nothing but positions here.
    starts, of_keys = get_ends(batch.queries), get_ends(batch.keys + 3)
    key, value = (np.concatenate([np.concatenate([x, np.full_like(x, np.nan, shape=(3, *x.shape[1:]))]) for x in parts]) for parts in zip(*batch.cache))
    arrays = [to(x) for x in (np.concatenate(batch.rows), key, value, starts, of_keys)]
    options = dict(seqused_k=to(batch.keys.astype(np.int32)), return_lse=True, **batch.get_options(to))
    check_packed(batch, flash.flash_attn_varlen_func(*arrays, **options), starts)


@pytest.mark.parametrize("has_table", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_kvcache(to, seed, has_table):
    """With new keys that are appended, and without."""
    batch = Batch(seed, equal=3)
    new = [batch.draw(2 * 3, KEY_HEADS).reshape(2, 3, KEY_HEADS, DIM) for _ in batch.keys]
    if has_table:
        key, value, table = batch.make_pages(5)
    else:
        key, value = np.full((2, len(batch.keys), 72, KEY_HEADS, DIM), np.nan, np.float32)
        for cache, parts in zip((key, value), zip(*batch.cache)):
            for b, part in enumerate(parts):
                cache[b, : len(part)] = part
    key, value = to(key), to(value)
    options = dict(cache_seqlens=to(batch.keys.astype(np.int32)), return_softmax_lse=True, **batch.get_options(to))
    options.update(dict(block_table=to(table)) if has_table else {})
    query = to(np.stack(batch.rows))
    output, lse = flash.flash_attn_with_kvcache(query, key, value, **options)
    for b in range(len(batch.keys)):
        expected = batch.expect(b)
        check(output[b], expected[0])
        check(lse[b], expected[1])
    output, lse = flash.flash_attn_with_kvcache(query, key, value, *(to(np.stack(x)) for x in zip(*new)), **options)
    for b, both in enumerate(new):
        expected = batch.expect(b, [np.concatenate(parts) for parts in zip(batch.cache[b], both)])
        check(output[b], expected[0])
        check(lse[b], expected[1])


@pytest.mark.parametrize("key_length", [60, 8, 0])
def test_batch(to, rng, key_length):
    """Of `attention`, an `Attention` object and `flash_attn_func`; queries are more than keys, too."""
    query, key, value = (rng.standard_normal((3, heads, n, DIM), np.float32) for heads, n in ((HEADS, 20), (KEY_HEADS, key_length), (KEY_HEADS, key_length)))
    which = np.array([True, False, True])
    for top_left in (False, True):
        mask = flash.causal(top_left, to(which)) & flash.window(left=15, right=6)
        end = 0 if top_left else key_length - 20
        near = lambda q, k: (k - q >= key_length - 20 - 15) & (k - q <= key_length - 20 + 6)  # noqa: B023, E731
        expected = reference(query, key, value, lambda b, h, q, k: near(q, k) & ((which[b] == 0) | (k <= q + end)))  # noqa: B023
        for attend in (flash.Attention(mask, return_lse=True), lambda *arrays: flash.attention(*arrays, mask, return_lse=True)):  # noqa: B023
            for found, wanted in zip(attend(to(query), to(key), to(value)), expected):
                check(found, wanted)
    rows = [to(x.swapaxes(1, 2)) for x in (query, key, value)]
    output = flash.flash_attn_func(*rows, causal=to(which.astype(np.int32)))
    expected, _ = reference(query, key, value, lambda b, h, q, k: (which[b] == 0) | (k <= q + key_length - 20))
    check(output, expected.swapaxes(1, 2))
    # As if for each alone, and what the array holds is read at each call.
    for value_of_all in (True, False):
        output = flash.flash_attn_func(*rows, causal=to(np.full(3, value_of_all)))
        check(output, flash.flash_attn_func(*rows, causal=value_of_all))


@pytest.mark.parametrize("target", ["emulate", "emulate:sm_90a"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_emulated(rng, target, dtype):
    shapes = (3, HEADS, 70, DIM), (3, KEY_HEADS, 90, DIM), (3, KEY_HEADS, 90, DIM)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    which = np.array([0, 1, 0], np.int32)
    attend = flash.Attention(flash.causal(sequences=which))
    output = flash.compile(attend.mlir(*arrays), target=target)(*arrays, which)
    expected, _ = reference(*arrays, lambda b, h, q, k: (which[b] == 0) | (k <= q + 20))
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("is_packed", [False, True], ids=["batch", "packed"])
@pytest.mark.parametrize("window", [(-1, -1), (9, 4)])
def test_gradients(rng, is_packed, window):
    torch = pytest.importorskip("torch")
    count, n, m = 4, 20, 33
    which = torch.tensor([1, 0, 0, 1], dtype=torch.int32)
    arrays = [rng.standard_normal((count, length, heads, DIM), np.float32) for length, heads in ((n, HEADS), (m, KEY_HEADS), (m, KEY_HEADS))]
    query, key, value = (torch.from_numpy(x).requires_grad_() for x in arrays)
    weights = torch.from_numpy(rng.standard_normal((count, n, HEADS, DIM), np.float32))
    options = dict(causal=which, window_size=window)
    if is_packed:
        ends = [torch.arange(count + 1, dtype=torch.int32) * length for length in (n, m)]
        output = flash.flash_attn_varlen_func(*(x.flatten(0, 1) for x in (query, key, value)), *ends, **options).unflatten(0, (count, n))
    else:
        output = flash.flash_attn_func(query, key, value, **options)
    found = torch.autograd.grad((output * weights).sum(), (query, key, value))
    double = [torch.from_numpy(x.astype(np.float64)).requires_grad_() for x in arrays]
    q, k, v = (x.transpose(1, 2) for x in double)
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, 1) for x in (k, v))
    distance = torch.arange(m)[None, :] - torch.arange(n)[:, None] - (m - n)
    left, right = (10**6 if side < 0 else side for side in window)
    keep = (distance >= -left) & (distance <= right) & ((which[:, None, None, None] == 0) | (distance <= 0))
    scores = (q @ k.transpose(2, 3) / DIM**0.5).masked_fill(~keep, -torch.inf)
    expected = (scores.softmax(-1) @ v).transpose(1, 2)
    check(output.detach(), expected.detach())
    for gradient, wanted in zip(found, torch.autograd.grad((expected * weights).sum(), double)):
        np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-4)


def test_compiled(rng):
    """Which sequences are causal may change from call to call; nothing is compiled again, and nothing looks at the array."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    batch = Batch(3)
    key, value, table = (torch.from_numpy(x) for x in batch.make_pages())
    query, starts, used = (torch.from_numpy(x) for x in (np.concatenate(batch.rows), get_ends(batch.queries), batch.keys.astype(np.int32)))
    rows = torch.from_numpy(rng.standard_normal((5, 3, HEADS, DIM), np.float32))

    def run(causal):
        packed = flash.flash_attn_varlen_func(query, key, value, starts, block_table=table, seqused_k=used, causal=causal, window_size=(20, 3))
        decoded = flash.flash_attn_with_kvcache(rows, key, value, cache_seqlens=used, block_table=table, causal=causal, softcap=2.0)
        heads_first = rows.transpose(1, 2)
        return packed, decoded, flash.attention(heads_first, heads_first, heads_first, flash.causal(sequences=causal) | flash.prefix(1))

    count = 0

    def backend(graph, _):
        nonlocal count
        count += 1
        return graph.forward

    seen = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            seen.add(str(function))
            return function(*arguments, **(options or {}))

    compiled = torch.compile(run, backend=backend, fullgraph=True)
    with torch.no_grad():
        for which in ([1, 0, 1, 0, 1], [0, 0, 1, 1, 0], [1, 1, 1, 1, 1]):
            causal = torch.tensor(which, dtype=torch.int32)
            expected = run(causal)
            for found in (compiled(causal), compiled(causal.clone())):
                for one, other in zip(found, expected):
                    assert torch.equal(one, other)
            with Watch():
                run(causal)
    assert count == 1
    assert "flash_mlir.attention.default" in seen
    assert not {"aten._local_scalar_dense.default", "aten.nonzero.default", "aten.is_nonzero.default"} & seen


@pytest.mark.parametrize("which", [np.zeros(1, bool), np.ones(6, np.int32)])
def test_prepared(rng, forget, which):
    calls = [serving.decode(4), serving.mixed(60)]
    layers = [serving.Layer(causal=which, window_size=(20, 6))]
    serving.prepare(HEADS, KEY_HEADS, DIM, "float32", calls, layers=layers, sequences=6, keys=64, page_size=PAGE, device="cpu")
    with serving.no_compilation():
        for seed in range(4):
            batch = Batch(seed)
            key, value, table = batch.make_pages()
            causal, used = batch.causal.astype(which.dtype), batch.keys.astype(np.int32)
            query, starts = np.concatenate(batch.rows)[:60], np.minimum(get_ends(batch.queries), 60)
            options = dict(causal=causal, window_size=(20, 6), block_table=table)
            flash.flash_attn_varlen_func(query, key, value, starts, seqused_k=used, **options)
            tokens = batch.draw(5 * 2, HEADS).reshape(5, 2, HEADS, DIM)
            flash.flash_attn_with_kvcache(tokens, key, value, cache_seqlens=used, **options)
            with pytest.raises(serving.UnpreparedError):
                flash.flash_attn_with_kvcache(tokens, key, value, cache_seqlens=used, **{**options, "causal": True})


def test_messages(rng):
    query, key, value = (rng.standard_normal((3, 8, heads, DIM), np.float32) for heads in (HEADS, KEY_HEADS, KEY_HEADS))
    packed, ends = [x.reshape(24, -1, DIM) for x in (query, key, value)], np.int32([0, 8, 16, 24])
    which, lengths = np.ones(3, bool), np.int32([3, 2, 1])
    calls = {
        "q": [
            lambda causal: flash.flash_attn_func(query, key, value, causal=causal),
            lambda causal: flash.flash_attn_with_kvcache(query, key, value, cache_seqlens=lengths, causal=causal),
        ],
        "cu_seqlens_q": [
            lambda causal: flash.flash_attn_varlen_func(*packed, ends, ends, causal=causal),
            lambda causal: flash.flash_attn_varlen_func(*packed, ends, ends, seqused_k=lengths, causal=causal),
        ],
    }
    wrong = [
        ([True, False, True], TypeError, "causal is a list; expected an array of bool or int32 of shape .batch,.: which sequences are causal"),
        (which.astype(np.float32), TypeError, "causal has the dtype float32; expected bool or int32, to which it may be cast once"),
        (which.astype(np.int64), TypeError, "causal has the dtype int64; expected bool or int32, to which it may be cast once"),
        (which[None], ValueError, "causal has 2 dimensions; expected 1: which sequences are causal"),
        (np.array(True), ValueError, "causal has 0 dimensions; expected 1: which sequences are causal"),
    ]
    for name, functions in calls.items():
        for function in functions:
            function(which)
            for causal, kind, message in wrong:
                with pytest.raises(kind, match=message):
                    function(causal)
            for causal in (which[:2], np.ones(4, bool)):
                with pytest.raises(ValueError, match=f"causal is of {len(causal)} sequences, and {name} of 3; they must agree"):
                    function(causal)
    for causal, kind, message in wrong:
        with pytest.raises(kind, match=message.replace("causal", "sequences", 1)):
            flash.causal(sequences=causal)
        with pytest.raises(kind, match=message):
            layers = [serving.Layer(causal=causal)]
            serving.prepare(HEADS, KEY_HEADS, DIM, "float32", [serving.decode()], layers=layers, sequences=3, keys=16, device="cpu")
    heads_first = [x.swapaxes(1, 2) for x in (query, key, value)]
    with pytest.raises(ValueError, match="sequences has size 2 in dimension 0, where b goes from 0 to 2"):
        flash.attention(*heads_first, flash.causal(sequences=which[:2]))
    # One of a single sequence would be a truth value.
    for causal in (which, which[:1]):
        with pytest.raises(TypeError, match="top_left is an array; expected True or False, as which sequences are causal says sequences="):
            flash.causal(causal)
    with pytest.raises(TypeError, match="is_causal is a ndarray; expected True or False, as which sequences are causal says mask="):
        flash.varlen_attn(*packed, ends, ends, is_causal=which, enable_gqa=True)


def test_places():
    """The array is where the queries are."""
    torch = pytest.importorskip("torch")
    query = torch.zeros(3, 8, HEADS, DIM)
    elsewhere = torch.ones(3, dtype=torch.bool, device="meta")
    with pytest.raises(ValueError, match="a tensor is on meta, q on cpu; they must be on one device"):
        flash.flash_attn_func(query, query, query, causal=elsewhere)
