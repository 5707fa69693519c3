"""Packed rows (docs/ragged-rows.md) that are split over ranks."""

from .. import packing


class Rows:
    """The sequences that lie behind each other in the rows of all ranks.

    Args:
      offsets: Where each sequence starts, and the last one ends, on each rank the same. What lies on the host is known
        there, so that keys of sequences that a piece has no query of are not sent.
      device: Where the rows are.
      length: How many rows there are.
      sees_later: Whether a query may see keys behind it.
    """

    def __init__(self, offsets, device, length, sees_later):
        self._key = packing.get_key(offsets, offsets)
        on_host = not offsets.is_cuda
        self._ends = offsets.tolist() if on_host else None
        if on_host:
            self._check(length)
        self._offsets = offsets.to(device, non_blocking=True)
        self._length, self._sees_later = length, sees_later
        #: Where sequences end in a range of keys: where the piece of queries does, or with all their keys.
        self.kind = "whole" if sees_later else "aligned"

    def _check(self, length):
        if any(first > last for first, last in zip(self._ends, self._ends[1:])) or (self._ends and self._ends[0] < 0):
            raise ValueError("offsets decrease, or are negative; sequences lie behind each other")
        if self._ends and self._ends[-1] > length:
            raise ValueError(f"offsets end at {self._ends[-1]}, and the ranks have {length} rows")

    @property
    def key(self):
        """What ranges of keys depend on."""
        return self._sees_later, None if self._ends is None else tuple(self._ends)

    def find_keys(self, piece):
        """The range of keys that a piece of the queries is computed with."""
        start, stop = piece
        if start == stop:
            return ()
        if self._ends is None:
            return ((0, self._length if self._sees_later else stop),)
        inside = [
            (first, last)
            for first, last in zip(self._ends, self._ends[1:])
            if first < stop and last > start and first < last
        ]
        if not inside:
            return ()
        end = inside[-1][1] if self._sees_later else min(stop, inside[-1][1])
        return ((inside[0][0], end),)

    def cut(self, queries, keys):
        """(what programs depend on, offsets of queries and of keys, numbers of each sequence) of a part."""
        offsets = self._offsets
        of_queries, of_keys = (offsets.clamp(start, stop) - start for start, stop in (queries, keys))
        if not self._sees_later:
            # Of a sequence without queries here, keys are of no use; of others they end where the queries do.
            of_keys = offsets.clamp(keys[0], min(keys[1], queries[1])) - keys[0]
        numbers = {"q": (queries[0] - offsets[:-1]).clamp(min=0).int(), "nk": offsets.diff().int()}
        return self._key, (of_queries, of_keys), numbers
