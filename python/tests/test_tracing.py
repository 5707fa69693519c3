"""What functions become: shared and deep expressions, methods and functions of arrays."""

import json

import numpy as np
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.attention import _prepare


def get_program(mask=None, score=None):
    """The text of a program."""
    return json.loads(_prepare(mask, score, None, None, False, False)[0].config)["programs"]["4"]


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
