"""Rows of sequences that lie behind each other, beside a loop over the sequences in fp64."""

import math

import numpy as np
import pytest
from conftest import TOLERANCE, reference

import flash_mlir as flash
from flash_mlir import _core, functions, programs

HEADS, KEY_HEADS, ROWS, KEYS = 4, 2, 130, 150
# Sequences without queries, without keys, with one of each, and rows of none before the first and behind the last one.
QUERY_OFFSETS = [3, 3, 4, 40, 40, 41, 60, 120]
KEY_OFFSETS = [0, 7, 8, 70, 70, 80, 80, 140]
COUNT = len(QUERY_OFFSETS) - 1


def make(rng, dtype="float32", dim=40, value_dim=24, poison=True):
    """Arrays whose rows of no sequence are NaN."""
    shapes = (ROWS, HEADS, dim), (KEYS, KEY_HEADS, dim), (KEYS, KEY_HEADS, value_dim)
    arrays = [rng.standard_normal(shape).astype("float32").astype(dtype) for shape in shapes]
    for array, offsets in zip(arrays, (QUERY_OFFSETS, KEY_OFFSETS, KEY_OFFSETS)):
        if poison:
            array[: offsets[0]] = array[offsets[-1] :] = np.nan
    return arrays


def loop(query, key, value, keep=None, score=None, sink=None, scale=None, query_offsets=None, key_offsets=None):
    """Attention of each sequence in fp64. Functions get the lengths and the number of the sequence in place of b."""
    query_offsets, key_offsets = query_offsets or QUERY_OFFSETS, key_offsets or KEY_OFFSETS
    output = np.zeros((len(query), query.shape[1], value.shape[2]))
    lse = np.full((query.shape[1], len(query)), -np.inf)
    for b in range(len(query_offsets) - 1):
        rows, keys = slice(*query_offsets[b : b + 2]), slice(*key_offsets[b : b + 2])
        n, m = query_offsets[b + 1] - query_offsets[b], key_offsets[b + 1] - key_offsets[b]
        parts = [array[part][None].swapaxes(1, 2) for array, part in ((query, rows), (key, keys), (value, keys))]
        kept = keep and (lambda _, h, q, k: keep(q, k, n, m))  # noqa: B023
        scored = score and (lambda s, _, h, q, k: score(s, b, h, q, k, n, m))  # noqa: B023
        found, of_rows = reference(*parts, kept, scored, scale, sink=sink)
        output[rows], lse[:, rows] = found[0].swapaxes(0, 1), of_rows[0]
    return output, lse


def get_offsets(queries="int32", keys="int64"):
    return dict(query_offsets=np.array(QUERY_OFFSETS, queries), key_offsets=np.array(KEY_OFFSETS, keys))


def check(actual, expected, dtype="float32"):
    for array, wanted in zip(actual, expected):
        array = np.asarray(array, np.float64)
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("queries, keys", [("int32", "int64"), ("int64", "int32")])
def test_numpy(rng, queries, keys):
    arrays = make(rng)
    output, lse = flash.attention(*arrays, mask=flash.causal(), return_lse=True, **get_offsets(queries, keys))
    check((output, lse), loop(*arrays, keep=lambda q, k, n, m: k <= q + m - n))
    assert output.flags.c_contiguous and (output[120:] == 0).all() and (output[:3] == 0).all()
    assert np.isneginf(lse[:, 120:]).all()


def test_functions(rng):
    """Functions see the sequence as b, positions inside of it, and its lengths; arrays are as long as the longest one."""
    arrays = make(rng)
    table, slopes = rng.standard_normal(62).astype("float32"), rng.standard_normal(COUNT).astype("float32")
    sink = rng.standard_normal(HEADS).astype("float32")

    def score(s, b, h, q, k):
        return 5 * flash.tanh(s / 5) + table[k] * slopes[b] + 0.01 * h * (q + flash.key_length - flash.query_length - k)

    def expected(s, b, h, q, k, n, m):
        return 5 * np.tanh(s / 5) + table[k] * slopes[b] + 0.01 * h * (q + m - n - k)

    mask = flash.window(left=20, right=3) & flash.mask(lambda b, h, q, k: (q + k + b) % 5 != 0)
    kept = lambda q, k, n, m: (k >= q + m - n - 20) & (k <= q + m - n + 3)
    options = dict(sink=sink, return_lse=True, **get_offsets())
    actual = flash.attention(*arrays, mask=flash.window(left=20, right=3), score=score, **options)
    check(actual, loop(*arrays, keep=kept, score=expected, sink=sink))
    output = flash.attention(*arrays, mask=mask, **get_offsets())
    hidden = lambda s, b, h, q, k, n, m: np.where((q + k + b) % 5 != 0, s, -np.inf)
    check((output,), loop(*arrays, keep=kept, score=hidden)[:1])
    # What a mask reads, and an object that keeps what it was made of.
    ids = rng.integers(0, 3, 62)
    attend = flash.Attention(lambda b, h, q, k: ids[q] == ids[k], scale=0.3, return_lse=True)
    actual = attend(*arrays, **get_offsets())
    check(actual, loop(*arrays, keep=lambda q, k, n, m: ids[q] == ids[k], scale=0.3))
    table = table[:61]
    with pytest.raises(ValueError, match="table has size 61 in dimension 0, where k goes from 0 to 61 in sequence 2"):
        flash.attention(*arrays, score=lambda s, b, h, q, k: s + table[k], **get_offsets())
    text = attend.mlir(*arrays, **get_offsets())
    assert "flash.unpack %key by %key_offsets : tensor<1x?x?x40xf32>, tensor<?xi64>" in text
    check(attend(*arrays, **get_offsets()), actual)


def test_one_kernel(rng):
    """Other numbers of rows and of sequences need no other kernel, and a sequence has the bits that it has alone."""
    mask = flash.causal() & flash.window(left=11)
    query, key, value = make(rng, poison=False)
    whole = flash.attention(query, key, value, mask=mask, **get_offsets())
    count = len(flash.cache._kernels)
    rows, keys = slice(4, 40), slice(8, 70)
    ends = dict(query_offsets=np.array([0, 36], "int32"), key_offsets=np.array([0, 62]))
    alone = flash.attention(query[rows], key[keys], value[keys], mask=mask, **ends)
    assert len(flash.cache._kernels) == count
    assert (alone == whole[rows]).all()
    nothing = dict(query_offsets=np.zeros(1, "int32"), key_offsets=np.zeros(1, int))
    assert (flash.attention(query, key, value, mask=mask, **nothing) == 0).all()
    ends = dict(query_offsets=np.zeros(8, "int32"), key_offsets=np.array(KEY_OFFSETS))
    none = flash.attention(query[:0], key, value, mask=mask, **ends)
    assert none.shape == (0, HEADS, 24)


def test_one_side(rng):
    """Queries or keys alone may be packed, and the others be a batch."""
    query, key, value = make(rng)
    queries = rng.standard_normal((COUNT, HEADS, 9, 40)).astype("float32")
    actual = flash.attention(queries, key, value, mask=flash.causal(), return_lse=True, key_offsets=np.array(KEY_OFFSETS))
    ends = list(range(0, 9 * COUNT + 1, 9))
    keep = lambda q, k, n, m: k <= q + m - n
    expected = loop(queries.swapaxes(1, 2).reshape(-1, HEADS, 40), key, value, keep, query_offsets=ends)
    check((actual[0].swapaxes(1, 2).reshape(-1, HEADS, 24), actual[1].swapaxes(0, 1).reshape(HEADS, -1)), expected)
    keys, values = (rng.standard_normal((COUNT, KEY_HEADS, 9, dim)).astype("float32") for dim in (40, 24))
    lengths = np.array([0, 9, 4, 1, 9, 20, 3])
    actual = flash.attention(query, keys, values, lengths=lengths, return_lse=True, query_offsets=np.array(QUERY_OFFSETS))
    flat = [array.swapaxes(1, 2).reshape(-1, KEY_HEADS, array.shape[3]) for array in (keys, values)]
    kept = lambda s, b, h, q, k, n, m: np.where(k < lengths[b], s, -np.inf)
    check(actual, loop(query, *flat, score=kept, key_offsets=ends))


def test_versions():
    """Sequences of few rows have a version in which heads share tiles and keys are split, as in decoding; long ones none."""
    attend = flash.Attention(flash.causal())
    config = programs.with_packing(attend._configs[0], ("i32", "i64"))
    text = programs.print_program(config, "f16", 4, 128, 128)
    for count, length, parts in ((4, 1, ("packed_heads = 4", "split_ctas = ")), (_core.open_size, _core.open_size, ())):
        keys = 3000 if count > 0 else _core.open_size
        sizes = [[count, 32, length, 128], *[[count, 8, keys, 128]] * 2]
        version = _core.Kernel.specialize(text, "sm_90a", "", "", sizes)
        assert ("schedule(" in version) == bool(parts) and all(part in version for part in parts)


def test_gradients_of_numpy(rng):
    query, key, value = make(rng)
    options = dict(mask=flash.causal(), **get_offsets())
    output, lse = flash.attention(query, key, value, return_lse=True, **options)
    output_grad = np.where(np.isnan(query[..., :24]), np.nan, 2 * output).astype("float32")
    grads = flash.attention_grad(query, key, value, output, lse, output_grad, **options)
    for grad, array in zip(grads, (query, key, value)):
        assert grad.shape == array.shape and np.isfinite(grad).all() and grad.flags.c_contiguous
    # By differences of the sum of squares, in one direction of each.
    for place, array in enumerate((query, key, value)):
        step = 1e-3 * np.nan_to_num(rng.standard_normal(array.shape))
        both = []
        for sign in (1, -1):
            moved = [query, key, value]
            moved[place] = array + sign * step
            both.append((loop(*moved, keep=lambda q, k, n, m: k <= q + m - n)[0] ** 2).sum())
        np.testing.assert_allclose((np.nan_to_num(grads[place]) * step).sum(), (both[0] - both[1]) / 2, rtol=1e-3)


def differentiate(torch, leaves, score, keep, output_grad, lse_grad):
    """Results of a loop over sequences and their gradients, in the dtype of the leaves."""
    query, key, value, sink = leaves[:4]
    outputs, rows = [], []
    for b in range(COUNT):
        n, m = QUERY_OFFSETS[b + 1] - QUERY_OFFSETS[b], KEY_OFFSETS[b + 1] - KEY_OFFSETS[b]
        x = query[QUERY_OFFSETS[b] : QUERY_OFFSETS[b + 1]].transpose(0, 1)
        y, z = (
            array[KEY_OFFSETS[b] : KEY_OFFSETS[b + 1]].transpose(0, 1).repeat_interleave(HEADS // KEY_HEADS, 0)
            for array in (key, value)
        )
        h, q, k = torch.arange(HEADS)[:, None, None], torch.arange(n)[:, None], torch.arange(m)
        scores = score(x @ y.transpose(1, 2) * x.shape[2] ** -0.5, b, h, q, k, n, m)
        scores = scores.masked_fill(~keep(q, k, n, m), -torch.inf)
        scores = torch.cat([scores, sink[:, None, None].expand(-1, n, 1)], -1)
        outputs.append((scores.softmax(-1)[..., :m] @ z).transpose(0, 1))
        rows.append(scores.logsumexp(-1))
    output, lse = torch.cat(outputs), torch.cat(rows, 1)
    ends = slice(QUERY_OFFSETS[0], QUERY_OFFSETS[-1])
    grads = torch.autograd.grad([output, lse], leaves, [output_grad[ends], lse_grad[:, ends]])
    return [output, lse], [torch.nan_to_num(grad) for grad in grads]


def make_tensors(torch, dim):
    """Operands and the gradients of the output and the log-sum-exp, whose rows of no sequence are NaN."""
    torch.manual_seed(0)

    def poison(array, offsets, dim=0):
        for part in (slice(0, offsets[0]), slice(offsets[-1], None)):
            array[(slice(None),) * dim + (part,)] = torch.nan
        return array

    shapes = (ROWS, HEADS, dim), (KEYS, KEY_HEADS, dim), (KEYS, KEY_HEADS, 24)
    arrays = [poison(torch.randn(shape), x) for shape, x in zip(shapes, (QUERY_OFFSETS, KEY_OFFSETS, KEY_OFFSETS))]
    output_grad = poison(torch.randn(ROWS, HEADS, 24), QUERY_OFFSETS)
    return arrays, output_grad, poison(torch.randn(HEADS, ROWS), QUERY_OFFSETS, 1)


@pytest.mark.parametrize("dtype, dim", [("float32", 40), ("float16", 64), ("bfloat16", 64)])
def test_autograd(dtype, dim):
    torch = pytest.importorskip("torch")
    ends = slice(QUERY_OFFSETS[0], QUERY_OFFSETS[-1])
    arrays, output_grad, lse_grad = make_tensors(torch, dim)
    arrays, output_grad = [array.to(getattr(torch, dtype)) for array in arrays], output_grad.to(getattr(torch, dtype))
    arrays.append(torch.randn(HEADS))
    offsets = {name: torch.from_numpy(array) for name, array in get_offsets().items()}

    def score(s, b, h, q, k):
        return 5 * flash.tanh(s / 5) - 0.01 * (h + 1) * abs(q + flash.key_length - flash.query_length - k)

    def attend(*leaves):
        query, key, value, sink = leaves
        return flash.attention(
            query, key, value, mask=flash.window(left=20, right=3), score=score, sink=sink, return_lse=True, **offsets
        )

    leaves = [array.clone().requires_grad_() for array in arrays]
    actual = attend(*leaves)
    grads = torch.autograd.grad(actual, leaves, [output_grad, lse_grad])
    expected, wanted = differentiate(
        torch,
        [array.double().requires_grad_() for array in arrays],
        lambda s, b, h, q, k, n, m: 5 * torch.tanh(s / 5) - 0.01 * (h + 1) * abs(q + m - n - k),
        lambda q, k, n, m: (k >= q + m - n - 20) & (k <= q + m - n + 3),
        output_grad.double(),
        lse_grad.double(),
    )
    tolerance = dict(rtol=3 * TOLERANCE[dtype], atol=3 * TOLERANCE[dtype], check_dtype=False)
    torch.testing.assert_close(actual[0][ends], expected[0], **tolerance)
    torch.testing.assert_close(actual[1][:, ends], expected[1], **tolerance)
    for grad, other, leaf in zip(grads, wanted, leaves):
        assert grad.dtype == leaf.dtype and grad.is_contiguous()
        torch.testing.assert_close(grad, other, **tolerance)
    if dtype != "float32":
        return
    # Compiled, with other numbers of rows than when it was traced.
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True, dynamic=True)
    parts = [array[:length].detach() for array, length in zip(arrays, (125, 141, 141, HEADS))]
    with torch.no_grad():
        assert all(map(torch.equal, compiled(*parts), attend(*parts)))
    again = torch.autograd.grad(compiled(*leaves), leaves, [output_grad, lse_grad])
    assert all(map(torch.equal, again, grads))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert attend(*leaves)[0].dtype == compiled(*leaves)[0].dtype == torch.bfloat16
    with flash.checks(), torch.no_grad():
        assert all(map(torch.equal, attend(*leaves), actual))


def test_first_sequence_behind_others_rows():
    """Tiles of rows before the first sequence are of none: they are not computed, and nothing is written beside memory."""
    torch = pytest.importorskip("torch")
    rows, start, end = 300, 190, 230
    offsets = torch.tensor([start, end - 9, end])
    query, key, value, weight = (torch.randn(rows, 2, 16) for _ in range(4))
    outside = torch.cat([torch.arange(start), torch.arange(end, rows)])
    found = []
    for first in (0, start):  # As rows behind others, and alone.
        last = rows if first == 0 else end
        arrays = [array[first:last].clone().requires_grad_() for array in (query, key, value)]
        at = offsets - first
        output, lse = flash.attention(*arrays, mask=flash.causal(), query_offsets=at, key_offsets=at, return_lse=True)
        output.backward(weight[first:last])
        found.append([output, lse.T, *(array.grad for array in arrays)])
    for packed, alone in zip(*found):
        torch.testing.assert_close(packed[start:end], alone)
    for array in (found[0][0], *found[0][2:]):
        assert (array[outside] == 0).all()
    assert torch.isneginf(found[0][1][outside]).all()


def test_gradcheck():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    offsets = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 1, 3, 6], dtype=torch.int32)
    arrays = [torch.randn(n, h, 8, dtype=torch.float64, requires_grad=True) for n, h in ((6, 2), (7, 1), (7, 1))]
    ends = dict(query_offsets=offsets[0], key_offsets=offsets[1])
    torch.autograd.gradcheck(lambda *x: flash.attention(*x, mask=flash.causal(), **ends), arrays)


def test_refusals(rng):
    query, key, value = make(rng, poison=False)
    offsets = get_offsets()

    def refuse(kind, match, call=flash.attention, arrays=(query, key, value), **options):
        with pytest.raises(kind, match=match):
            call(*arrays, **{**offsets, **options})

    def change(place, number):
        changed = offsets["query_offsets"].copy()
        changed[place] = number
        return changed

    of_queries, zeros = offsets["query_offsets"], np.zeros(8, "float32")
    rule = "offsets do not decrease and are from 0 to 130, the rows of query"
    refuse(ValueError, rf"query_offsets\[7\] is 131; {rule}", query_offsets=change(7, 131))
    refuse(ValueError, rf"query_offsets\[4\] is 39, after 40; {rule}", query_offsets=change(4, 39))
    refuse(ValueError, rf"query_offsets\[0\] is -1; {rule}", query_offsets=change(0, -1))
    refuse(ValueError, "queries are of 6 sequences and keys of 7", query_offsets=of_queries[1:])
    refuse(ValueError, r"key_offsets is int64 of shape \(0,\); expected where each", key_offsets=np.zeros(0, int))
    refuse(ValueError, "query_offsets has 2 dimensions; expected 1", query_offsets=of_queries[None])
    refuse(TypeError, "query_offsets has the dtype float32; expected int32 or int64", query_offsets=zeros)
    refuse(TypeError, "key_offsets is a list; expected an array of int32 or int64", key_offsets=KEY_OFFSETS)
    batch = r"\(sequences, heads, length, head dimension\)"
    refuse(ValueError, rf"key is .* shape \(150, 2, 40\); expected {batch}, or key_offsets beside it", key_offsets=None)
    rows = r"\(rows of all sequences, heads, head dimension\)"
    refuse(ValueError, f"query is .*; with query_offsets it is {rows}", arrays=(query[None], key, value))
    refuse(ValueError, "value has length 149, key has 150", arrays=(query, key, value[1:]))
    three = [np.repeat(array, 2, 1)[:, :3] for array in (key, value)]
    refuse(ValueError, "query has 4 heads, key has 3", arrays=(query, *three))
    refuse(ValueError, r"lengths is .*; expected integers of shape \(7,\), one for each sequence", lengths=np.zeros(6, int))
    refuse(ValueError, "offsets are given beside blocks.*; give a mask instead", blocks=1)
    plan = flash.plan(flash.causal(), query.swapaxes(0, 1)[None], key.swapaxes(0, 1)[None])
    refuse(ValueError, "offsets are given beside a plan.*; give the mask instead", mask=plan)
    refuse(ValueError, "offsets are given beside a plan", call=flash.Attention(plan))
    output, lse = flash.attention(query, key, value, return_lse=True, **offsets)
    results = (query, key, value, output, lse, output)
    refuse(ValueError, "offsets are given beside blocks", call=flash.attention_grad, arrays=results, blocks=1)
    turned = (*results[:4], lse.T, output)
    refuse(ValueError, r"lse has the shape \(130, 4\); expected \(4, 130\)", call=flash.attention_grad, arrays=turned)


def test_gradients_of_captured_tensors():
    """Of what a score reads by head, by row, by pair and by distance, of each sequence or of all."""
    torch = pytest.importorskip("torch")
    arrays, output_grad, lse_grad = make_tensors(torch, 40)
    queries, keys = max(np.diff(QUERY_OFFSETS)), max(np.diff(KEY_OFFSETS))
    offsets = {name: torch.from_numpy(array) for name, array in get_offsets().items()}
    sizes = dict(
        slopes=(HEADS,), of_query=(COUNT, queries), of_key=(HEADS, keys), near=(HEADS, queries + keys), far=(queries + keys,),
        pairs=(HEADS, queries, keys), own=(COUNT, HEADS, queries, keys), buckets=(8,),
    )  # fmt: skip
    tensors = {name: torch.randn(size) for name, size in sizes.items()}

    def make_score(tensors, length):
        slopes, of_query, of_key, near, far, pairs, own, buckets = tensors.values()

        def score(s, b, h, q, k):
            n, m = length(b)
            biased = s * (1 + 0.1 * slopes[h]) + of_query[b, q] + of_key[h, k]
            distances = near[h, q - k + int(keys) - 1] + far[q + m - n - k + int(queries) - 1]
            return biased + distances + pairs[h, q, k] + own[b, h, q, k] + buckets[(q + 2 * k) % 8]

        return score

    leaves = [array.clone().requires_grad_() for array in (*arrays, torch.randn(HEADS), *tensors.values())]
    found = make_score(dict(zip(sizes, leaves[4:])), lambda b: (flash.query_length, flash.key_length))
    options = dict(mask=flash.causal(), score=found, sink=leaves[3], return_lse=True, **offsets)
    results = flash.attention(*leaves[:3], **options)
    grads = torch.autograd.grad(results, leaves, [output_grad, lse_grad], retain_graph=True)
    assert all(map(torch.equal, torch.autograd.grad(results, leaves, [output_grad, lse_grad]), grads))
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    lengths = list(zip(np.diff(QUERY_OFFSETS).tolist(), np.diff(KEY_OFFSETS).tolist()))
    expected = make_score(dict(zip(sizes, wide[4:])), lambda b: lengths[b])
    _, wanted = differentiate(
        torch,
        wide,
        lambda s, b, h, q, k, n, m: expected(s, b, h, q, k),
        lambda q, k, n, m: k <= q + m - n,
        output_grad.double(),
        lse_grad.double(),
    )
    for grad, other in zip(grads, wanted):
        torch.testing.assert_close(grad.double(), other, rtol=1e-4, atol=1e-4)
    # By NumPy's function, and compiled.
    plain = [array.detach().numpy() for array in leaves]
    found = make_score(dict(zip(sizes, plain[4:])), lambda b: (flash.query_length, flash.key_length))
    call = dict(mask=flash.causal(), score=found, sink=plain[3], **get_offsets())
    output, lse = flash.attention(*plain[:3], return_lse=True, **call)
    call.update(lse_grad=lse_grad.numpy(), wrt=plain[4:])
    again = flash.attention_grad(*plain[:3], output, lse, output_grad.numpy(), **call)
    for grad, other in zip(again, grads):
        np.testing.assert_array_equal(grad, other)

    def attend(query, key, value, slopes):
        return flash.attention(query, key, value, score=lambda s, b, h, q, k: s * slopes[h], **offsets)

    parts = [*leaves[:3], leaves[4]]
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    both = [torch.autograd.grad(function(*parts), parts, output_grad) for function in (attend, compiled)]
    assert all(map(torch.equal, *both))


def test_refused_gradients():
    torch = pytest.importorskip("torch")
    query, offsets = torch.randn(9, 2, 16, requires_grad=True), torch.tensor([0, 4, 9])
    five = flash.Attention(flash.causal(), gradient_schedule="products=5")
    with pytest.raises(flash.CompileError, match="takes no query_lengths and no key_lengths; choose products = 7"):
        five(query, query, query, query_offsets=offsets, key_offsets=offsets).sum().backward()


def test_flash_attention(rng):
    """The functions of FlashAttention and of PyTorch, beside the loop: windows, caps, slopes, sinks."""
    arrays = make(rng)
    offsets = [np.array(QUERY_OFFSETS, "int32"), np.array(KEY_OFFSETS, "int32")]
    causal = lambda q, k, n, m: k <= q + m - n
    call = lambda *more, **options: flash.flash_attn_varlen_func(*arrays, *offsets, 60, 62, *more, **options)
    expected, lse = loop(*arrays, keep=causal, scale=0.2)
    check((call(0.0, 0.2, True),), (expected,))
    output, rows, probabilities = call(softmax_scale=0.2, causal=True, deterministic=True, return_attn_probs=True)
    check((output, rows), (expected, lse))
    assert probabilities is None
    check(call(softmax_scale=0.2, causal=True, return_lse=True), (expected, lse))
    slopes, sink = rng.random((COUNT, HEADS)).astype("float32"), rng.standard_normal(HEADS).astype("float32")

    def biased(s, b, h, q, k, n, m):
        return 2 * np.tanh(s / 2) - slopes[b, h] * abs(q + m - n - k)

    options = dict(window_size=(11, 2), softcap=2.0, alibi_slopes=slopes, learnable_sink=sink, return_lse=True)
    keep = lambda q, k, n, m: (k >= q + m - n - 11) & (k <= q + m - n + 2)
    check(call(**options), loop(*arrays, keep=keep, score=biased, sink=sink))
    # With a mask and a score function besides, and another alignment of both sides of the window.
    options.update(window_size=(11, -1), causal=True, alibi_slopes=slopes[0])
    options.update(mask=lambda b, h, q, k: k % 3 != 1, score=lambda s, b, h, q, k: s * (1 + b))
    keep = lambda q, k, n, m: (k >= q + m - n - 11) & (k <= q + m - n) & (k % 3 != 1)
    both = lambda s, b, h, q, k, n, m: (2 * np.tanh(s / 2) - slopes[0, h] * abs(q + m - n - k)) * (1 + b)
    check(call(**options), loop(*arrays, keep=keep, score=both, sink=sink))
    query, key, value = arrays
    queries = rng.standard_normal((COUNT, 9, HEADS, 40)).astype("float32")
    actual = flash.flash_attn_varlen_func(queries, key, value, None, offsets[1], causal=True)
    ends = list(range(0, 9 * COUNT + 1, 9))
    check((actual.reshape(-1, HEADS, 24),), loop(queries.reshape(-1, HEADS, 40), key, value, causal, query_offsets=ends)[:1])
    # A batch.
    keys, values = (rng.standard_normal((COUNT, 12, KEY_HEADS, dim)).astype("float32") for dim in (40, 24))
    turn = lambda *arrays: [array.swapaxes(1, 2) for array in arrays]
    score = lambda s, b, h, q, k: 2 * np.tanh(s / 2) - slopes[b, h] * abs(q + 3 - k)
    expected, lse = reference(*turn(queries, keys, values), lambda b, h, q, k: (k <= q + 3) & (k >= q - 1), score, sink=sink)
    options = dict(causal=True, window_size=(4, -1), softcap=2.0, alibi_slopes=slopes, learnable_sink=sink)
    output, rows = flash.flash_attn_func(queries, keys, values, return_lse=True, **options)
    check((output, rows), (*turn(expected), lse))
    assert output.flags.c_contiguous
    # PyTorch's.
    options = dict(window_size=(11, 0), scale=0.2, enable_gqa=True)
    actual = flash.varlen_attn(*arrays, *offsets, 60, 62, return_aux=type("AuxRequest", (), {"lse": True}), **options)
    keep = lambda q, k, n, m: (k >= q + m - n - 11) & (k <= q + m - n)
    check(actual, loop(*arrays, keep=keep, scale=0.2))
    check((flash.varlen_attn(*arrays, *offsets, 60, 62, window_size=(-1, 0), enable_gqa=True),), loop(*arrays, keep=causal)[:1])


def test_flash_attention_refuses(rng):
    arrays = make(rng)
    offsets = list(get_offsets().values())
    for options, kind, match in (
        (dict(dropout_p=0.1), ValueError, "dropout_p is 0.1; only 0 is possible"),
        (dict(block_table=offsets[0]), ValueError, "block_table has 1 dimensions; expected 2: the pages of each sequence"),
        (dict(window_size=(-2, 0)), ValueError, "window_size has -2; expected integers from 0 on, or -1"),
        (dict(window_size=(3,)), ValueError, r"window_size is \(3,\); expected two numbers"),
        (dict(softcap=-1.0), ValueError, "softcap is -1.0; expected a positive number"),
        (dict(softcap=math.nan), ValueError, "softcap is nan; expected a positive number"),
        (dict(softcap=math.inf), ValueError, "softcap is inf; expected a positive number"),
        (dict(softcap="3"), ValueError, "softcap is '3'; expected a positive number"),
        (dict(window_size=(1.5, 0)), ValueError, "window_size has 1.5; expected integers from 0 on, or -1"),
        (dict(alibi_slopes=np.zeros((1, 1, 4), "float32")), ValueError, "alibi_slopes has 3 dimensions"),
        (dict(alibi_slopes=np.zeros(3, "float32")), ValueError, "alibi_slopes has size 3 in dimension 0, where h goes"),
        (dict(alibi_slopes=[0.5] * 4), TypeError, "alibi_slopes is a list; expected an array"),
        (dict(window_size=3), ValueError, "window_size is 3; expected two numbers"),
        (dict(return_lse=True, return_attn_probs=True), ValueError, "return_attn_probs returns three results"),
    ):
        with pytest.raises(kind, match=match):
            flash.flash_attn_varlen_func(*arrays, *offsets, 60, 62, **options)
    # Without the batch, heads of the one rank are lengths of the other.
    with pytest.raises(ValueError, match="q has 3 dimensions; expected .batch, length, heads, head dimension"):
        flash.flash_attn_func(arrays[0], arrays[0], arrays[0])
    with pytest.raises(ValueError, match="v is a list; without cu_seqlens_k it is"):
        flash.flash_attn_varlen_func(arrays[0], arrays[1][None], [0.0], cu_seqlens_q=offsets[0])
    with pytest.raises(ValueError, match="neither cu_seqlens_q nor cu_seqlens_k is given; call flash_attn_func"):
        flash.flash_attn_varlen_func(*arrays)
    for options, kind, match in (
        (dict(), ValueError, "query has 4 heads, key has 2; enable_gqa=True allows that"),
        (dict(num_splits=4), ValueError, "num_splits is 4; only 0 is possible, where calls choose how keys are split, and 1"),
        (dict(cu_seq_k=None), ValueError, "cu_seq_q, and cu_seq_k or seqused_k, are needed"),
    ):
        with pytest.raises(kind, match=match):
            flash.varlen_attn(*arrays, **{**dict(cu_seq_q=offsets[0], cu_seq_k=offsets[1], max_q=60, max_k=62), **options})


def test_flash_attention_compiled():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    arrays = [torch.randn(20, heads, 16, requires_grad=True) for heads in (4, 2, 2)]
    offsets, slopes = torch.tensor([0, 5, 5, 18], dtype=torch.int32), torch.rand(4)

    def attend(q, k, v, slopes):
        packed, lse = flash.flash_attn_varlen_func(
            q, k, v, offsets, offsets, 13, 13, causal=True, softcap=4.0, alibi_slopes=slopes, return_lse=True
        )
        other = flash.varlen_attn(q, k, v, offsets, offsets, 13, 13, window_size=(3, 0), enable_gqa=True)
        return packed, lse, other, flash.flash_attn_func(q[None], k[None], v[None], window_size=(2, 1))

    def run(function):
        results = function(*arrays, slopes)
        return results + torch.autograd.grad(sum(result.square().nan_to_num(posinf=0).sum() for result in results), arrays)

    # Functions that are made inside of what is compiled take PyTorch 2.14.
    is_whole = torch.__version__ >= (2, 14)
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=is_whole)
    for actual, expected in zip(run(compiled), run(attend)):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        for actual, expected in zip(compiled(*arrays, slopes), attend(*arrays, slopes)):
            assert actual.dtype == expected.dtype and torch.equal(actual, expected)


def test_operators():
    """Operators describe results as kernels make them, of tensors without memory and while graphs are made, too."""
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx

    torch.manual_seed(0)
    query, key = torch.randn(9, 4, 16), torch.randn(11, 2, 16)
    value = torch.randn(11, 3, 2, 8)[:, 1]
    offsets, others = torch.tensor([0, 4, 4, 9]), torch.tensor([0, 5, 6, 10], dtype=torch.int32)
    options = dict(mask=flash.causal(), return_lse=True, query_offsets=offsets, key_offsets=others)
    output, lse = flash.attention(query, key, value, **options)
    import flash_mlir.torch_operator  # noqa: F401
    from flash_mlir.packing import get_key
    from flash_mlir.preparation import prepare

    config = prepare(flash.causal(), None, None, None, False, True, None, get_key(offsets, others))[0].config
    operators, captured = torch.ops.flash_mlir, [offsets, others]
    torch.library.opcheck(operators.attention_with_lse.default, (query, key, value, None, None, captured, config))
    arguments = query, key, value, output, lse, output, None, None, None, captured, [], config
    torch.library.opcheck(operators.attention_grad.default, arguments)
    leaves = [array.clone().requires_grad_() for array in (query, key, value)]
    torch.library.opcheck(operators.attention_with_gradients.default, (*leaves, None, None, captured, config))
    meta = [array.to("meta") for array in (query, key, value)]
    ends = dict(query_offsets=offsets.to("meta"), key_offsets=others.to("meta"))
    results = flash.attention(*meta, **{**options, **ends})
    assert [result.shape for result in results] == [(9, 4, 8), (4, 9)] and all(result.is_meta for result in results)
    dense = torch.empty(3, 4, 7, 16, device="meta")
    assert flash.attention(dense, *meta[1:], key_offsets=ends["key_offsets"]).shape == (3, 4, 7, 8)

    def attend(query, key, value, offsets, others):
        return flash.attention(query, key, value, mask=flash.causal(), query_offsets=offsets, key_offsets=others) + 1

    graph = make_fx(attend, tracing_mode="symbolic")(query, key, value, offsets, others)
    fewer = torch.tensor([1, 8]), torch.tensor([0, 7], dtype=torch.int32)
    assert torch.equal(graph(query, key, value, *fewer), attend(query, key, value, *fewer))
    # A part of a tensor that holds all three, as projections make it.
    parts = torch.randn(9, 3, 4, 16).unbind(1)
    copies = [part.contiguous() for part in parts]
    one = dict(query_offsets=offsets, key_offsets=offsets)
    assert torch.equal(flash.attention(*parts, **one), flash.attention(*copies, **one))
    stacked = torch.stack([query, query + 1])
    mapped = torch.vmap(lambda query: flash.attention(query, key, value, **options)[0])(stacked)
    assert torch.equal(mapped[0], output)


def test_cap_is_traced_once(rng, monkeypatch):
    """A call with a soft cap costs no more than one without."""
    traced = []
    trace = functions._trace
    monkeypatch.setattr(functions, "_trace", lambda *arguments: traced.append(arguments[2]) or trace(*arguments))
    query, key, value = make(rng)
    offsets = np.array(QUERY_OFFSETS), np.array(KEY_OFFSETS)
    calls = [flash.flash_attn_varlen_func(query, key, value, *offsets, softcap=cap) for cap in (3.25, np.float32(3.25), 3.25, 0)]
    assert traced == ["score"]
    expected, _ = loop(query, key, value, score=lambda s, *_: 3.25 * np.tanh(s / 3.25))
    for output in calls[:3]:
        np.testing.assert_allclose(output, expected, rtol=TOLERANCE["float32"], atol=TOLERANCE["float32"])
    assert (calls[0] != calls[3]).any()


def test_cap_in_a_graph():
    torch = pytest.importorskip("torch")
    query, offsets = torch.randn(9, 2, 32), torch.tensor([0, 4, 9], dtype=torch.int32)

    def call(query, offsets):
        return flash.flash_attn_varlen_func(query, query, query, offsets, offsets, softcap=3.25)

    with torch.no_grad():
        assert torch.equal(torch.compile(call, backend="aot_eager", fullgraph=True)(query, offsets), call(query, offsets))
