"""How large the integers of a function can get, and so which of them need 64 bits.

Indices have 32 bits on a GPU. Positions and lengths are below 2^31, their products and sums need not be. Beyond 64
bits integers wrap, as PyTorch's do.
"""

import operator

from .graphs import in_order
from .ranges import Inexact, match_select
from .values import INDEX, get_operands

_ALL = -(2**63), 2**63 - 1
_SYMBOLS = ("b", "h", "i", "nq", "j", "nk")
_NONE = (0,) * len(_SYMBOLS)
# The last position of the greatest length, which leaves room for the ends of tiles, and so for sums with a constant. A
# position and its length are in sums together: these are their ends.
_LAST = 2**31 - 2**20 - 1
_CORNERS = ((0, 1), (0, _LAST + 1), (_LAST, _LAST + 1))


class Widths:
    """Between which numbers integers lie. A range may be larger than need be."""

    def __init__(self):
        self._known = {}

    def get_bounds(self, root):
        """The least and the greatest number that an integer can be."""
        for value in in_order([root], get_operands, self._known):
            # The value is kept, so that its id stays its own.
            self._known[id(value)] = (*self._find(value), value)
        return self._known[id(root)][0]

    def is_wide(self, value):
        """Whether 32 bits do not hold an integer."""
        low, high = self.get_bounds(value)
        return low < -(2**31) or high >= 2**31

    def _find(self, value):
        """The bounds of an integer, and the sum that it is: the factor of each symbol, and the bounds of the rest."""
        op, operands = value.op, value.operands
        if value.type != INDEX:
            return None, None, None
        if op == "symbol":
            return _add_up(tuple([int(name == operands[0]) for name in _SYMBOLS]), (0, 0))
        if op in ("add", "sub", "mul"):
            return self._find_sum(op, *operands)
        if op == "constant":
            bounds = operands * 2
        elif op == "load":
            bounds = operands[0].get_bounds()
        elif op == "select":
            bounds = self._find_choice(*operands)
        else:
            bounds = _BOUNDS[op](*[self.get_bounds(operand) for operand in operands if operand.type == INDEX])
        return bounds, _NONE, bounds

    def _find_sum(self, op, left, right):
        if op == "mul" and left.op == "constant":
            left, right = right, left
        (bounds, factors, rest, _), (more_bounds, more_factors, more_rest, _) = (
            self._known[id(operand)] for operand in (left, right)
        )
        if op == "mul" and right.op != "constant":
            return _add_up(_NONE, _get_ends([x * y for x in bounds for y in more_bounds]))
        if op == "mul":
            number = right.operands[0]
            return _add_up(tuple([factor * number for factor in factors]), _get_ends([x * number for x in rest]))
        sign = 1 if op == "add" else -1
        factors = tuple([x + sign * y for x, y in zip(factors, more_factors)])
        return _add_up(factors, _get_ends([x + sign * y for x in rest for y in more_rest]))

    def _find_choice(self, condition, a, b):
        try:
            kind, operands = match_select(condition, a, b)
        except Inexact:
            kind, operands = None, (a, b)
        lows, highs = zip(*map(self.get_bounds, operands))
        if kind == "abs":
            return (0, max(-lows[0], highs[0])) if lows[0] > _ALL[0] else _ALL
        return (max if kind == "maximum" else min)(lows), (min if kind == "minimum" else max)(highs)


def _get_ends(numbers):
    return min(numbers), max(numbers)


def _add_up(factors, rest):
    """What `_find` returns of a sum."""
    batch, head, *of_lengths = factors
    ends = [rest, _get_ends([0, batch * _LAST]), _get_ends([0, head * _LAST])]
    for position, length in (of_lengths[:2], of_lengths[2:]):
        ends.append(_get_ends([position * x + length * y for x, y in _CORNERS]))
    low, high = map(sum, zip(*ends))
    if low < _ALL[0] or high > _ALL[1]:
        return _ALL, _NONE, _ALL
    return (low, high), factors, rest


def _divide(dividend, divisor):
    if divisor[0] == divisor[1] > 0:
        return dividend[0] // divisor[0], dividend[1] // divisor[0]
    most = max(map(abs, dividend))
    return max(-most, _ALL[0]), min(most, _ALL[1])


def _get_remainder(dividend, divisor):
    low, high = min(divisor[0] + 1, 0), max(divisor[1] - 1, 0)
    if 0 <= dividend[0] and divisor[0] > 0:
        high = min(high, dividend[1])
    return low, high


def _get_bits(*bounds):
    """Of &, | and ^: as many bits as the operands have."""
    bits = max(max(high.bit_length(), (~low if low < 0 else low).bit_length()) for low, high in bounds)
    return -(2**bits) if min(low for low, _ in bounds) < 0 else 0, 2**bits - 1


def _get_common_bits(*bounds):
    """Of &, which is no greater than what is not negative."""
    highs = [high for low, high in bounds if low >= 0]
    return (0, min(highs)) if highs else _get_bits(*bounds)


def _get_power(base, exponent):
    """By what is not negative."""
    most = max(1, *map(abs, base)) ** min(exponent[1], 64)
    return _ALL if most > _ALL[1] else (-most if base[0] < 0 else 0, most)


def _shift(op):
    def get_bounds(number, count):
        counts = [min(max(each, 0), 63) for each in count] + [63] * (count[0] < 0 or count[1] > 63)
        low, high = _get_ends([op(x, y) for x in (*number, 0) for y in counts])
        return (low, high) if _ALL[0] <= low and high <= _ALL[1] else _ALL

    return get_bounds


_BOUNDS = {"floordiv": _divide, "mod": _get_remainder, "to_index": lambda: (-(2**31), 2**31 - 1)}
_BOUNDS.update({"and": _get_common_bits, "or": _get_bits, "xor": _get_bits})
_BOUNDS["ipow"] = _get_power
_BOUNDS.update(shl=_shift(operator.lshift), shr=_shift(operator.rshift))
