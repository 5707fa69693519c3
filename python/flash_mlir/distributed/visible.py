"""Which keys a mask may show to queries of a range of positions, as far as the host can know it.

The condition of a mask is computed with intervals instead of positions: for each block of queries and each block of
keys it may hold, may not hold, or both. What a mask reads from arrays is not known, so that both are possible.
"""

import math

import numpy

from ..values import BOOL, FLOAT, INDEX, get_operands
from ..graphs import in_order

#: Into how many blocks the keys of a sequence, and the queries of a piece, are cut at most, and how long the former
#: are at least.
_KEY_BLOCKS = 512
_QUERY_BLOCKS = 16
_LEAST_BLOCK = 16
#: Ranges of keys with less than this part of all their keys between them are computed at once.
_GAP = 0.125

_ALL = (-math.inf, math.inf)
_EITHER = (True, True)


class Bounds:
    """Between which numbers the integers in an expression lie, and which truth values are possible.

    Args:
      symbols: For each symbol the arrays (least, greatest), which broadcast with each other.
    """

    def __init__(self, symbols):
        self.symbols = symbols
        self._known = {}

    def get(self, root):
        """(least, greatest) of an integer; (whether it may be true, whether it may be false) of a truth value."""
        with numpy.errstate(all="ignore"):
            for value in in_order([root], get_operands, self._known):
                # The value is kept, so that its id stays its own.
                self._known[id(value)] = (self._find(value), value)
        return self._known[id(root)][0]

    def _find(self, value):
        op = value.op
        if value.type == FLOAT:
            return None
        if op == "symbol":
            return self.symbols[value.operands[0]]
        if op == "constant":
            number = value.operands[0]
            return (number, not number) if value.type == BOOL else (float(number), float(number))
        if op == "load":
            return _EITHER if value.type == BOOL else _ALL
        operands = [self._known[id(operand)][0] for operand in value.operands]
        found = getattr(self, f"_{op}", None)
        if found is None or any(operand is None for operand in operands):
            return _EITHER if value.type == BOOL else _ALL
        result = found(value, *operands)
        return result if value.type == BOOL else _without_nan(result)

    def _and(self, value, left, right):
        if value.type == INDEX:
            return _ALL
        return left[0] & right[0], left[1] | right[1]

    def _or(self, value, left, right):
        if value.type == INDEX:
            return _ALL
        return left[0] | right[0], left[1] & right[1]

    def _xor(self, value, left, right):
        if value.type == INDEX:
            return _ALL
        return (left[0] & right[1]) | (left[1] & right[0]), (left[0] & right[0]) | (left[1] & right[1])

    def _not(self, value, operand):
        return operand[1], operand[0]

    def _lt(self, value, left, right):
        return left[0] < right[1], left[1] >= right[0]

    def _le(self, value, left, right):
        return left[0] <= right[1], left[1] > right[0]

    def _eq(self, value, left, right):
        is_single = (left[0] == left[1]) & (right[0] == right[1]) & (left[0] == right[0])
        return (left[0] <= right[1]) & (right[0] <= left[1]), numpy.logical_not(is_single)

    def _ne(self, value, left, right):
        return self._eq(value, left, right)[::-1]

    def _add(self, value, left, right):
        return left[0] + right[0], left[1] + right[1]

    def _sub(self, value, left, right):
        return left[0] - right[1], left[1] - right[0]

    def _mul(self, value, left, right):
        products = [x * y for x in left for y in right]
        return _least(*products), _greatest(*products)

    def _floordiv(self, value, left, right):
        if value.operands[1].op != "constant" or value.operands[1].operands[0] <= 0:
            return _ALL
        return numpy.floor(left[0] / right[0]), numpy.floor(left[1] / right[0])

    def _mod(self, value, left, right):
        if value.operands[1].op != "constant" or value.operands[1].operands[0] <= 0:
            return _ALL
        number = right[0]
        # Without a multiple between the ends, remainders grow with the number.
        is_one = numpy.floor(left[0] / number) == numpy.floor(left[1] / number)
        return numpy.where(is_one, left[0] % number, 0.0), numpy.where(is_one, left[1] % number, number - 1)

    def _select(self, value, condition, a, b):
        if value.type == BOOL:
            return tuple([(condition[0] & x) | (condition[1] & y) for x, y in zip(a, b)])
        only_a, only_b = ~numpy.asarray(condition[1]), ~numpy.asarray(condition[0])
        low, high = numpy.minimum(a[0], b[0]), numpy.maximum(a[1], b[1])
        low = numpy.where(only_a, a[0], numpy.where(only_b, b[0], low))
        return low, numpy.where(only_a, a[1], numpy.where(only_b, b[1], high))


def _least(*arrays):
    result = arrays[0]
    for array in arrays[1:]:
        result = numpy.fmin(result, array)
    return result


def _greatest(*arrays):
    result = arrays[0]
    for array in arrays[1:]:
        result = numpy.fmax(result, array)
    return result


def _without_nan(ends):
    """Where infinities have no difference or product, nothing is known."""
    low, high = ends
    is_lost = numpy.isnan(low) | numpy.isnan(high)
    if not numpy.any(is_lost):
        return ends
    return numpy.where(is_lost, -math.inf, low), numpy.where(is_lost, math.inf, high)


def get_bounds(queries, keys, sizes):
    """`Bounds` for the positions in ranges; `sizes` are (batch, heads, query length, key length).

    `queries` and `keys` are (first, last), numbers or arrays that broadcast with each other.
    """
    batch, heads, query_length, key_length = sizes
    symbols = {"b": (0.0, batch - 1.0), "h": (0.0, heads - 1.0), "i": queries, "j": keys}
    symbols.update(nq=(float(query_length),) * 2, nk=(float(key_length),) * 2)
    return Bounds(symbols)


def _look(condition, piece, sizes, blocks):
    """(the ends of blocks of queries, the ends of blocks of keys, which pairs of blocks may be seen)."""
    key_length = sizes[3]
    block = max(_LEAST_BLOCK, -(-key_length // _KEY_BLOCKS))
    query_ends = numpy.unique(numpy.linspace(*piece, blocks + 1).astype(numpy.int64))
    key_ends = numpy.append(numpy.arange(0, key_length, block), key_length)
    queries = query_ends[:-1, None].astype(float), query_ends[1:, None] - 1.0
    keys = key_ends[None, :-1].astype(float), key_ends[None, 1:] - 1.0
    may_be_seen, _ = get_bounds(queries, keys, sizes).get(condition)
    return query_ends, key_ends, numpy.broadcast_to(may_be_seen, (len(query_ends) - 1, len(key_ends) - 1))


def count_pairs_of_blocks(condition, piece, sizes, blocks):
    """The ends of at most so many blocks of a piece's queries, and how many pairs of a query and a key a mask may keep
    of each, to some hundredths.
    """
    query_ends, key_ends, seen = _look(condition, piece, sizes, blocks)
    return query_ends, numpy.diff(query_ends) * (seen.astype(numpy.int64) @ numpy.diff(key_ends))


def count_pairs(condition, piece, sizes):
    """How many pairs of a query of a piece and a key a mask may keep, to some hundredths."""
    if piece[0] == piece[1] or sizes[3] == 0:
        return 0
    return int(count_pairs_of_blocks(condition, piece, sizes, 4 * _QUERY_BLOCKS)[1].sum())


def find_keys(condition, piece, sizes):
    """The ranges of keys that queries of a piece may see, in order."""
    if piece[0] == piece[1] or sizes[3] == 0:
        return ()
    _, ends, seen = _look(condition, piece, sizes, _QUERY_BLOCKS)
    found = []
    for block in numpy.flatnonzero(seen.any(0)).tolist():
        if found and found[-1][1] == ends[block]:
            found[-1] = found[-1][0], int(ends[block + 1])
        else:
            found.append((int(ends[block]), int(ends[block + 1])))
    if not found:
        return ()
    found[0] = _tighten(condition, piece, found[0], sizes, int(ends[1]))
    return _join(found)


def _tighten(condition, piece, keys, sizes, block):
    """The range without the first keys that no query sees: under a window, pieces have the same number of others."""
    start, stop = keys
    firsts = numpy.arange(start, min(start + block, stop), dtype=float)
    queries = piece[0] + 0.0, piece[1] - 1.0
    may_be_seen, _ = get_bounds(queries, (firsts, firsts), sizes).get(condition)
    seen = numpy.flatnonzero(numpy.broadcast_to(may_be_seen, firsts.shape))
    return (start + int(seen[0]) if len(seen) else start), stop


def _join(ranges):
    """Ranges with small gaps between them as one: each is another kernel, and its results are merged."""
    total = ranges[-1][1] - ranges[0][0]
    joined = [ranges[0]]
    for start, stop in ranges[1:]:
        if start - joined[-1][1] < _GAP * total:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return tuple(joined)
