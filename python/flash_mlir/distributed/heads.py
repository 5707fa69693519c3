"""Attention for which ranks exchange heads: each has all rows of some heads, computes these, and sends the results
back.

Known as Ulysses. Masks see the whole sequence, and each rank computes as much as any other, whatever the mask is.
"""

import torch

from .copying import copy_rows, to_contiguous
from .exchange import Exchange


class Rows(torch.autograd.Function):
    """All rows of this rank's part of the heads, of each rank's rows of all heads; the gradient goes the other way."""

    @staticmethod
    def forward(ctx, group, rank, pieces, *arrays):
        ctx.of_call = group, rank, pieces
        return to_heads(group, rank, pieces, *arrays)

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, None, *to_rows(*ctx.of_call, *grads))


class Heads(torch.autograd.Function):
    """The inverse of `Rows`."""

    @staticmethod
    def forward(ctx, group, rank, pieces, *arrays):
        ctx.of_call = group, rank, pieces
        results = to_rows(group, rank, pieces, *arrays)
        return results if len(results) > 1 else results[0]

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, None, *to_heads(*ctx.of_call, *grads))


def _count(pieces):
    return sum(stop - start for start, stop in pieces)


def to_heads(group, rank, shards, *arrays):
    """Of arrays (batch, heads, this rank's rows, ...) of all heads, all rows of this rank's heads, in the order of
    positions.
    """
    exchange, results = Exchange(group), []
    for array, pieces in zip(arrays, shards):
        ranks, heads = len(pieces), array.shape[1] // len(pieces)
        for peer in range(ranks):
            if peer != rank:
                exchange.send(peer, to_contiguous(array[:, peer * heads : (peer + 1) * heads].movedim(2, 0)))
        mine = array[:, rank * heads : (rank + 1) * heads].movedim(2, 0)
        whole = mine.new_empty(sum(map(_count, pieces)), *mine.shape[1:])
        received = []
        for peer, each in enumerate(pieces):
            if peer == rank:
                received.append(mine)
            elif len(each) == 1:
                received.append(whole[each[0][0] : each[0][1]])
            else:
                received.append(mine.new_empty(_count(each), *mine.shape[1:]))
            exchange.receive(peer, received[-1])
        results.append((whole, pieces, received))
    exchange.start().wait()
    for whole, pieces, received in results:
        for peer, (each, rows) in enumerate(zip(pieces, received)):
            if peer != rank and len(each) == 1:
                continue
            place = 0
            for start, stop in each:
                copy_rows(whole[start:stop], rows[place : place + stop - start])
                place += stop - start
    return tuple([whole.movedim(0, 2) for whole, _, _ in results])


def to_rows(group, rank, shards, *arrays):
    """Of arrays (batch, this rank's heads, all rows, ...) this rank's rows of all heads."""
    exchange, results = Exchange(group), []
    for array, pieces in zip(arrays, shards):
        rows = to_contiguous(array.movedim(2, 0))
        received = []
        for peer, each in enumerate(pieces):
            parts = [rows[start:stop] for start, stop in each]
            part = parts[0] if len(parts) == 1 else torch.cat(parts) if parts else rows[:0]
            exchange.send(peer, part)
            received.append(part if peer == rank else rows.new_empty(_count(pieces[rank]), *rows.shape[1:]))
            exchange.receive(peer, received[-1])
        results.append(received)
    exchange.start().wait()
    return tuple(map(_join_heads, results))


def _join_heads(parts):
    """(batch, heads, rows, ...) of parts of the heads with rows outside."""
    count, heads, more = parts[0].shape[1], [rows.shape[2] for rows in parts], parts[0].shape[3:]
    joined = parts[0].new_empty(count, sum(heads), len(parts[0]), *more)
    first = 0
    for rows, each in zip(parts, heads):
        copy_rows(joined[:, first : first + each], rows.movedim(0, 2))
        first += each
    return joined
