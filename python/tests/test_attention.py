"""Results of `attention` on NumPy arrays, against fp64."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash

slopes = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)


def diagonal(q, queries=37, keys=53):
    return q + keys - queries


MASKS = {
    "full": (flash.full(), None),
    "causal": (flash.causal(), lambda b, h, q, k: k <= diagonal(q)),
    "top left": (flash.causal(top_left=True), lambda b, h, q, k: k <= q),
    "window": (flash.window(7, 3), lambda b, h, q, k: (k >= diagonal(q) - 7) & (k <= diagonal(q) + 3)),
    "left": (flash.window(left=7), lambda b, h, q, k: k >= diagonal(q) - 7),
    "prefix": (flash.prefix(20), lambda b, h, q, k: k < 20 + 0 * q),
    "and": (flash.causal() & flash.window(left=9), lambda b, h, q, k: (k <= diagonal(q)) & (k >= diagonal(q) - 9)),
    "or": (flash.causal() | flash.prefix(30), lambda b, h, q, k: (k <= diagonal(q)) | (k < 30)),
    "abs": (lambda b, h, q, k: abs(q - k) <= 9, lambda b, h, q, k: abs(q - k) <= 9),
    "not abs": (lambda b, h, q, k: ~(abs(q - 2 * k) < 30), lambda b, h, q, k: abs(q - 2 * k) >= 30),
    "equal abs": (lambda b, h, q, k: abs(q - k) == 5, lambda b, h, q, k: abs(q - k) == 5),
    "unequal abs": (lambda b, h, q, k: abs(q - k) != 5, lambda b, h, q, k: abs(q - k) != 5),
    "minimum": (
        lambda b, h, q, k: flash.minimum(q + 3, 20) >= k,
        lambda b, h, q, k: np.minimum(q + 3, 20) >= k,
    ),
    "maximum in a quotient": (
        lambda b, h, q, k: flash.maximum(q - 7, k) // 8 <= 2,
        lambda b, h, q, k: np.maximum(q - 7, k) // 8 <= 2,
    ),
    "where": (
        lambda b, h, q, k: flash.where(h % 2 == 0, k <= q, k < 9),
        lambda b, h, q, k: np.where(h % 2 == 0, k <= q, k < 9),
    ),
    "where of numbers": (
        lambda b, h, q, k: k < flash.where(q < 16, flash.where(h == 1, 3, q), 2 * q),
        lambda b, h, q, k: k < np.where(q < 16, np.where(h == 1, 3, q), 2 * q),
    ),
    "where not": (
        lambda b, h, q, k: flash.where(~(q < k), q - k, k - q) < 6,
        lambda b, h, q, k: np.where(~(q < k), q - k, k - q) < 6,
    ),
    "where least": (
        lambda b, h, q, k: flash.where(2 * q - 2 * k <= 4, q, k + 2) < 11,
        lambda b, h, q, k: np.where(2 * q - 2 * k <= 4, q, k + 2) < 11,
    ),
    "exclusive or": (lambda b, h, q, k: (k <= q) ^ (k < 20), lambda b, h, q, k: (k <= q) ^ (k < 20)),
    "many choices": (
        lambda b, h, q, k: abs(abs(abs(abs(abs(q - k) - 20) - 10) - 5) - 2) <= 1,
        lambda b, h, q, k: abs(abs(abs(abs(abs(q - k) - 20) - 10) - 5) - 2) <= 1,
    ),
    "grid": (
        lambda b, h, q, k: (abs(q // 8 - k // 8) <= 1) & (abs(q % 8 - k % 8) <= 1),
        lambda b, h, q, k: (abs(q // 8 - k // 8) <= 1) & (abs(q % 8 - k % 8) <= 1),
    ),
    "not": (~flash.causal(top_left=True), lambda b, h, q, k: k > q),
    "not and": (
        ~(flash.prefix(10) & flash.causal()) & flash.window(left=30),
        lambda b, h, q, k: ~((k < 10) & (k <= diagonal(q))) & (k >= diagonal(q) - 30),
    ),
    "nothing": (flash.prefix(0), lambda b, h, q, k: k < 0 * q),
    "affine function": (
        lambda b, h, q, k: (q // 8 == k // 8) | (k < 2 * h),
        lambda b, h, q, k: (q // 8 == k // 8) | (k < 2 * h),
    ),
    "negative positions": (
        lambda b, h, q, k: ((q - k) // 5 == -2) | ((q - k) % 3 == 1),
        lambda b, h, q, k: ((q - k) // 5 == -2) | ((q - k) % 3 == 1),
    ),
    "product of positions": (lambda b, h, q, k: q * k % 3 == 0, lambda b, h, q, k: q * k % 3 == 0),
    "half affine union": (
        lambda b, h, q, k: (k < 4) | ((k <= q) & (q * k % 3 == 0)),
        lambda b, h, q, k: (k < 4) | ((k <= q) & (q * k % 3 == 0)),
    ),
    "half affine negation": (
        lambda b, h, q, k: ~((k > q) | (q * k % 3 == 0) | ~(q < 30)),
        lambda b, h, q, k: ~((k > q) | (q * k % 3 == 0) | ~(q < 30)),
    ),
    "lengths of the problem": (
        lambda b, h, q, k: k < flash.key_length - flash.query_length,
        lambda b, h, q, k: k < 53 - 37 + 0 * q,
    ),
    "many sets": (
        flash.mask(lambda b, h, q, k: (q != k) & (q != k + 3) & (q != k + 7) & (q != k - 5) & (q + k != 9)),
        lambda b, h, q, k: (q != k) & (q != k + 3) & (q != k + 7) & (q != k - 5) & (q + k != 9),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(make, name):
    mask, keep = MASKS[name]
    query, key, value = make()
    output, lse = flash.attention(query, key, value, mask=mask, return_lse=True)
    expected, expected_lse = reference(query, key, value, keep)
    assert_close(output, expected, "float32")
    assert_close(lse, expected_lse, "float32")


def test_affine_masks_stay_attributes():
    assert flash.causal().lowered[0].operands == ("#flash.causal",) and flash.causal().lowered[1] is None
    attribute, rest = flash.mask(lambda b, h, q, k: (k <= q) & (k // 4 == q // 4)).lowered
    assert rest is None and attribute.kind == "all_of"
    assert (~flash.causal()).lowered[1] is None


def test_documents(make, rng):
    query, key, value = make(queries=40, keys=40)
    ids = np.sort(rng.integers(0, 4, (2, 40))).astype(np.int32)
    mask = flash.documents(ids) & flash.causal()
    b = np.arange(2)[:, None, None, None]
    expected, _ = reference(query, key, value, lambda _, h, q, k: (ids[b, q] == ids[b, k]) & (k <= q))
    assert_close(flash.attention(query, key, value, mask=mask), expected, "float32")
    either = flash.documents(ids) | flash.prefix(3)
    expected, _ = reference(query, key, value, lambda _, h, q, k: (ids[b, q] == ids[b, k]) | (k < 3))
    assert_close(flash.attention(query, key, value, mask=either), expected, "float32")
    keys = np.zeros(40, dtype=np.int64)
    expected, _ = reference(query, key, value, lambda _, h, q, k: ids[0][q] == keys[k])
    assert_close(flash.attention(query, key, value, mask=flash.documents(ids[0], keys)), expected, "float32")


def test_masked_elements_have_no_effect(make):
    query, key, value = make(queries=300, keys=300)
    ids = np.repeat(np.arange(3, dtype=np.int32), 100)
    expected, _ = reference(query, key, value, lambda b, h, q, k: ids[q] == ids[k])
    value[:, :, ids == 1] = np.nan
    output = flash.attention(query, key, value, mask=flash.documents(ids))
    assert_close(output[:, :, ids != 1], expected[:, :, ids != 1], "float32")
    assert np.isnan(output[:, :, ids == 1]).all()


def test_boolean_array(make, rng):
    query, key, value = make()
    seen = rng.random((2, 4, 37, 53)) < 0.4
    output = flash.attention(query, key, value, mask=lambda b, h, q, k: seen[b, h, q, k])
    assert_close(output, reference(query, key, value, lambda b, h, q, k: seen[b, h, q, k])[0], "float32")


def test_equal_masks_share_a_kernel_but_not_arrays(make, rng):
    query, key, value = make(queries=40, keys=40)
    for _ in range(2):
        ids = rng.integers(0, 4, 40).astype(np.int32)
        expected, _ = reference(query, key, value, lambda b, h, q, k: ids[q] == ids[k])
        assert_close(flash.attention(query, key, value, mask=flash.documents(ids)), expected, "float32")
        assert_close(flash.attention(query, key, value, mask=lambda b, h, q, k: ids[q] == ids[k]), expected, "float32")
    assert flash.documents(ids) == flash.documents(ids[::-1].copy())

    def of_document(ids):
        return flash.mask(lambda b, h, q, k: ids[q] == ids[k])

    one, other = rng.integers(0, 4, (2, 40)).astype(np.int32)
    both = of_document(one) & of_document(other)
    expected, _ = reference(query, key, value, lambda b, h, q, k: (one[q] == one[k]) & (other[q] == other[k]))
    assert_close(flash.attention(query, key, value, mask=both), expected, "float32")
    assert flash.window(3) != flash.window(4)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("queries, keys", [(37, 53), (53, 37)])
def test_arrays_of_any_size_in_masks(make, dtype, queries, keys):
    """The largest and the least number of a dtype are as sides without end, and as ones that no key is in."""
    arrays = make(queries=queries, keys=keys)
    number = np.array(0, dtype)
    ends = np.iinfo(dtype).min, np.iinfo(dtype).max
    masks = {
        flash.window(number): lambda b, h, q, k: q + keys - queries - k <= int(number),
        flash.window(right=number): lambda b, h, q, k: k - q - keys + queries <= int(number),
        flash.prefix(number): lambda b, h, q, k: (k < int(number)) & (q >= 0),
    }
    for mask, keep in masks.items():
        for size in (*ends, 3):
            number[...] = size
            assert_close(flash.attention(*arrays, mask=mask), reference(*arrays, keep)[0], "float32")


def test_lengths_and_sink(make, rng):
    query, key, value = make()
    lengths = np.array([11, 60], dtype=np.int32)
    sink = rng.standard_normal(4).astype(np.float32)
    expected, expected_lse = reference(query, key, value, lengths=lengths, sink=sink)
    output, lse = flash.attention(query, key, value, lengths=lengths, sink=sink, return_lse=True)
    assert_close(output, expected, "float32")
    assert_close(lse, expected_lse, "float32")
    masked = flash.key_lengths(lengths) & flash.window(left=30)
    expected, _ = reference(query, key, value, lambda b, h, q, k: k >= diagonal(q) - 30, lengths=lengths)
    assert_close(flash.attention(query, key, value, mask=masked), expected, "float32")
    either = flash.key_lengths(lengths) | flash.window(left=3)
    keep = lambda b, h, q, k: (k < lengths[b]) | (k >= diagonal(q) - 3)
    assert_close(flash.attention(query, key, value, mask=either), reference(query, key, value, keep)[0], "float32")


def alibi(s, b, h, q, k):
    return s + slopes[h] * (k - q)


def softcap(s, b, h, q, k):
    return 20.0 * np.tanh(s / 20.0)


SCORES = {
    "alibi": alibi,
    "softcap": softcap,
    "both": lambda s, b, h, q, k: alibi(softcap(s, b, h, q, k), b, h, q, k),
    "where": lambda s, b, h, q, k: np.where(k >= q, s, s - 1.5),
    "functions": lambda s, b, h, q, k: np.exp(-np.abs(s)) + np.sqrt(s * s + 1) + np.minimum(s, 0.5) * np.maximum(s, -1),
    "integers": lambda s, b, h, q, k: s * (q % 3) - k // 7 + (2 * h + b),
    "numbers of NumPy": lambda s, b, h, q, k: np.float32(0.5) * s + np.int64(2) * k / np.array(3.0) - np.float16(1),
    "powers": lambda s, b, h, q, k: s**2 / 3 - (-s) + 2 * np.sin(s) * np.cos(s),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores(make, name):
    score = SCORES[name]
    query, key, value = make()
    expected, expected_lse = reference(query, key, value, score=score)
    output, lse = flash.attention(query, key, value, score=score, return_lse=True)
    assert_close(output, expected, "float32")
    assert_close(lse, expected_lse, "float32")


def test_values_of_closures(make):
    query, key, value = make()
    for factor in (0.5, 2.0, 2):
        score = lambda s, b, h, q, k: s * factor
        expected, _ = reference(query, key, value, score=score)
        assert_close(flash.attention(query, key, value, score=score), expected, "float32")
    temperature = np.array(0.25, dtype=np.float32)
    for _ in range(2):
        temperature[()] *= 3
        score = lambda s, b, h, q, k: s * temperature
        expected, _ = reference(query, key, value, score=score)
        assert_close(flash.attention(query, key, value, score=score), expected, "float32")


def test_objects_that_change(make):
    """What a function reads from an object is read again at each call."""

    class Settings:
        factor = 1.0

        def score(self, s, b, h, q, k):
            return s * self.factor

    settings = Settings()
    query, key, value = make()
    for factor in (0.5, 2.0):
        settings.factor = factor
        expected, _ = reference(query, key, value, score=lambda s, b, h, q, k: s * factor)
        for score in (lambda s, b, h, q, k: s * settings.factor, settings.score):
            assert_close(flash.attention(query, key, value, score=score), expected, "float32")


def test_object_with_bias(make, rng):
    query, key, value = make()
    bias = rng.standard_normal((4, 37, 53)).astype(np.float16)
    attend = flash.Attention(mask=flash.causal(), score=lambda s, b, h, q, k: s + bias[h, q, k], return_lse=True)
    expected, expected_lse = reference(
        query, key, value, lambda b, h, q, k: k <= diagonal(q), lambda s, b, h, q, k: s + bias[h, q, k].astype(float)
    )
    output, lse = attend(query, key, value)
    assert_close(output, expected, "float32")
    assert_close(lse, expected_lse, "float32")
    lengths = np.array([20, 40], dtype=np.int32)
    assert attend(query, key, value, lengths=lengths)[0].shape == output.shape


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("heads, key_heads, size, value_size", [(1, 1, 8, 256), (6, 2, 64, 48), (4, 4, 256, 8)])
def test_shapes(make, dtype, heads, key_heads, size, value_size):
    query, key, value = make(1, heads, key_heads, 65, 130, size, value_size, dtype)
    expected, _ = reference(query, key, value, scale=0.1)
    output = flash.attention(query, key, value, scale=0.1)
    assert output.dtype == dtype
    assert_close(output, expected, dtype)


def count_new_kernels(make, lengths):
    known = len(flash.cache._kernels)
    for queries, keys in lengths:
        query, key, value = make(3, 6, 3, queries, keys, 24, 24)
        assert_close(flash.attention(query, key, value), reference(query, key, value)[0], "float32")
    return len(flash.cache._kernels) - known


def test_kernels_for_lengths(make):
    """Lengths up to 16, 32, 64 and above each share one, whatever the other sizes are."""
    assert count_new_kernels(make, [(1, 1), (16, 16), (0, 5), (5, 0)]) == 1
    assert count_new_kernels(make, [(3, 200), (1, 65), (16, 300)]) == 1
    assert count_new_kernels(make, [(17, 64), (65, 66), (128, 128), (33, 1)]) == 3
    assert count_new_kernels(make, [(20, 40), (200, 129), (64, 2), (256, 512)]) == 0


def test_strides(make):
    query, key, value = make()
    expected, _ = reference(query, key, value)
    bnhd = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (query, key, value)]
    assert_close(flash.attention(*bnhd), expected, "float32")
    packed = np.zeros((2, 37, 3, 4, 32), dtype=np.float32)
    packed[:, :, 0] = query.transpose(0, 2, 1, 3)
    q, k, v = packed.transpose(2, 0, 3, 1, 4)
    assert_close(flash.attention(q, k, v), reference(q, k, v)[0], "float32")
    backwards = query[:, :, ::-1, ::-1]
    assert_close(flash.attention(backwards, key, value), reference(backwards, key, value)[0], "float32")


def test_out(make):
    """The result lies in the array that is given, of any strides, and is it."""
    query, key, value = make(dtype=np.float32)
    expected, of_rows = flash.attention(query, key, value, flash.causal(), return_lse=True)
    out = np.full((2, 37, 4, 64), np.nan, np.float32)[..., ::2].swapaxes(1, 2)
    output, lse = flash.attention(query, key, value, flash.causal(), return_lse=True, out=out)
    assert output is out and (out == expected).all() and (lse == of_rows).all()
    other = np.empty_like(expected)
    assert flash.Attention(flash.causal())(query, key, value, out=other) is other and (other == expected).all()
    rows = [x.swapaxes(1, 2) for x in (query, key, value)]
    other = np.empty((2, 37, 4, 32), np.float32)
    assert flash.flash_attn_func(*rows, causal=True, out=other) is other and (other.swapaxes(1, 2) == expected).all()
    offsets, other = np.array([0, 20, 37], np.int32), np.empty((37, 4, 32), np.float32)
    packed = [x[0] for x in (rows[0], rows[1][:, :37], rows[2][:, :37])]
    assert flash.flash_attn_varlen_func(*packed, offsets, offsets, out=other) is other
    assert (other == flash.flash_attn_varlen_func(*packed, offsets, offsets)).all()
    other = np.empty((2, 37, 4, 32), np.float32)
    output, lse = flash.flash_attn_with_kvcache(*rows, cache_seqlens=53, causal=True, return_softmax_lse=True, out=other)
    assert output is other and lse.shape == (2, 4, 37)
    np.testing.assert_allclose(other.swapaxes(1, 2), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"out has the shape \(2, 4, 37, 32\); expected \(2, 37, 4, 32\)"):
        flash.flash_attn_func(*rows, out=expected)
    for wrong, kind, message in (
        (np.empty((2, 4, 37, 31), np.float32), ValueError, r"out has the shape \(2, 4, 37, 31\); expected \(2, 4, 37, 32\)"),
        (np.empty((2, 4, 37, 32)), TypeError, "out has the dtype float64; expected float32"),
        ([1], TypeError, "out is a list; expected a ndarray"),
        (
            np.lib.stride_tricks.as_strided(np.empty((4, 37, 32), np.float32), (2, 4, 37, 32), (0, 37 * 32 * 4, 32 * 4, 4)),
            ValueError,
            "out has stride 0 in dimension 0, of size 2; expected memory for each element",
        ),
    ):
        with pytest.raises(kind, match=message):
            flash.attention(query, key, value, out=wrong)


def test_rank_3(make):
    query, key, value = (x[0] for x in make())
    output, lse = flash.attention(query, key, value, mask=flash.causal(), score=alibi, return_lse=True)
    expected, expected_lse = reference(query, key, value, MASKS["causal"][1], alibi)
    assert_close(output, expected, "float32")
    assert_close(lse, expected_lse, "float32")


def test_copies(make):
    """Objects and masks are copied and pickled with the arrays that they read."""
    bias = np.random.default_rng(1).standard_normal((4, 37)).astype(np.float32)
    lengths = np.array([20, 53], dtype=np.int32)
    mask = (flash.causal() | flash.documents(np.arange(37) // 9, np.arange(53) // 9)) & flash.key_lengths(lengths)
    attend = flash.Attention(mask=mask, score=lambda s, b, h, q, k: s + bias[h, q] * k, scale=0.3, return_lse=True)
    query, key, value = make()
    expected = attend(query, key, value)
    for other in (copy.copy(attend), copy.deepcopy(attend), pickle.loads(pickle.dumps(attend))):
        for result, known in zip(other(query, key, value), expected):
            np.testing.assert_array_equal(result, known)
    # The arrays of a deep copy are its own, and those that a module has, too, are the same there.
    first, again = copy.deepcopy((attend, bias))
    assert first.captured[-1] is again and again is not bias
    for other in (copy.copy(mask), copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
        assert other == mask and hash(other) == hash(mask)
        expected = flash.attention(query, key, value, mask=mask)
        np.testing.assert_array_equal(flash.attention(query, key, value, mask=other), expected)
    assert copy.deepcopy(flash.causal()) is flash.causal()
    assert pickle.loads(pickle.dumps(flash.causal() & flash.prefix(3))) == flash.causal() & flash.prefix(3)


def test_pickles_of_other_processes():
    script = "import pickle, sys, flash_mlir as f; m = f.causal() & f.prefix(3); hash(m); "
    script += "sys.stdout.buffer.write(pickle.dumps(({m: 1}, f.Attention(m, scale=0.5))))"
    found, attend = pickle.loads(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout)
    assert found[flash.causal() & flash.prefix(3)] == 1
    array = np.ones((1, 1, 4, 8), dtype=np.float32)
    assert_close(attend(array, array, array), array, "float32")
