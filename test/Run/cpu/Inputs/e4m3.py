"""Writes numbers of f32, or compares them with what they were rounded to, codes of f8E4M3FN."""

import sys

import numpy as np

NAN, SIGN, LARGEST = 127, 128, 126


def write(path):
    rng = np.random.default_rng()
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    others = rng.standard_normal(1 << 16) * np.exp2(rng.uniform(-12, 10, 1 << 16))
    np.save(path, np.concatenate([halves, others.astype(np.float32)]))


def compare(given, rounded):
    x, codes = np.load(given), np.load(rounded).view(np.uint8)
    numbers = np.arange(LARGEST + 1)
    exponent, mantissa = numbers >> 3, numbers & 7
    values = np.where(exponent > 0, (mantissa + 8) * 2.0 ** (exponent - 10.0), mantissa * 2.0**-9)
    size = np.nan_to_num(np.abs(x.astype(np.float64)), nan=0, posinf=np.inf)
    above = np.clip(np.searchsorted(values, size), 1, LARGEST)
    from_below, from_above = size - values[above - 1], values[above] - size
    is_up = (from_below > from_above) | ((from_below == from_above) & (above % 2 == 0))
    expected = np.where(size >= values[-1], LARGEST, np.where(is_up, above, above - 1))
    expected = np.where(np.isnan(x), NAN, expected) | np.signbit(x) * SIGN
    wrong = expected != codes
    assert not wrong.any(), f"{x[wrong][:5]} became {codes[wrong][:5]}, expected {expected[wrong][:5]}"


{"write": write, "compare": compare}[sys.argv[1]](*sys.argv[2:])
