"""Which rows of keys and values each rank needs, from whom, and in which order: arithmetic without tensors."""

import functools

from .shards import cut

#: Of how many pieces sequences are under `same_bits`: any number of ranks that divides it has the same ones.
SAME_PIECES = 16


class Piece:
    """Queries of a rank that are computed together: positions (start, stop), where they are in its tensors, and the
    keys they need.
    """

    __slots__ = ("start", "stop", "offset", "ranges")

    def __init__(self, start, stop, offset, ranges):
        self.start, self.stop, self.offset, self.ranges = start, stop, offset, ranges


class Contribution:
    """Gradients of keys that a rank sends together: the pieces of the queries that they are of, and the ranges of
    keys, where ranges that have keys in common are one.
    """

    __slots__ = ("pieces", "ranges")

    def __init__(self, pieces):
        self.pieces = pieces
        self.ranges = unite([each for piece in pieces for each in piece.ranges], touching=False)


def unite(ranges, touching=True):
    """Ranges that contain these, in order and without common positions; `touching` ones are one range, too."""
    united = []
    for start, stop in sorted(ranges):
        if start == stop:
            continue
        if united and start < united[-1][1] + touching:
            united[-1] = united[-1][0], max(united[-1][1], stop)
        else:
            united.append((start, stop))
    return tuple(united)


def count_rows(ranges):
    return sum(stop - start for start, stop in ranges)


def find_place(ranges, position):
    """Where a position is among the rows of ranges that lie behind each other."""
    place = 0
    for start, stop in ranges:
        if start <= position < stop:
            return place + position - start
        place += stop - start
    raise AssertionError(position)


def find_common(ranges, others):
    """What ranges have in common with others."""
    common = [(max(a, c), min(b, d)) for a, b in ranges for c, d in others]
    return [each for each in common if each[0] < each[1]]


def find_overlaps(pieces, ranges):
    """(row among the pieces' rows, row among the ranges' rows, count) of what they have in common."""
    found, offset = [], 0
    for start, stop in pieces:
        place = 0
        for first, last in ranges:
            low, high = max(start, first), min(stop, last)
            if low < high:
                found.append((offset + low - start, place + low - first, high - low))
            place += last - first
        offset += stop - start
    return found


class Transfers:
    """What each rank computes and needs in each step.

    In a gather there is one step, with all keys that are needed. In a ring there are as many as ranks, and in step s
    rank r has the keys of rank (r + s) % ranks.

    Args:
      shards, key_shards: `Shards` of the queries and of the keys.
      find_ranges: Gives the ranges of keys of a piece (start, stop).
      is_ring: Whether it is a ring.
      same_bits: Whether pieces, and what is added up, do not depend on the number of ranks.
    """

    def __init__(self, shards, key_shards, find_ranges, is_ring=False, same_bits=False):
        self.shards, self.key_shards = shards, key_shards
        self.ranks, self.is_ring, self.same_bits = shards.ranks, is_ring, same_bits
        self._find_ranges = find_ranges
        self.steps = self.ranks if is_ring else 1
        self.list_pieces = functools.lru_cache(maxsize=None)(self._list_pieces)
        self._at = functools.lru_cache(maxsize=None)(self._list_pieces_at)
        self.list_contributions = functools.lru_cache(maxsize=None)(self._list_contributions)
        self.needs = functools.lru_cache(maxsize=None)(
            lambda rank, step: unite([e for p in self.at(rank, step) for e in p.ranges])
        )
        self.holds = functools.lru_cache(maxsize=None)(self._find_held)
        self.exports = functools.lru_cache(maxsize=None)(self._find_exported)
        self.list_sent = functools.lru_cache(maxsize=None)(self._list_sent)

    def _list_pieces(self, rank):
        """The `Piece`s of a rank."""
        found, offset = [], 0
        ends = cut(self.shards.length, SAME_PIECES) if self.same_bits else ()
        for start, stop in self.shards.pieces[rank]:
            inner = [start, *[end for end in ends if start < end < stop], stop]
            for first, last in zip(inner, inner[1:]):
                found.append(Piece(first, last, offset + first - start, tuple(self._find_ranges((first, last)))))
            offset += stop - start
        return found

    def is_local(self, rank, step):
        """Whether a rank has all keys that it needs in a step, in their order."""
        return rank in self.get_owners(rank, step) and self.holds(rank, step) == self.key_shards.pieces[rank]

    def _find_held(self, rank, step):
        """The ranges of keys that a rank holds in a step: what it needs, and in a gather its own."""
        return unite([*self.needs(rank, step), *(() if self.is_ring else self.key_shards.pieces[rank])])

    def _find_exported(self, rank):
        """The ranges of its keys that a rank has in memory that others read: what these need, or all that it holds.

        It holds its own among them, and there is one copy of them.
        """
        if not self.is_local(rank, 0):
            return self.holds(rank, 0)
        return unite([each for peer in range(self.ranks) if peer != rank for each in self.list_sent(rank, peer, 0)])

    def get_owners(self, rank, step):
        """Whose keys a rank has in a step."""
        return [(rank + step) % self.ranks] if self.is_ring else range(self.ranks)

    def at(self, rank, step):
        """The pieces of a rank with the ranges of keys of a step."""
        return self._at(rank, step)

    def _list_pieces_at(self, rank, step):
        pieces = self.list_pieces(rank)
        if not self.is_ring:
            return pieces
        owned = self.key_shards.pieces[self.get_owners(rank, step)[0]]
        found = []
        for piece in pieces:
            found.append(
                Piece(piece.start, piece.stop, piece.offset, tuple(find_common(piece.ranges, sorted(owned))))
            )
        return found

    def _list_contributions(self, rank, step):
        """The `Contribution`s of a rank to the gradients of keys."""
        pieces = [piece for piece in self.at(rank, step) if piece.ranges]
        if self.same_bits:
            return [Contribution([piece]) for piece in sorted(pieces, key=lambda piece: piece.start)]
        return [Contribution(pieces)] if pieces else []

    def list_received_gradients(self, rank, step):
        """(rank that sends it, `Contribution`) of what belongs to keys of a rank, in the order in which it is added."""
        found = [
            (sender, each)
            for sender in range(self.ranks)
            if rank in self.get_owners(sender, step)
            for each in self.list_contributions(sender, step)
        ]
        return sorted(found, key=lambda each: each[1].pieces[0].start) if self.same_bits else found

    def _list_sent(self, owner, rank, step):
        """The ranges of its keys that an owner sends a rank in a step, in the order in which it sends them."""
        if owner not in self.get_owners(rank, step):
            return []
        return find_common(self.key_shards.pieces[owner], self.needs(rank, step))

    def list_overlaps(self, owner, ranges):
        """`find_overlaps` of the keys of a rank and ranges."""
        return find_overlaps(self.key_shards.pieces[owner], ranges)

    def count_received(self, rank):
        """How many rows of keys a rank is sent, in all steps."""
        return sum(
            count_rows(self.list_sent(owner, rank, step))
            for step in range(self.steps)
            for owner in self.get_owners(rank, step)
            if owner != rank
        )

    def count_received_gradients(self, rank):
        """How many rows of gradients of its keys a rank is sent."""
        total = 0
        for step in range(self.steps):
            for sender, each in self.list_received_gradients(rank, step):
                if sender != rank:
                    total += sum(count for _, _, count in self.list_overlaps(rank, each.ranges))
        return total

    def count_held(self, rank):
        """How many rows of keys a rank has at once at most."""
        return max(count_rows(self.holds(rank, step)) for step in range(self.steps))
