"""What functions become: shared and deep expressions, methods and functions of arrays."""

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.preparation import prepare
from flash_mlir.programs import print_program


def get_program(mask=None, score=None):
    """The text of a program."""
    return print_program(prepare(mask, score, None, None, False, False)[0].config, "f32", 4, 64, 64)


def check(make, mask=None, score=None, keep=None):
    query, key, value = make()
    expected, _ = reference(query, key, value, keep or mask, score)
    assert_close(flash.attention(query, key, value, mask=mask, score=score), expected, "float32")


def shared_index(n):
    def mask(b, h, q, k):
        x = q - k
        for _ in range(n):
            x = (x + x) % 1009
        return x % 2 == 0

    return mask


def shared_score(n):
    def score(s, b, h, q, k):
        for _ in range(n):
            s = s * 0.25 + s * 0.5
        return s

    return score


def shared_condition(n):
    def mask(b, h, q, k):
        m = k <= q
        for x in range(n):
            m = (m | (q - k == 3 * x)) & (m | ~(k == 2 * x + 1))
        return m

    return mask


def shared_load(n):
    table = np.random.default_rng(0).integers(0, 60, 120)

    def mask(b, h, q, k):
        x = k
        for _ in range(n):
            x = table[x + 0 * x]
        return x <= q

    return mask


def test_shared_values(make):
    """2^40 paths lead to the first value."""
    check(make, shared_index(40))
    check(make, shared_load(40))
    check(make, score=shared_score(40))


def test_programs_are_linear():
    for function in (shared_index, shared_condition, shared_load):
        half, whole = (len(get_program(mask=function(n))) for n in (100, 200))
        assert whole < 2.5 * half
    half, whole = (len(get_program(score=shared_score(n))) for n in (100, 200))
    assert whole < 2.5 * half


def test_shared_masks():
    """Masks that are made of each other several times are printed, hashed and compared in no time."""

    def make_mask():
        mask = flash.causal()
        for n in range(60):
            mask = (mask | flash.prefix(n)) & (mask | flash.window(left=n))
            mask = mask & mask
        return mask

    mask, other = make_mask(), make_mask()
    assert mask == other and hash(mask) == hash(other)
    assert len(repr(mask)) < 1000
    assert len(get_program(mask)) < 20000
    assert len(get_program(~mask)) < 40000
    assert (flash.causal() & flash.causal()).lowered[0] is flash.causal().lowered[0]


def test_deep_expressions():
    """Deeper than Python's own limit of recursion."""

    def mask(b, h, q, k):
        m, x = k <= q, q
        for n in range(3000):
            m = (m | (k == n)) & (k != n + 5)
            x = x + k % 7
        return m & (x > 3)

    program = get_program(mask)
    assert program.count("#mask") > 3000 and program.count("arith.addi") > 2000


def test_partly_affine_masks():
    """Tiles are hidden by whatever holds all that the mask keeps."""

    def mask(b, h, q, k):
        return (k < 4) | ((k <= q) & (q * k % 3 == 0))

    assert "mask(#flash.any_of<[" in get_program(mask) and "score" in get_program(mask)
    # A part that hides nothing hides nothing in a union.
    assert "mask(" not in get_program(lambda b, h, q, k: (k < 4) | (q * k % 3 == 0))
    # The other way round, in a negation.
    assert "mask(#flash.all_of<[" in get_program(lambda b, h, q, k: ~((k > q) | (q * k % 3 == 0) | (q > 5)))
    # All and nothing.
    assert "mask(" not in get_program(lambda b, h, q, k: np.True_) + get_program(lambda b, h, q, k: (k < 4) | True)
    assert "(-1 >= 0)" in get_program(lambda b, h, q, k: False)


# Each runs with traced values, and with arrays as the reference.
SCORES = {
    "clip": lambda s, b, h, q, k: np.clip(s, -0.5, 0.75) + np.clip(k - q, a_min=-9, a_max=None) + s.clip(0.1, 0.2),
    "casts": lambda s, b, h, q, k: (4 * s).astype(np.int32) + (k - q).astype(np.float32) / 7 + (s > 0).astype(int),
    "half": lambda s, b, h, q, k: (30 * s).astype(np.float16).astype("float32") * 0.5,
    "bool": lambda s, b, h, q, k: np.where((q % 3).astype(bool), s, -s),
    "divisions": lambda s, b, h, q, k: s + np.floor_divide(q - k, 5) + np.remainder(q - k, 7) - 2 / (k + 1.0),
    "rounding": lambda s, b, h, q, k: np.round(3 * s) + np.trunc(5 * s) + np.rint(s) + np.fix(2 * s),
    "functions": lambda s, b, h, q, k: np.log1p(abs(s)) + np.expm1(-np.square(s)) + np.sign(s) * np.sign(q - k),
    "powers": lambda s, b, h, q, k: np.power(s, 2) + np.reciprocal(k + 2.0) + 2.0 ** np.minimum(0, -k) + (+s),
    "comparisons": lambda s, b, h, q, k: np.where(np.logical_xor(s > 0, q == k) ^ np.isnan(s), s, 0.5 * np.fabs(s)),
    "like": lambda s, b, h, q, k: s + np.ones_like(s) * (q % 2) + np.full_like(s, 0.25) * k - np.zeros_like(s),
}


@pytest.mark.parametrize("name", SCORES)
def test_functions_and_methods(make, name):
    check(make, score=SCORES[name])


def test_casts_to_integers(make):
    """Towards zero, and to the nearest that 32 bits hold; an integer can be an index."""
    table = np.arange(-4.0, 5.0, dtype=np.float32)

    def bucket(s, b, h, q, k):
        return s + table[np.clip(8 * s, -4, 4).astype(np.int64) + 4]

    check(make, score=bucket)

    def large(s, b, h, q, k):
        low, high = (s * 0 - 1e20).astype(int), (s * 0 + 1e20).astype(int)
        return s + np.where((low == -(2**31)) & (high == 2**31 - 128), 1.5 * (k % 2), 0)

    query, key, value = make()
    expected, _ = reference(query, key, value, score=lambda s, b, h, q, k: s + 1.5 * (k % 2))
    assert_close(flash.attention(query, key, value, score=large), expected, "float32")


# What 32 bits do not hold, as a part of a mask or a score function.
WIDE = {
    "power": lambda s, b, h, q, k: s - 1e-14 * (40 * (q - k)) ** 4,
    "product": lambda s, b, h, q, k: s + 1e-12 * ((q * 100003) * (k * 1009)),
    "quotient": lambda s, b, h, q, k: s + (q * q * k * 1000003) // 65536 % 7 + 1e-6 * ((k * 99991 * 60013) // 3000000000),
    "choice": lambda s, b, h, q, k: s + 1e-9 * np.maximum((k - q) * 1000000007, 5) + (q * 123456789 * k > 10**11),
    "array": lambda s, b, h, q, k: s - 1e-10 * (1000 * (POSITIONS[q] - POSITIONS[k])) ** 2 - (LARGE[q] == LARGE[k]),
    "unsigned": lambda s, b, h, q, k: s + 1e-9 * (UNSIGNED[k] - UNSIGNED[q]),
}
POSITIONS = np.arange(0, 6000, 100, dtype=np.int32)
LARGE = np.arange(60) // 9 * 2**32
UNSIGNED = 2**32 - 1 - 10**7 * np.arange(60, dtype=np.uint32)


@pytest.mark.parametrize("name", WIDE)
def test_integers_of_64_bits(make, name, monkeypatch):
    for array in ("POSITIONS", "LARGE", "UNSIGNED"):
        monkeypatch.setitem(globals(), array, globals()[array].astype(np.int64))
    query, key, value = make()
    expected, _ = reference(query, key, value, score=WIDE[name])
    monkeypatch.undo()
    assert_close(flash.attention(query, key, value, score=WIDE[name]), expected, "float32")
    # Indices of a GPU have 32 bits.
    program = get_program(score=WIDE[name])
    assert not [line for line in program.splitlines() if "arith.muli" in line and line.endswith("index")]


def test_large_constants_in_masks(make):
    """A mask's constants have 32 bits; what has more is computed for each element."""

    def mask(b, h, q, k):
        return (q * 70000 * 70000 >= k * 4000000000) & (k * 3 < 2**40 + q) & (k - q <= 2**31 - 1) & (k > -(2**35))

    check(make, mask)
    assert get_program(mask).count("affine_set") == 1 and "score" in get_program(mask)


def test_integers_of_32_bits():
    """Distances have a position's 32 bits, which are faster."""
    for distance in (
        lambda b, h, q, k: abs(k - (q + flash.key_length - flash.query_length)),
        lambda b, h, q, k: np.clip(q * q * k, -100, 100) + (q * k % 1000) * (b % 64) + flash.query_length - q,
        lambda b, h, q, k: q // 4 + 2 * (k // 64 - q // 64) * 3 - 1000,
    ):
        text = get_program(score=lambda s, b, h, q, k: s + distance(b, h, q, k))
        assert "i64 to f32" not in text and "i32 to f32" in text


def test_captured_numbers(make):
    """An array without dimensions is a number, whatever is done to it."""
    scale, shift, causal = np.array(0.5, np.float32), np.array(3), np.array(True)

    def score(s, b, h, q, k):
        return np.where(shift == 3, s * scale.astype(np.float32).clip(0, 1), 0) + 1 / scale + 2**shift

    check(make, score=score)
    for unknown in (lambda b, h, q, k: k <= q if causal else k >= 0, lambda b, h, q, k: k <= q + int(shift)):
        with pytest.raises(flash.TraceError, match="known only when the kernel runs|before the kernel runs"):
            flash.attention(*make(), mask=unknown)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda s, b, h, q, k: s.astype(np.float64), "no traced values of dtype float64; float32, int32"),
        (lambda s, b, h, q, k: s.astype("int8"), "no traced values of dtype int8"),
        (lambda s, b, h, q, k: np.clip(s, 0, 1, dtype=np.float16), "numpy.clip cannot be traced with these arguments"),
        (lambda s, b, h, q, k: s.item(), "has no number before the kernel runs"),
        (lambda s, b, h, q, k: s + [0.5, 1.0][h], "indexes no list, tuple or range; make an array of what it indexes"),
        (lambda s, b, h, q, k: int(s), r"x.astype\(int\)"),
        (lambda s, b, h, q, k: np.median(s), "numpy.median cannot be traced; these can be traced: abs"),
        (lambda s, b, h, q, k: s + q // 0, "an integer is divided by 0"),
        (lambda s, b, h, q, k: s << 1, "integers and truth values alone have bits"),
        (lambda s, b, h, q, k: s * ((q > k) - (k > 3)), "truth values have no difference; use"),
    ],
)
def test_what_cannot_be_traced(make, function, message):
    with pytest.raises(flash.TraceError, match=message):
        flash.attention(*make(), score=function)


def test_nested_choices(make):
    """A comparison of 60 nested choices stays one: what a replacement of four of them would leave is no affine mask."""

    def nest(q, k):
        number = k
        for i in range(60):
            number = np.where(number > 3 * i, number + 1, q)
        return number

    def keep(b, h, q, k):
        return nest(q, k) <= q + 20

    check(make, keep)
    assert get_program(keep).count("arith.cmpi") == 61
    # A comparison with the least of two numbers is two, of which one is affine here.
    assert "affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0)>" in get_program(lambda b, h, q, k: k <= np.minimum(q, nest(q, k)))
