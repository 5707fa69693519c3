"""Which positions of a sequence each rank holds."""

import operator

import numpy
import torch
import torch.distributed as dist

from .local import Functions
from .visible import count_pairs_of_blocks

#: Into how many blocks a sequence is cut at most, between which ranks with the same work may begin.
_BLOCKS = 1024


def cut(length, count):
    """The ends of `count` pieces of a sequence that differ by one in length at most: count + 1 numbers.

    The ends of any number of pieces that divides count are among them.
    """
    return [place * length // count for place in range(count + 1)]


class Shards:
    """The positions of each rank: pieces (start, stop) of the sequence, which follow each other in the rank's tensors.

    `Shards(length, ranks)` is balanced for causal masks: of 2 * ranks pieces, rank r has the pieces with the numbers r and
    2 * ranks - 1 - r. `Shards(length, ranks, "contiguous")` has one piece for each rank. A list instead of the layout
    has
    the pieces of each rank: every position belongs to one rank.

    Raises:
      TypeError, ValueError: The layout is none of these, or does not cover the sequence once.
    """

    def __init__(self, length, ranks, layout="balanced"):
        self.length, self.ranks = operator.index(length), operator.index(ranks)
        if self.length < 0:
            raise ValueError(f"length is {self.length}; it must not be negative")
        if self.ranks < 1:
            raise ValueError(f"ranks is {self.ranks}; there must be at least one")
        if layout == "balanced":
            ends = cut(self.length, 2 * self.ranks)
            numbers = [(rank, 2 * self.ranks - 1 - rank) for rank in range(self.ranks)]
            # Pieces that touch are one.
            pieces = [_join([(ends[number], ends[number + 1]) for number in each]) for each in numbers]
        elif layout == "contiguous":
            ends = cut(self.length, self.ranks)
            pieces = [[piece] for piece in zip(ends, ends[1:])]
        elif isinstance(layout, str):
            raise ValueError(
                f"layout is {layout!r}; expected 'balanced', 'contiguous' or a list of the pieces of each rank"
            )
        else:
            pieces = _read(layout, self.ranks)
        self.pieces = tuple([tuple([(start, stop) for start, stop in each if stop > start]) for each in pieces])
        self._check()

    @classmethod
    def even(cls, length, ranks, mask, heads=1):
        """One piece for each rank, with as many pairs of a query and a key as each other one has under a mask.

        Pieces are as long as each other where no mask is given, and differ where queries see different numbers of keys,
        as the first ones do under a window. Numbers of pairs are equal to some hundredths. What a mask reads from
        arrays is not known, and counts as kept. `heads` is how many heads queries have, for masks that differ by head.
        """
        shards = cls(length, ranks, "contiguous")
        condition = Functions(mask, None).condition
        if condition is None or shards.length == 0:
            return shards
        whole = 0, shards.length
        ends, pairs = count_pairs_of_blocks(condition, whole, (1, heads, *[shards.length] * 2), _BLOCKS)
        before = numpy.append(0, numpy.cumsum(pairs))
        if before[-1] == 0:
            return shards
        wanted = before[-1] * numpy.arange(1, shards.ranks) / shards.ranks
        starts = [0, *numpy.interp(wanted, before, ends).round().astype(int).tolist(), shards.length]
        return cls(length, ranks, [[piece] for piece in zip(starts, starts[1:])])

    def _check(self):
        end = 0
        for start, stop, rank in sorted((*piece, rank) for rank, each in enumerate(self.pieces) for piece in each):
            if start != end:
                fault = "to no rank" if start > end else "to two ranks"
                raise ValueError(f"position {min(start, end)} belongs {fault}; each position must belong to one")
            end = stop
        if end != self.length:
            raise ValueError(f"the pieces end at {end}; expected {self.length}, the length")

    def count(self, rank):
        """How many positions a rank has."""
        return sum(stop - start for start, stop in self.pieces[rank])

    def positions(self, rank, device=None):
        """The positions of a rank in the order of its tensors, int64: what a rotary embedding takes."""
        parts = [torch.arange(start, stop, device=device) for start, stop in self.pieces[rank]]
        return torch.cat(parts) if parts else torch.arange(0, device=device)

    def __eq__(self, other):
        return isinstance(other, Shards) and (self.length, self.pieces) == (other.length, other.pieces)

    def __hash__(self):
        return hash((self.length, self.pieces))

    def __repr__(self):
        return f"Shards({self.length}, {self.ranks}, {[list(each) for each in self.pieces]})"


def _join(pieces):
    joined = []
    for start, stop in pieces:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


def _read(layout, ranks):
    try:
        pieces = [[(operator.index(start), operator.index(stop)) for start, stop in each] for each in layout]
    except (TypeError, ValueError):
        raise TypeError(f"layout is {layout!r}; expected for each rank a list of pieces (start, stop)") from None
    if len(pieces) != ranks:
        raise ValueError(f"layout has the pieces of {len(pieces)} ranks; expected {ranks}")
    for piece in (piece for each in pieces for piece in each):
        if not 0 <= piece[0] <= piece[1]:
            raise ValueError(f"layout has the piece {piece}; expected 0 <= start <= stop")
    return pieces


def get_group(group):
    """(group, rank in it, ranks), or an error where there is none."""
    if not dist.is_initialized():
        raise RuntimeError("there is no process group; call torch.distributed.init_process_group before")
    group = dist.group.WORLD if group is None else group
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process does not belong to the group")
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            f"group is a {type(group).__name__}; expected a group of torch.distributed, such as that of new_group "
            f"or DeviceMesh.get_group"
        )
    return group, dist.get_rank(group), dist.get_world_size(group)


def check_shards(name, shards, count, rank, ranks):
    """The shards of a tensor that has so many rows here; what is left out is balanced, with as many on each rank."""
    if shards is None:
        shards = Shards(count * ranks, ranks)
    elif not isinstance(shards, Shards):
        raise TypeError(f"{name} is a {type(shards).__name__}; expected flash_mlir.distributed.Shards")
    if shards.ranks != ranks:
        raise ValueError(f"{name} is for {shards.ranks} ranks, and the group has {ranks}")
    if shards.count(rank) != count:
        raise ValueError(f"a tensor has {count} rows on rank {rank}, where {name} has {shards.count(rank)} positions")
    return shards


def shard(x, group=None, dim=-2, shards=None):
    """This rank's part of a tensor that is whole on each rank, along a dimension: a copy, whose gradient goes back
    into x.
    """
    _, rank, ranks = get_group(group)
    if shards is None:
        shards = Shards(x.shape[dim], ranks)
    elif not isinstance(shards, Shards):
        raise TypeError(f"shards is a {type(shards).__name__}; expected flash_mlir.distributed.Shards")
    elif shards.length != x.shape[dim]:
        raise ValueError(f"x has size {x.shape[dim]} in dimension {dim}, and shards are of {shards.length} positions")
    if shards.ranks != ranks:
        raise ValueError(f"shards is for {shards.ranks} ranks, and the group has {ranks}")
    parts = [x.narrow(dim, start, stop - start) for start, stop in shards.pieces[rank]]
    return torch.cat(parts, dim) if parts else x.narrow(dim, 0, 0).clone()


def unshard(x, group=None, dim=-2, shards=None):
    """The whole tensor on each rank, of the parts that `shard` makes; the inverse of it.

    Raises:
      NotImplementedError: Gradients are needed. This has none: each rank knows the loss of its own rows.
    """
    group, rank, ranks = get_group(group)
    shards = check_shards("shards", shards, x.shape[dim], rank, ranks)
    if x.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError(
            "unshard has no gradients; compute the loss of each rank's own rows, or call it under torch.no_grad()"
        )
    from .exchange import Exchange

    rows = x.movedim(dim, 0).contiguous()
    whole = rows.new_empty(shards.length, *rows.shape[1:])
    exchange, place = Exchange(group), 0
    for start, stop in shards.pieces[rank]:
        mine = rows[place : place + stop - start]
        whole[start:stop] = mine
        for peer in range(ranks):
            exchange.send(peer, mine)
        place += stop - start
    for peer in range(ranks):
        for start, stop in shards.pieces[peer]:
            exchange.receive(peer, whole[start:stop])
    exchange.start().wait()
    return whole.movedim(0, dim)
