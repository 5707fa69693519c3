"""Arrays that masks and score functions read: no index is out of range, from any expression whose range follows."""

import itertools

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.expressions import BATCH, HEAD, KEY, QUERY, lift
from flash_mlir.ranges import get_range

BATCHES, HEADS, QUERIES, KEYS = 2, 4, 37, 53

#: An index, and the numbers from and to which it goes.
INDICES = {
    "b": (lambda b, h, q, k: b, (0, 1)),
    "h": (lambda b, h, q, k: h, (0, 3)),
    "q": (lambda b, h, q, k: q, (0, 36)),
    "k": (lambda b, h, q, k: k, (0, 52)),
    "k + 5": (lambda b, h, q, k: k + 5, (5, 57)),
    "5 - k + 60": (lambda b, h, q, k: 5 - k + 60, (13, 65)),
    "k // 2": (lambda b, h, q, k: k // 2, (0, 26)),
    "(k - 7) // 16 + 1": (lambda b, h, q, k: (k - 7) // 16 + 1, (0, 3)),
    "k % 16": (lambda b, h, q, k: k % 16, (0, 15)),
    "h % 16 + 2": (lambda b, h, q, k: h % 16 + 2, (2, 5)),
    "(h + 30) % 32": (lambda b, h, q, k: (h + 30) % 32, (0, 31)),
    "q - k + 52": (lambda b, h, q, k: q - k + 52, (0, 88)),
    "q * query_length + k": (lambda b, h, q, k: q * flash.query_length + k, (0, 36 * 37 + 52)),
    "b * 4 + h": (lambda b, h, q, k: b * 4 + h, (0, 7)),
    "k + key_length - query_length": (lambda b, h, q, k: k + flash.key_length - flash.query_length, (16, 68)),
    "minimum(k, 20)": (lambda b, h, q, k: flash.minimum(k, 20), (0, 20)),
    "maximum(q - k, 0)": (lambda b, h, q, k: flash.maximum(q - k, 0), (0, 36)),
    "abs(q - k)": (lambda b, h, q, k: abs(q - k), (0, 52)),
    "minimum(abs(k - q) // 4, 9) + 10 * (h // 2)": (lambda b, h, q, k: flash.minimum(abs(k - q) // 4, 9) + 10 * (h // 2), (0, 19)),
}


@pytest.mark.parametrize("name", INDICES)
def test_ranges(make, name):
    """The array of just the size is read rightly, and one that is smaller is refused."""
    index, (lo, hi) = INDICES[name]
    b, h, q, k = np.ogrid[:BATCHES, :HEADS, :QUERIES, :KEYS]
    found = np.array(0)
    if "length" not in name and "imum" not in name:
        found = index(b, h, q, k)
        assert (found.min(), found.max()) == (lo, hi)
    query, key, value = make()
    table = np.linspace(-3, 3, hi + 1, dtype=np.float32)
    score = lambda s, b, h, q, k: s + table[index(b, h, q, k)]
    output = flash.attention(query, key, value, score=score)
    if found.ndim:
        assert_close(output, reference(query, key, value, score=score)[0], "float32")
    text = get_range(index(BATCH, HEAD, QUERY, KEY))[1]
    whole, table = table, table[:-1]
    with pytest.raises(ValueError) as error:
        flash.attention(query, key, value, score=score)
    assert f"table has size {hi} in dimension 0, where {text} goes from {lo} to {hi}; " in str(error.value)
    table = whole[None]
    shifted = lambda s, b, h, q, k: s + table[0, index(b, h, q, k) - 1 - lo]
    with pytest.raises(ValueError, match=r"goes from -1 to \d+; that must be in range also where it is hidden"):
        flash.attention(query, key, value, score=shifted, mask=lambda b, h, q, k: q * k % 3 == 0)


def make_text(generator, depth):
    """A random expression."""
    kind = generator.integers(0, 9 if depth else 2)
    if kind == 0:
        return "bhqk"[generator.integers(0, 4)]
    number = generator.integers(1, 6)
    if kind == 1:
        return str(number - 3)
    left, right = make_text(generator, depth - 1), make_text(generator, depth - 1)
    return {
        2: f"({left} // {number})",
        3: f"({left} % {number})",
        4: f"abs({left})",
        5: f"({left} + {right})",
        6: f"({left} - {right})",
        7: f"({left} * {right})",
        8: f"{('minimum', 'maximum')[number % 2]}({left}, {right})",
    }[kind]


@pytest.mark.parametrize("sizes", list(itertools.product((1, 3), (2,), (1, 5), (1, 7))))
def test_ranges_of_random_expressions(sizes):
    """Those that are found are exact: what the message for an empty array says is true of the positions."""
    generator = np.random.default_rng(sizes)
    query, key = (np.zeros((sizes[0], sizes[1], n, 8), dtype=np.float32) for n in sizes[2:])
    positions = np.ogrid[tuple(slice(size) for size in sizes)]
    table = np.zeros(0, dtype=np.float32)
    known = 0
    for _ in range(300):
        text = make_text(generator, 4)
        index = eval(f"lambda minimum, maximum, b, h, q, k: {text}")
        value = lift(index(flash.minimum, flash.maximum, BATCH, HEAD, QUERY, KEY))
        if value.op == "constant" or get_range(value) is None:
            continue
        known += 1
        numbers = index(np.minimum, np.maximum, *positions)
        expected = f" goes from {numbers.min()} to {numbers.max()}; "
        with pytest.raises(ValueError) as error:
            score = lambda s, b, h, q, k: s + table[index(flash.minimum, flash.maximum, b, h, q, k)]
            flash.attention(query, key, key, score=score)
        assert expected in str(error.value), text
    assert known > 50


def test_hidden_distances(make):
    """An index of both positions need not be in range where a mask leaves scores out; one of a single position must."""
    query, key, value = make(queries=40, keys=40)
    table = np.linspace(-1, 1, 40, dtype=np.float32)
    score = lambda s, b, h, q, k: s + table[q - k]
    expected, _ = reference(query, key, value, lambda b, h, q, k: k <= q, score)
    assert_close(flash.attention(query, key, value, mask=flash.causal(), score=score), expected, "float32")
    message = "table has size 40 in dimension 0, where q - k goes from -39 to 39; that must be in range also where it is"
    with pytest.raises(ValueError, match=message):
        flash.attention(query, key, value, score=score)
    with pytest.raises(ValueError, match="where q goes from 0 to 39|where k - 3 goes from -3 to 36"):
        flash.attention(query, key, value, mask=flash.causal(), score=lambda s, b, h, q, k: s + table[k - 3])


def test_arrays_with_several_indices(make):
    """One array in several places: each of its indices counts."""
    query, key, value = make(queries=40, keys=30)
    for size, is_good in ((40, True), (39, False), (30, False)):
        ids = np.zeros(size, dtype=np.int32)
        for mask in (flash.documents(ids), lambda b, h, q, k: ids[k] == ids[q]):
            if is_good:
                assert_close(flash.attention(query, key, value, mask=mask), reference(query, key, value)[0], "float32")
                continue
            with pytest.raises(ValueError, match=f"ids has size {size} in dimension 0, where q goes from 0 to 39"):
                flash.attention(query, key, value, mask=mask)
    with pytest.raises(ValueError, match="query_ids has size 1 in dimension 0, where b goes from 0 to 1"):
        flash.attention(query, key, value, mask=flash.documents(np.zeros((1, 40), dtype=np.int32)))
    # Nothing is read where there are no queries.
    empty = np.zeros(0, dtype=np.int32)
    assert flash.attention(query[:, :, :0], key, value, mask=lambda b, h, q, k: empty[q] == 0).shape == (2, 4, 0, 32)


def test_messages_name_the_arrays_of_the_call():
    """Also where a mask of the same formula, of arrays with other names, was prepared before."""
    query = np.zeros((1, 1, 10, 16), np.float32)
    ids, short = np.zeros(10, np.int32), np.zeros(9, np.int32)
    for call in (lambda mask: flash.attention(query, query, query, mask=mask), lambda mask: flash.plan(mask, query, query)):
        call(flash.documents(ids))
        call(flash.mask(lambda b, h, q, k: ids[q] == ids[k]))
        with pytest.raises(ValueError, match="^query_ids has size 9"):
            call(flash.documents(short))
        with pytest.raises(ValueError, match="^short has size 9"):
            call(flash.mask(lambda b, h, q, k: short[q] == short[k]))


def test_constant_indices(make):
    query, key, value = make()
    table = np.array([1.0, 2.0, 4.0], dtype=np.float32)
    output = flash.attention(query, key, value, score=lambda s, b, h, q, k: s * table[-1] + table[-3] * table[1])
    assert_close(output, reference(query, key, value, score=lambda s, *_: s * 4)[0], "float32")
    for index in (3, -4):
        message = f"table has size 3 in dimension 0, where it is indexed with {index}"
        with pytest.raises(ValueError, match=message):
            flash.attention(query, key, value, score=lambda s, b, h, q, k: s * table[index])


def test_ranges_that_are_not_known():
    """Those of data, and of expressions that look at a position twice, which may or may not be in range."""
    data = flash.tensor(np.zeros(53, dtype=np.int32))
    for index in (data[KEY], KEY - KEY % 16, flash.where(KEY < 3, KEY, 0), (KEY * 2 + 1) % 4):
        assert get_range(index) is None


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
def test_integers(make, dtype):
    """Unsigned ones are positive, and those of more than 31 bits stay what they are."""
    query, key, value = make()
    top = min(int(np.iinfo(dtype).max), 2**40)
    table = np.array([top, 0, top // 2, top - 1] * 20, dtype=dtype)
    score = lambda s, b, h, q, k: s + table[k] / float(top) + np.where(table[q] > table[k], 0.5, 0.0)
    assert_close(flash.attention(query, key, value, score=score), reference(query, key, value, score=score)[0], "float32")
    ids = table.astype(dtype)
    mask = lambda b, h, q, k: ids[q] == ids[k]
    expected, _ = reference(query, key, value, mask)
    assert_close(flash.attention(query, key, value, mask=flash.documents(ids)), expected, "float32")


def test_misaligned(make):
    """Arrays whose elements are not at multiples of their size are copied, as those with gaps are."""
    query, key, value = make()

    def misalign(array):
        memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
        moved = np.ndarray(array.shape, array.dtype, memory, offset=1)
        moved[...] = array
        assert not moved.flags.aligned
        return moved

    bias = misalign(np.arange(4, dtype=np.float32))
    score = lambda s, b, h, q, k: s + bias[h] * (k - q)
    expected, _ = reference(query, key, value, score=score)
    assert_close(flash.attention(misalign(query), key, misalign(value), score=score), expected, "float32")
