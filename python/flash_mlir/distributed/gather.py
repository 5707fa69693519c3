"""Attention of a rank's queries to keys that other ranks send, and its gradients.

Heads of keys are sent in groups: while one is computed, the next ones are under way. In the backward pass keys are sent
again, so that no rank keeps more of them than some groups, and gradients of keys go back to their rank while the next
group is computed.
"""

import collections
import itertools

import torch

from .. import checking
from .exchange import Exchange
from .local import Part
from .transfers import count_rows, find_place


class Call:
    """What is known of a call but its tensors.

    Args:
      group, rank: Who takes part.
      functions: `local.Functions`.
      transfers: `transfers.Transfers`.
      sizes: (batch, heads, query length, key length) of the whole sequence.
      key_heads: How many heads keys have.
      head_groups: How many of them are sent at a time.
      ahead: How many groups are under way beside the one that is computed.
      scale, schedules: As `attention` has them.
      packed: `packed.Rows` of packed rows, or None.

    `first_head` is the first one of queries that tensors have, where it is not all of them, and `per_key_head` how many
    heads of queries share a head of keys.
    """

    def __init__(
        self, group, rank, functions, transfers, sizes, key_heads, head_groups, ahead, scale, schedules, packed
    ):
        self.ahead = ahead
        self.group, self.rank, self.functions, self.transfers = group, rank, functions, transfers
        self.sizes, self.scale, self.schedules, self.packed = sizes, scale, schedules, packed
        self.first_head, self.per_key_head = 0, sizes[1] // key_heads
        ends = [0, *itertools.accumulate(head_groups)]
        groups = list(zip(ends, ends[1:]))
        #: (first key head, the one behind the last, step) of what is sent and computed one after the other.
        self.units = [(*each, step) for each in groups for step in range(transfers.steps)]

    def make_part(self, piece, keys, heads):
        first, last = (head * self.per_key_head for head in heads)
        kind = None if self.packed is None else self.packed.kind
        return Part((piece.start, piece.stop), keys, self.sizes, self.first_head + first, last - first, kind)


class _Keys:
    """The keys and values of a unit, which lie behind each other in the order of their positions."""

    def __init__(self, call, unit, key, value):
        self._call = call
        first, last, step = unit
        transfers, rank = call.transfers, call.rank
        self._ranges = transfers.needs(rank, step)
        rows = count_rows(self._ranges)
        self._exchange, self._buffers, own = Exchange(call.group), [], []
        if transfers.ranks == 1 and self._ranges == transfers.key_shards.pieces[0]:
            self._buffers = [array[:, first:last].permute(2, 0, 1, 3) for array in (key, value)]
            return
        for array in (key, value):
            # Rows are outside, so that ranges of positions are contiguous.
            mine = array[:, first:last].permute(2, 0, 1, 3).contiguous()
            buffer = mine.new_empty(rows, *mine.shape[1:])
            for peer in range(transfers.ranks):
                if peer == rank:
                    continue
                if rank in transfers.get_owners(peer, step):
                    for start, _, count in transfers.list_overlaps(rank, transfers.needs(peer, step)):
                        self._exchange.send(peer, mine[start : start + count])
                if peer in transfers.get_owners(rank, step):
                    for _, place, count in transfers.list_overlaps(peer, self._ranges):
                        self._exchange.receive(peer, buffer[place : place + count])
            if rank in transfers.get_owners(rank, step):
                own.append((buffer, mine))
            self._buffers.append(buffer)
        self._exchange.start()
        # While others are under way.
        for buffer, mine in own:
            for start, place, count in transfers.list_overlaps(rank, self._ranges):
                buffer[place : place + count] = mine[start : start + count]

    def wait(self):
        self._exchange.wait()
        return self

    def get(self, keys):
        """The keys and values of a range, (batch, heads, length, D)."""
        start = find_place(self._ranges, keys[0]) if keys[0] < keys[1] else 0
        return [buffer[start : start + keys[1] - keys[0]].permute(1, 2, 0, 3) for buffer in self._buffers]


class _Merge:
    """The result of attention to parts of the keys, in the order in which they are added."""

    def __init__(self):
        self._output = self._lse = None

    def add(self, output, lse):
        if self._lse is None:
            self._output, self._lse = output, lse
            return
        total = torch.logaddexp(self._lse, lse)
        top = torch.where(total == -torch.inf, 0.0, total)
        mine, other = ((each - top).exp().unsqueeze(-1) for each in (self._lse, lse))
        self._output = self._output.to(lse.dtype) * mine + output.to(lse.dtype) * other
        self._lse = total

    def get(self, dtype):
        """(output, log-sum-exp), or None where nothing was added."""
        return None if self._lse is None else (self._output.to(dtype), self._lse)


class _Runner:
    """Calls kernels for parts of a call."""

    def __init__(self, call, lengths, sink, arrays):
        self._call, self._lengths, self._sink, self._arrays = call, lengths, sink, arrays

    def _prepare(self, piece, keys, heads, is_first, device):
        call = self._call
        part = call.make_part(piece, keys, heads)
        # A sink takes part once.
        sink = None
        if is_first and self._sink is not None:
            sink = self._sink[heads[0] * call.per_key_head : heads[1] * call.per_key_head]
        lengths = None
        if self._lengths is not None:
            lengths = (self._lengths - keys[0]).clamp(0, keys[1] - keys[0])
        packed = offsets = numbers = None
        if call.packed is not None:
            packed, offsets, numbers = call.packed.cut((piece.start, piece.stop), keys)
        program = call.functions.get_program(
            part, call.scale, lengths is not None, sink is not None, call.schedules, packed
        )
        captured = call.functions.get_captured(program, part, self._arrays, device, numbers) + (offsets or ())
        return program, lengths, sink, captured

    def _to_rows(self, *arrays):
        """As kernels of packed rows take them."""
        return [array if array is None or self._call.packed is None else array[0].transpose(0, 1) for array in arrays]

    def _from_rows(self, *arrays):
        return [array if self._call.packed is None else array.transpose(0, 1)[None] for array in arrays]

    def run(self, piece, keys, heads, is_first, query, key, value):
        program, lengths, sink, captured = self._prepare(piece, keys, heads, is_first, query.device)
        operands = self._to_rows(query, key, value)
        if checking.is_on:
            checking.check_call(program.config, *operands, lengths, sink, captured)
        output, lse = program.function.run(*operands, lengths, sink, captured)
        return self._from_rows(output)[0], lse if self._call.packed is None else lse[None]

    def differentiate(self, piece, keys, heads, is_first, query, key, value, output, lse, output_grad, lse_grad, wrt):
        """The gradients of query, key and value, of the sink or None, and {number: gradient} of the arrays in wrt."""
        program, lengths, sink, captured = self._prepare(piece, keys, heads, is_first, query.device)
        asked = [number for number, source in enumerate(program.sources) if source in wrt]
        operands = self._to_rows(query, key, value, output)
        # Kernels take a log-sum-exp without gaps.
        lses = [
            each if each is None else (each if self._call.packed is None else each[0]).contiguous()
            for each in (lse, lse_grad)
        ]
        grads = program.function.differentiate(
            *operands, lses[0], *self._to_rows(output_grad), lses[1], lengths, sink, captured, asked
        )
        found = list(grads[3:])
        sink_grad = found.pop(0) if sink is not None else None
        of_arrays = {}
        for number, grad in zip(asked, found):
            source = program.sources[number]
            of_arrays[source] = of_arrays[source] + grad if source in of_arrays else grad
        return (*self._from_rows(*grads[:3]), sink_grad, of_arrays)


def _list_units(call, start):
    """Yields (unit, what `start` makes of it), when as many as may be under way have been started behind it.

    An exchange begins after what is on the stream when it is started: what is started before the first kernel waits for
    none.
    """
    started = collections.deque()
    waiting = iter(call.units)
    for unit in call.units:
        while len(started) <= call.ahead and (following := next(waiting, None)) is not None:
            started.append(start(following))
        yield unit, started.popleft()


def compute(call, query, key, value, lengths, sink, arrays):
    """(output, log-sum-exp) of this rank's queries."""
    runner = _Runner(call, lengths, sink, arrays)
    output = (
        torch.empty_like(query)
        if value.shape[-1] == query.shape[-1]
        else query.new_empty(*query.shape[:-1], value.shape[-1])
    )
    lse = query.new_empty(query.shape[:-1], dtype=torch.promote_types(query.dtype, torch.float32))
    merges = {}
    for (first, last, step), keys in _list_units(call, lambda unit: _Keys(call, unit, key, value)):
        keys.wait()
        heads = slice(first * call.per_key_head, last * call.per_key_head)
        for piece in call.transfers.at(call.rank, step):
            rows = slice(piece.offset, piece.offset + piece.stop - piece.start)
            merge = merges.setdefault(piece.start, _Merge())
            ranges = piece.ranges
            if step == 0 and not ranges and sink is not None:
                # What is there without a key.
                ranges = ((0, 0),)
            for number, each in enumerate(ranges):
                operands = query[:, heads, rows], *keys.get(each)
                merge.add(*runner.run(piece, each, (first, last), _is_first(call, step, piece, number), *operands))
            if step + 1 < call.transfers.steps:
                continue
            found = merges.pop(piece.start).get(query.dtype)
            output[:, heads, rows] = 0 if found is None else found[0]
            lse[:, heads, rows] = -torch.inf if found is None else found[1]
    return output, lse


def _is_first(call, step, piece, number):
    """Whether a range of keys is the first one that a piece is computed with; the sink takes part there."""
    return number == 0 and not any(
        each.start == piece.start and each.ranges
        for before in range(step)
        for each in call.transfers.at(call.rank, before)
    )


class _Gradients:
    """Gradients of the keys of a unit: this rank's contributions are sent to the ranks that have the keys."""

    def __init__(self, call, unit, parts, shapes, like):
        first, last, step = unit
        self._call, self._step = call, step
        transfers, rank = call.transfers, call.rank
        self._exchange, self._received = Exchange(call.group), []
        mine = {}
        for contribution in transfers.list_contributions(rank, step):
            mine[contribution.pieces[0].start] = [
                _sum_rows(contribution, [part[place] for part in parts], [part[0] for part in parts], like)
                for place in (1, 2)
            ]
            for rows in mine[contribution.pieces[0].start]:
                for owner in transfers.get_owners(rank, step):
                    for _, place, count in transfers.list_overlaps(owner, contribution.ranges):
                        self._exchange.send(owner, rows[place : place + count])
        for sender, contribution in transfers.list_received_gradients(rank, step):
            for number, shape in enumerate(shapes):
                for start, place, count in transfers.list_overlaps(rank, contribution.ranges):
                    if sender == rank:
                        rows = mine[contribution.pieces[0].start][number][place : place + count]
                    else:
                        rows = like.new_empty(count, like.shape[0], last - first, shape[-1])
                        self._exchange.receive(sender, rows)
                    self._received.append((number, start, rows))
        self._exchange.start()

    def add_to(self, sums):
        """Adds what belongs to this rank's keys to (rows, batch, heads, D) of keys and of values."""
        self._exchange.wait()
        for number, start, rows in self._received:
            sums[number][start : start + len(rows)] += rows


def _sum_rows(contribution, grads, keys_of_parts, like):
    """The sum of gradients (range, rows) of a contribution, rows outside."""
    ends = {(piece.start, each) for piece in contribution.pieces for each in piece.ranges}
    parts = [(keys, grad) for keys, grad in zip(keys_of_parts, grads) if keys in ends]
    parts = [(keys[1], grad.permute(2, 0, 1, 3)) for keys, grad in parts]
    whole = [grad for keys, grad in parts if (keys,) == contribution.ranges]
    if len(parts) == 1 and whole:
        return whole[0].contiguous()
    if len(parts) == 2 and whole:
        total = whole[0].contiguous()
        keys, other = next(each for each in parts if each[1] is not whole[0])
        start = find_place(contribution.ranges, keys[0])
        total[start : start + len(other)] += other
        return total
    wide = torch.promote_types(like.dtype, torch.float32)
    first = parts[0][1]
    total = first.new_zeros(count_rows(contribution.ranges), *first.shape[1:], dtype=wide)
    for keys, grad in parts:
        start = find_place(contribution.ranges, keys[0])
        total[start : start + len(grad)] += grad
    return total.to(like.dtype)


def differentiate(call, query, key, value, output, lse, output_grad, lse_grad, lengths, sink, arrays, wrt):
    """The gradients of query, key and value, of sink or None, and {number: gradient} of the arrays in wrt.

    Of what each rank has the whole, sink and arrays, they are this rank's part: of its own queries.
    """
    runner = _Runner(call, lengths, sink, arrays)
    query_grad, key_grad, value_grad = (torch.empty_like(array) for array in (query, key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    sink_grad = None if sink is None else torch.zeros_like(sink)
    of_arrays = {
        number: torch.zeros_like(arrays[number], dtype=torch.promote_types(arrays[number].dtype, torch.float32))
        for number in wrt
    }
    sums, query_sums, under_way = {}, {}, []

    def finish(number):
        (first, last, step), gradients = under_way[number]
        gradients.add_to(sums[first])
        under_way[number] = None
        if step + 1 == call.transfers.steps:
            for array, total in zip((key_grad, value_grad), sums.pop(first)):
                array[:, first:last] = total.permute(1, 2, 0, 3)

    for unit, keys in _list_units(call, lambda unit: _Keys(call, unit, key, value)):
        first, last, step = unit
        keys.wait()
        heads = slice(first * call.per_key_head, last * call.per_key_head)
        if step == 0:
            sums[first] = [
                query.new_zeros(array.shape[2], query.shape[0], last - first, array.shape[-1], dtype=wide)
                for array in (key, value)
            ]
        parts = []
        for piece in call.transfers.at(call.rank, step):
            rows = slice(piece.offset, piece.offset + piece.stop - piece.start)
            of_rows = [
                None if array is None else array[:, heads, rows]
                for array in (query, output, lse, output_grad, lse_grad)
            ]
            ranges = piece.ranges
            if step == 0 and not ranges and sink is not None:
                ranges = ((0, 0),)
            for number, each in enumerate(ranges):
                is_first = _is_first(call, step, piece, number)
                grads = runner.differentiate(
                    piece, each, (first, last), is_first, of_rows[0], *keys.get(each), *of_rows[1:], wrt
                )
                query_sums[piece.start] = _add(query_sums.get(piece.start), grads[0], wide)
                if each[0] < each[1]:
                    parts.append(((piece.start, each), *grads[1:3]))
                if grads[3] is not None:
                    sink_grad[heads] += grads[3]
                for source, grad in grads[4].items():
                    of_arrays[source] += grad
            if step + 1 == call.transfers.steps:
                total = query_sums.pop(piece.start, None)
                query_grad[:, heads, rows] = 0 if total is None else total
        del keys
        under_way.append((unit, _Gradients(call, unit, parts, (key.shape, value.shape), query)))
        if len(under_way) > 1:
            finish(len(under_way) - 2)
    if under_way:
        finish(len(under_way) - 1)
    of_arrays = {number: grad.to(arrays[number].dtype) for number, grad in of_arrays.items()}
    return query_grad, key_grad, value_grad, sink_grad, of_arrays


def _add(total, grad, wide):
    return grad if total is None else total.to(wide) + grad


class Gather(torch.autograd.Function):
    """`compute` with gradients."""

    @staticmethod
    def forward(ctx, call, query, key, value, lengths, sink, *arrays):
        output, lse = compute(call, query, key, value, lengths, sink, arrays)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, output, lse, lengths, sink, *arrays)
        ctx.of_call = call, [number for number, needed in enumerate(ctx.needs_input_grad[6:]) if needed]
        return output, lse

    @staticmethod
    def backward(ctx, output_grad, lse_grad):
        if torch.is_grad_enabled():
            raise NotImplementedError("attention has no second derivative; leave out create_graph=True")
        query, key, value, output, lse, lengths, sink, *arrays = ctx.saved_tensors
        call, wrt = ctx.of_call
        if output_grad is None:
            output_grad = torch.zeros_like(output)
        grads = differentiate(call, query, key, value, output, lse, output_grad, lse_grad, lengths, sink, arrays, wrt)
        return (None, *grads[:3], None, grads[3], *[grads[4].get(number) for number in range(len(arrays))])
