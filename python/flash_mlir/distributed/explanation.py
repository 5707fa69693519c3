"""Which way a call takes to bring queries and keys together, and what it moves: arithmetic without tensors."""

import dataclasses
import math
import typing

from .heads import Layout as LayoutOfHeads
from .local import Functions
from .shared import Layout
from .shards import Shards, cut
from .transfers import SAME_PIECES, Transfers, count_rows

WAYS = "gather", "heads", "ring"
EXCHANGES = "copies", "messages"
#: How many bytes of keys and values are worth a group of heads of their own, and how many groups there are at most.
_GROUP_BYTES = 64 << 20
_MOST_GROUPS = 8
#: Where ranks copy, the part of the heads for whose keys kernels wait at first, and whose gradients are last. They are
#: worth kernels of their own if a rank receives so many bytes of keys and values, and they have so many rows of keys,
#: whose tiles fill a GPU.
_EDGE = 8
_EDGE_BYTES = 96 << 20
_EDGE_ROWS = 1 << 18
#: The same where heads are exchanged, of rows of queries: each rank has all of them.
_EDGE_ROWS_OF_HEADS = 1 << 17
#: From so many queries of a rank on, kernels of a gather hide what it sends, and take as long as kernels of all rows.
_ROWS_OF_GATHER = 1 << 15
#: How many bytes of keys and values are under way at once, unless a group has more.
_AHEAD_BYTES = 2 << 30


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What a call does; numbers of bytes are of the rank that has most.

    Attributes:
      way: "gather": keys and values are sent to the ranks that need them; "heads": ranks exchange heads; "ring": keys
        and values are sent in as many steps as there are ranks, and a rank has one other rank's at a time.
      why: Why it is this way.
      head_groups: How many heads of keys are sent at a time, in groups; where heads are exchanged, how many of each
        rank's heads.
      ahead: How many of these groups are under way while one is computed.
      exchange: "copies": ranks read and write each other's memory; "messages": they send and receive.
      forward_bytes, backward_bytes: What a rank receives.
      memory: What a rank holds of other ranks' rows at once, in bytes, in the backward pass with the gradients of
        these. With copies it is all memory that it shares, with its own rows.
      keys: Of each rank the ranges of positions of keys that it computes with.
      pairs: Of each rank the pairs of a query and a key that are computed, in millions and to some hundredths: how even
        the work is. Of packed rows they are all pairs of a piece of the queries and its range of keys.
    """

    way: str
    why: str
    head_groups: typing.Tuple
    ahead: int
    exchange: str
    forward_bytes: int
    backward_bytes: int
    memory: int
    keys: typing.Tuple
    pairs: typing.Tuple

    def __str__(self):
        lines = [
            f"{self.way}: {self.why}",
            f"groups of {', '.join(map(str, self.head_groups))} heads of keys, {self.ahead} ahead, as {self.exchange}",
        ]
        lines.append(
            f"a rank receives up to {self.forward_bytes} bytes in the forward pass, and {self.backward_bytes} in "
            f"the backward pass"
        )
        lines.append(f"a rank holds up to {self.memory} bytes of other ranks' rows")
        for rank, (ranges, pairs) in enumerate(zip(self.keys, self.pairs)):
            shown = ", ".join(f"{start} to {stop}" for start, stop in ranges) or "none"
            lines.append(f"rank {rank}: keys {shown}; {pairs:.3f} million pairs")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of a call."""

    batch: int
    heads: int
    key_heads: int
    dim: int
    value_dim: int
    bytes: int
    shards: Shards
    key_shards: Shards

    @property
    def sizes(self):
        return self.batch, self.heads, self.shards.length, self.key_shards.length

    @property
    def row_bytes(self):
        """Of a key and its value, for all heads."""
        return self.batch * self.key_heads * (self.dim + self.value_dim) * self.bytes


def _choose_groups_of_copies(heads, received, rows, least_rows):
    """How many of these heads of keys are copied at a time, which have so many rows each.

    All are under way from the start: few heads are the first, as kernels wait for them, and the last, whose gradients
    wait for kernels, if a rank receives enough bytes.
    """
    edge = max(1, heads // _EDGE)
    if received < _EDGE_BYTES or edge * rows < least_rows or heads < 3:
        return (heads,)
    return edge, heads - 2 * edge, edge


def choose_groups(shape, heads, head_groups):
    """How many of these heads of keys are sent at a time; it does not depend on the number of ranks.

    Raises:
      ValueError: The sizes of groups are not of all heads.
    """
    if isinstance(head_groups, tuple):
        if sum(head_groups) != heads or min(head_groups) < 1:
            raise ValueError(
                f"head_groups is {head_groups}; expected positive sizes of groups of {heads} heads of keys"
            )
        return head_groups
    if head_groups is None:
        head_groups = min(_MOST_GROUPS, shape.key_shards.length * shape.row_bytes // _GROUP_BYTES)
    return _cut_heads(heads, max(1, min(head_groups, heads)))


def _cut_heads(heads, count):
    ends = cut(heads, count)
    return tuple([stop - start for start, stop in zip(ends, ends[1:])])


def _make_transfers(functions, shape, rows, is_ring, same_bits):
    """The `Transfers` of a call; `rows` are of packed rows, or None."""
    # What is remembered keeps no arrays of this call.
    functions = functions.without_arrays()

    def find_ranges(piece):
        return functions.find_keys(piece, shape.sizes) if rows is None else rows.find_keys(piece)

    return Transfers(shape.shards, shape.key_shards, find_ranges, is_ring, same_bits)


def choose(
    functions,
    shape,
    way=None,
    head_groups=None,
    ahead=None,
    memory=None,
    same_bits=False,
    exchange=None,
    rows=None,
    room=0,
):
    """(`Transfers`, the way's `Layout` or None where ranks do not copy, `Explanation`).

    `room` is how many bytes each rank may share.

    Raises:
      ValueError: The way does not fit the call; the message says why.
    """
    given = way, head_groups, ahead, memory, same_bits, exchange
    what = ("way", shape, *given, None if rows is None else rows.key, room)
    return functions.remember(what, lambda: _choose(functions, shape, *given, rows, room))


def _choose(functions, shape, way, head_groups, ahead, memory, same_bits, exchange, rows, room):
    most = room if memory is None else min(room, memory)
    if exchange == "messages" or shape.shards.ranks == 1:
        most = 0
    given = way, head_groups, ahead, memory, same_bits, exchange
    transfers, explanation = _choose_way(functions, shape, *given, rows, most)
    if exchange == "copies" and explanation.way == "ring":
        raise ValueError("exchange is 'copies', and the way is 'ring', in which ranks send messages")
    if shape.shards.ranks == 1 or exchange == "messages" or explanation.way == "ring":
        return transfers, None, explanation
    if explanation.way == "heads":
        layout = _make_layout_of_heads(shape)
    else:
        if head_groups is None:
            # Under same_bits groups do not depend on the number of ranks.
            received = shape.key_shards.length * shape.row_bytes // 2 if same_bits else explanation.forward_bytes
            of_head = shape.batch * shape.key_shards.length
            groups = _choose_groups_of_copies(shape.key_heads, received, of_head, _EDGE_ROWS)
        else:
            groups = choose_groups(shape, shape.key_heads, head_groups)
        layout = Layout(transfers, shape.batch, (shape.dim, shape.value_dim), shape.bytes, groups)
    if layout.size <= most:
        if explanation.way == "gather":
            ahead = len(groups) - 1 if ahead is None else ahead
            more = dict(head_groups=groups, ahead=ahead, exchange="copies", memory=layout.size)
            explanation = dataclasses.replace(explanation, **more)
        return transfers, layout, explanation
    if exchange == "copies":
        raise ValueError(
            f"exchange is 'copies', for which each rank would share {layout.size} bytes; they can share {most}"
            + ("" if room else ", as they are not on one host with a GPU for each that reads the others'")
        )
    return transfers, None, explanation


def _make_layout_of_heads(shape):
    dims = shape.dim, shape.value_dim
    return LayoutOfHeads(shape.sizes, shape.key_heads, shape.shards.ranks, dims, shape.bytes)


def _choose_way(functions, shape, way, head_groups, ahead, memory, same_bits, exchange, rows, most):
    _check(shape, way, same_bits, exchange, rows)
    ranks, heads = range(shape.shards.ranks), shape.key_heads
    exchanged = None
    # Sizes of groups are of a gather, unless a call says that heads are exchanged.
    are_sizes = isinstance(head_groups, tuple)
    if heads % len(ranks) == 0 and rows is None and not same_bits and (way == "heads" or not are_sizes):
        exchanged = _explain_heads(shape, head_groups, ahead, most)
    groups = choose_groups(shape, heads, None if way == "heads" else head_groups)
    gather = _make_transfers(functions, shape, rows, False, same_bits)
    needs = tuple([gather.needs(rank, 0) for rank in ranks])
    # In both passes; keys are sent again in the second one.
    received = (
        2 * max(map(gather.count_received, ranks)) + max(map(gather.count_received_gradients, ranks))
    ) * shape.row_bytes
    def get_held(transfers, groups, ahead):
        """What a rank holds: keys of the units that are under way, and gradients of one."""
        units = min(ahead + 1, len(groups) * transfers.steps) + 1
        return units * max(map(transfers.count_held, ranks)) * max(groups) * shape.row_bytes // heads

    def find_groups(transfers, groups):
        """Groups that `memory` has room for, at least as many as these; None where there are none."""
        for count in range(len(groups), heads + 1):
            groups = groups if count == len(groups) else _cut_heads(heads, count)
            if memory is None or get_held(transfers, groups, ahead) <= memory:
                return groups
        return None

    if ahead is None:
        room = _AHEAD_BYTES // max(get_held(gather, groups, 0) // 2, 1)
        ahead = max(1, min(len(groups) - 1, room)) if memory is None else 1
    why = "way= says so"
    if way is None:
        way, why, groups = _find_way(
            shape,
            groups,
            exchanged,
            received,
            memory,
            exchange,
            rows is None and not same_bits,
            lambda: find_groups(gather, groups),
        )
    elif way == "gather":
        groups = find_groups(gather, groups)
    if way == "heads":
        if memory is not None and exchanged.memory > memory:
            raise ValueError(f"memory is {memory}, and an exchange of heads needs {exchanged.memory} bytes")
        return gather, dataclasses.replace(exchanged, why=why)
    transfers = gather
    if way == "ring":
        transfers = _make_transfers(functions, shape, None, True, False)
        groups = find_groups(transfers, (heads,) if head_groups is None else groups)
    if groups is None:
        least = get_held(transfers, (1,) * heads, ahead)
        hint = ", and packed rows and same_bits=True have no ring" if rows is not None or same_bits else ""
        raise ValueError(f"memory is {memory}, and a {way} of one head of keys at a time needs {least} bytes{hint}")
    received, gradients = (
        max(map(count, ranks)) * shape.row_bytes
        for count in (transfers.count_received, transfers.count_received_gradients)
    )

    def count_pairs(piece):
        if rows is None:
            return functions.count_pairs((piece.start, piece.stop), shape.sizes)
        return (piece.stop - piece.start) * count_rows(piece.ranges)

    pairs = tuple([sum(map(count_pairs, transfers.list_pieces(rank))) / 1e6 for rank in ranks])
    held = get_held(transfers, groups, ahead)
    return transfers, Explanation(
        way, why, groups, ahead, "messages", received, received + gradients, held, needs, pairs
    )


def _find_way(shape, groups, exchanged, received, memory, exchange, can_ring, find_groups):
    """(way, why, groups of heads, None where memory has no room for the way)."""
    copies = exchanged is not None and exchanged.exchange == "copies"
    fits = copies or exchanged is not None and (memory is None or exchanged.memory <= memory)
    total = 0 if exchanged is None else exchanged.forward_bytes + exchanged.backward_bytes
    if copies:
        is_better = total <= received and max(map(shape.shards.count, range(shape.shards.ranks))) < _ROWS_OF_GATHER
    else:
        # Of messages each rank copies what it exchanges, and waits for it.
        is_better = 2 * total < received
    if fits and shape.shards.ranks > 1 and is_better:
        why = f"a rank receives {total} bytes of all, where keys, values and their gradients alone would be {received}"
        return "heads", why, groups
    why = f"a rank receives up to {received} bytes of keys, values and their gradients"
    if exchange == "copies":
        return "gather", why, groups
    found = find_groups()
    if found is not None:
        return "gather", why if found == groups else f"{why}, of few heads at a time for memory={memory}", found
    if not can_ring:
        return "gather", why, None
    way = "heads" if fits else "ring"
    return way, f"keys and values of one head do not fit in memory={memory}", groups


def _explain_heads(shape, head_groups, ahead, most):
    """The `Explanation` of an exchange of heads, by copies if a rank may share so many bytes."""
    ranks, (_, _, queries, keys) = shape.shards.ranks, shape.sizes
    heads, row = shape.key_heads // ranks, shape.batch * (shape.dim + shape.value_dim) * shape.bytes
    forward, backward = _count_bytes_of_heads(shape)
    size = _make_layout_of_heads(shape).size
    copies = ranks > 1 and size <= most
    if copies:
        # All is sent again, and results, too.
        backward += forward
        groups = choose_groups(shape, heads, head_groups)
        if head_groups is None:
            of_head = shape.batch * queries * shape.heads // shape.key_heads
            groups = _choose_groups_of_copies(heads, forward, of_head, _EDGE_ROWS_OF_HEADS)
    else:
        # Queries, keys, values and results of a rank's heads, and the gradients of these.
        size = 2 * row * (queries * shape.heads + keys * shape.key_heads) // ranks
        groups = choose_groups(shape, heads, 1 if head_groups is None else head_groups)
    if ahead is None:
        ahead = len(groups) - 1
    pairs = (queries * keys / ranks / 1e6,) * ranks
    exchange = "copies" if copies else "messages"
    return Explanation("heads", "", groups, ahead, exchange, forward, backward, size, (((0, keys),),) * ranks, pairs)


def _check(shape, way, same_bits, exchange, rows):
    ranks = shape.shards.ranks
    if exchange is not None and exchange not in EXCHANGES:
        raise ValueError(f"exchange is {exchange!r}; expected one of {', '.join(map(repr, EXCHANGES))}, or None")
    if way is not None and way not in WAYS:
        raise ValueError(f"way is {way!r}; expected one of {', '.join(map(repr, WAYS))}, or None")
    if way == "heads" and shape.key_heads % ranks:
        raise ValueError(
            f"way is 'heads', and {shape.key_heads} heads of keys are no multiple of {ranks} ranks; take 'gather'"
        )
    if way in ("heads", "ring") and rows is not None:
        raise ValueError(f"way is {way!r}, and there are offsets; packed rows are gathered")
    if not same_bits:
        return
    if way in ("heads", "ring"):
        raise ValueError(
            f"way is {way!r}, and same_bits=True; the same bits for any number of ranks have gathered keys alone"
        )
    ends = {place * shape.shards.length // SAME_PIECES for place in range(SAME_PIECES + 1)}
    for piece in (piece for each in shape.shards.pieces for piece in each):
        if not ends.issuperset(piece):
            raise ValueError(
                f"same_bits=True, and the piece {piece} is not of whole {SAME_PIECES}ths of the sequence; "
                "balanced shards of 1, 2, 4 and 8 ranks are, and contiguous ones of 16, too"
            )


def _count_bytes_of_heads(shape):
    """What a rank receives in each pass where heads are exchanged: others' rows of its heads, and its rows of the
    results of others.
    """
    ranks, forward, backward = shape.shards.ranks, 0, 0
    dim, value_dim = shape.dim, shape.value_dim
    heads, key_heads = shape.heads // ranks, shape.key_heads // ranks
    for rank in range(ranks):
        counts = shape.shards.count(rank), shape.key_shards.count(rank)
        queries, keys = (shape.sizes[2] - counts[0]) * heads, (shape.sizes[3] - counts[1]) * key_heads
        own, own_keys = counts[0] * (shape.heads - heads), counts[1] * (shape.key_heads - key_heads)
        forward = max(forward, queries * dim + keys * (dim + value_dim) + own * value_dim)
        backward = max(backward, queries * value_dim + own * dim + own_keys * (dim + value_dim))
    return [most * shape.batch * shape.bytes for most in (forward, backward)]


def explain(
    shards,
    heads,
    key_heads=None,
    dim=128,
    value_dim=None,
    mask=None,
    score=None,
    batch=1,
    bytes=2,
    key_shards=None,
    way=None,
    head_groups=None,
    ahead=None,
    memory=None,
    same_bits=False,
    exchange="messages",
):
    """The `Explanation` of a call of `attention` with these sizes and as many ranks as the shards are of. The ranks
    need not exist.

    Args:
      shards, key_shards: `Shards` of the queries, and of the keys where they are others.
      heads, key_heads, dim, value_dim, batch: The sizes of the call, with as many key heads as heads and a value_dim
        of dim if left out.
      bytes: Of an element.
      mask, score, way, head_groups, ahead, memory, same_bits, exchange: As `attention`.
    """
    key_heads, value_dim = heads if key_heads is None else key_heads, dim if value_dim is None else value_dim
    shape = Shape(batch, heads, key_heads, dim, value_dim, bytes, shards, shards if key_shards is None else key_shards)
    given = way, head_groups, ahead, memory, same_bits, exchange
    return choose(Functions(mask, score), shape, *given, room=math.inf)[2]
