"""Checks the parameters that calls of scalars.mlir pass: scalars.py OUTPUT COUNT."""
import re
import struct
import sys


def u(value):
    return value % 2**64


def s(value):
    return (value + 2**63) % 2**64 - 2**63


def divide(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def expected(x, y):
    both = x >= y and u(x) <= u(y)
    return struct.pack(
        "<17q 3i 4x q 10i q 3i 4x q d",
        # Of i64.
        x + y, x - y, x * y,
        divide(x, y), s(u(x) // u(y)), -(-x // y), s(-(-u(x) // u(y))), x // y,
        x - y * divide(x, y), s(u(x) % u(y)),
        min(x, y), min(x, y, key=u), max(x, y), max(x, y, key=u),
        x & y, x | y, x ^ y,
        # Of i32, and back.
        x + y, divide(x, y), max(x, y, key=u), x + y,
        # Comparisons.
        x == y, x != y, x < y, x <= y, x > y, x >= y,
        u(x) < u(y), u(x) <= u(y), u(x) > u(y), u(x) >= u(y),
        # select, its condition, affine.apply, affine.max, constants.
        x if both else -(2**63), both,
        (x * 2 + y) % 7 - x // 3 - (-y // 5) + 1, max(x, y + 4, 0), -(2**63), -2.0,
    )  # fmt: skip


count = 0
for line in open(sys.argv[1]):
    if match := re.match(r"(\d+)x(\d+):", line):
        x, y = (int(size) - 1000 for size in match.groups())
    elif line.startswith("launch"):
        assert bytes.fromhex(line.split()[-1]) == expected(x, y), (x, y)
        count += 1
assert count == int(sys.argv[2]), count
