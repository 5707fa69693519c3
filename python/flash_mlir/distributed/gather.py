"""Attention of a rank's queries to keys that other ranks send, and its gradients.

Heads of keys are sent in groups: while one is computed, the next ones are under way. In the backward pass keys are sent
again, so that no rank keeps more of them than some groups, and gradients of keys go back to their rank while the next
group is computed.
"""

import collections
import contextlib
import itertools

import torch

from .. import checking
from .copying import copy_rows, to_contiguous
from .exchange import Exchange
from .local import Part
from .shared import share
from .transfers import count_rows, find_common, find_place


class Call:
    """What is known of a call but its tensors.

    Args:
      group, rank: Who takes part.
      functions: `local.Functions`.
      transfers: `transfers.Transfers`.
      sizes: (batch, heads, query length, key length) of the whole sequence.
      key_heads: How many heads keys have.
      head_groups: How many of them are sent at a time; of one rank's, where heads are exchanged.
      ahead: How many groups are under way beside the one that is computed.
      layout: `shared.Layout`, or `heads.Layout`, where ranks copy, None where they send messages.
      scale, schedules: As `attention` has them.
      packed: `packed.Rows` of packed rows, or None.

    `first_head` is the first one of queries that tensors have, where it is not all of them, and `per_key_head` how many
    heads of queries share a head of keys.
    """

    def __init__(
        self, group, rank, functions, transfers, sizes, key_heads, head_groups, ahead, layout, scale, schedules, packed
    ):
        self.ahead, self.layout = ahead, layout
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
    """The keys and values of a unit, which lie behind each other in the order of their positions, rows outside."""

    def __init__(self, ranges, buffers, wait):
        self._ranges, self._buffers, self.wait = ranges, buffers, wait

    def get(self, keys):
        """The keys and values of a range, (batch, heads, length, D)."""
        start = find_place(self._ranges, keys[0]) if keys[0] < keys[1] else 0
        return [buffer[start : start + keys[1] - keys[0]].permute(1, 2, 0, 3) for buffer in self._buffers]


class _Carrier:
    """What brings keys to ranks and their gradients back, unit by unit.

    `start` gives the `_Keys` of a unit. `start_gradients` takes of each contribution of this rank its blocks of
    keys and of values, and gives a function that returns (key (0) or value (1), first row, rows) of all gradients of
    this rank's keys in the order in which they are added; ranks `meet` before it is called, unless it `adds_early`. At
    the end they `leave`. Kernels of a unit are queued in `enter`, where units do not depend on each other.
    """

    def __init__(self, call, key, value):
        self._call, self._arrays = call, (key, value)
        self._transfers, self._rank = call.transfers, call.rank
        self._pieces = call.transfers.key_shards.pieces[call.rank]
        # The next ranks come first, so that not all read from the same one.
        self._peers = [(call.rank + each) % call.transfers.ranks for each in range(1, call.transfers.ranks)]

    def _get_mine(self, unit):
        """This rank's keys and values of a unit, rows outside."""
        first, last, _ = self._call.units[unit]
        return [array[:, first:last].permute(2, 0, 1, 3) for array in self._arrays]

    def _put_mine(self, ranges, buffers, mine):
        """Copies this rank's rows into buffers of ranges of keys."""
        for start, stop in find_common(self._pieces, ranges):
            for buffer, rows in zip(buffers, mine):
                copy_rows(_cut(ranges, buffer, start, stop), _cut(self._pieces, rows, start, stop))

    def enter(self, unit):
        return contextlib.nullcontext()

    def _is_local(self, step):
        return self._transfers.is_local(self._rank, step)


class _Messages(_Carrier):
    """Messages of the group, which leave a unit's buffers when it has been computed."""

    def start(self, unit):
        step, transfers, rank = self._call.units[unit][2], self._transfers, self._rank
        mine, held, exchange = self._get_mine(unit), transfers.holds(rank, step), Exchange(self._call.group)
        buffers = mine
        if not self._is_local(step):
            buffers = [rows.new_empty(count_rows(held), *rows.shape[1:]) for rows in mine]
            if rank in transfers.get_owners(rank, step):
                self._put_mine(held, buffers, mine)
        sent = (self._pieces, mine) if transfers.is_ring or self._is_local(step) else (held, buffers)
        for number in range(2):
            for peer in self._peers:
                for each in transfers.list_sent(rank, peer, step):
                    exchange.send(peer, to_contiguous(_cut(sent[0], sent[1][number], *each)))
                for each in transfers.list_sent(peer, rank, step):
                    exchange.receive(peer, _cut(held, buffers[number], *each))
        exchange.start()
        return _Keys(held, buffers, exchange.wait)

    def start_gradients(self, unit, blocks):
        first, last, step = self._call.units[unit]
        transfers, rank, exchange, found = self._transfers, self._rank, Exchange(self._call.group), []
        for contribution in transfers.list_contributions(rank, step):
            for number in range(2):
                for owner in transfers.get_owners(rank, step):
                    for _, place, count in transfers.list_overlaps(owner, contribution.ranges):
                        exchange.send(owner, _cut_block(blocks[contribution][number], place, count))
        for sender, contribution in transfers.list_received_gradients(rank, step):
            for number, array in enumerate(self._arrays):
                for start, place, count in transfers.list_overlaps(rank, contribution.ranges):
                    if sender == rank:
                        rows = _cut_block(blocks[contribution][number], place, count)
                    else:
                        rows = array.new_empty(count, array.shape[0], last - first, array.shape[-1])
                        exchange.receive(sender, rows)
                    found.append((number, start, rows))
        exchange.start()

        def finish():
            exchange.wait()
            return found

        return finish

    #: Whether gradients of a unit may be added while the next ones are computed, or all after ranks meet.
    adds_early = True

    def meet(self):
        """Messages are waited for one by one."""

    def leave(self):
        """Each message has memory of its own."""


class _Copies(_Carrier):
    """Copies in memory that the ranks share; all units have buffers of their own."""

    adds_early = False

    def __init__(self, call, key, value, has_gradients):
        super().__init__(call, key, value)
        self._layout, self._dtype, self._waits = call.layout, key.dtype, []
        size = self._layout.size if has_gradients else self._layout.size_of_keys
        self._shared = share(call.group, key.device, size)
        # Nobody reads or writes what is there of the call before.
        self._shared.meet()
        ranges = call.transfers.exports(call.rank)
        for unit in range(len(call.units)):
            self._put_mine(ranges, self._get_buffers(call.rank, unit), self._get_mine(unit))
        self._shared.meet()

    def _list_gradients(self, rank, unit):
        return self._layout.list_gradients(self._shared, self._dtype, rank, unit)

    def _get_buffers(self, rank, unit):
        return [self._layout.get_keys(self._shared, self._dtype, rank, unit, number) for number in range(2)]

    def start(self, unit):
        transfers, rank = self._transfers, self._rank
        held, pairs = transfers.holds(rank, 0), []
        buffers = self._get_mine(unit) if self._is_local(0) else self._get_buffers(rank, unit)
        for peer in self._peers:
            sent, ranges = transfers.list_sent(peer, rank, 0), transfers.exports(peer)
            # Tensors take time of the host, which windows of few rows are short of.
            others = self._get_buffers(peer, unit) if sent else ()
            for each in sent:
                pairs += [(_cut(held, to, *each), _cut(ranges, other, *each)) for to, other in zip(buffers, others)]
        return _Keys(held, buffers, self._shared.copy(pairs))

    def enter(self, unit):
        # A kernel begins beside the last blocks of the one before it, which do not fill the GPU.
        return self._shared.beside() if unit % 2 else contextlib.nullcontext()

    def start_gradients(self, unit, blocks):
        pairs = []
        for owner in self._peers:
            for contribution, number, _, place, count, to in self._list_gradients(owner, unit):
                if contribution in blocks:
                    pairs.append((to, _cut_block(blocks[contribution][number], place, count)))
        self._waits.append(self._shared.copy(pairs))

        def finish():
            return [
                (number, start, _cut_block(blocks[contribution][number], place, count) if rows is None else rows)
                for contribution, number, start, place, count, rows in self._list_gradients(self._rank, unit)
            ]

        return finish

    def meet(self):
        # What this rank has written is there when the others read it.
        for wait in self._waits:
            wait()
        self._shared.meet()

    def leave(self):
        self._shared.leave()


def _cut(ranges, rows, start, stop):
    """The rows of the positions from start to stop, of rows of ranges."""
    place = find_place(ranges, start)
    return rows[place : place + stop - start]


def _cut_block(blocks, place, count):
    """So many rows from a position on, of blocks that lie behind each other, all of them in one block."""
    for rows in blocks:
        if place < len(rows):
            return rows[place : place + count]
        place -= len(rows)
    raise AssertionError(place)


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


class Runner:
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

    def run(self, piece, keys, heads, is_first, query, key, value, out=None):
        """(output, log-sum-exp); the output is `out` where that is given."""
        program, lengths, sink, captured = self._prepare(piece, keys, heads, is_first, query.device)
        operands = self._to_rows(query, key, value)
        if checking.is_on:
            checking.check_call(program.config, *operands, lengths, sink, captured)
        if out is None:
            output, lse = program.function.run(*operands, lengths, sink, captured)
            out = self._from_rows(output)[0]
        else:
            lse = program.function.call_into(*operands, lengths, sink, captured, self._to_rows(out)[0])[1]
        return out, lse if self._call.packed is None else lse[None]

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


def list_units(call, carrier):
    """Yields (number of a unit, what a carrier starts for it), when as many as may be under way have been started
    behind it.

    An exchange begins after what is on the stream when it is started: what is started before the first kernel waits for
    none.
    """
    started = collections.deque()
    waiting = iter(range(len(call.units)))
    for unit in range(len(call.units)):
        while len(started) <= call.ahead and (following := next(waiting, None)) is not None:
            started.append(carrier.start(following))
        yield unit, started.popleft()


def compute(call, query, key, value, lengths, sink, arrays):
    """(output, log-sum-exp) of this rank's queries."""
    runner = Runner(call, lengths, sink, arrays)
    output = (
        torch.empty_like(query)
        if value.shape[-1] == query.shape[-1]
        else query.new_empty(*query.shape[:-1], value.shape[-1])
    )
    lse = query.new_empty(query.shape[:-1], dtype=torch.promote_types(query.dtype, torch.float32))
    merges = {}
    carrier = _make_carrier(call, key, value, False)
    for unit, keys in list_units(call, carrier):
        with carrier.enter(unit):
            first, last, step = call.units[unit]
            keys.wait()
            heads = slice(first * call.per_key_head, last * call.per_key_head)
            for piece in call.transfers.at(call.rank, step):
                rows = slice(piece.offset, piece.offset + piece.stop - piece.start)
                merge = merges.setdefault(piece.start, _Merge())
                ranges = piece.ranges
                if step == 0 and not ranges and sink is not None:
                    # What is there without a key.
                    ranges = ((0, 0),)
                # What nothing is added to is written where it belongs.
                out = output[:, heads, rows] if len(ranges) == call.transfers.steps == 1 else None
                for number, each in enumerate(ranges):
                    operands = query[:, heads, rows], *keys.get(each), out
                    merge.add(*runner.run(piece, each, (first, last), _is_first(call, step, piece, number), *operands))
                if step + 1 < call.transfers.steps:
                    continue
                found = merges.pop(piece.start).get(query.dtype)
                if found is None:
                    output[:, heads, rows], lse[:, heads, rows] = 0, -torch.inf
                else:
                    if out is None:
                        copy_rows(output[:, heads, rows], found[0])
                    lse[:, heads, rows] = found[1]
    carrier.leave()
    return output, lse


def _make_carrier(call, key, value, has_gradients):
    return _Messages(call, key, value) if call.layout is None else _Copies(call, key, value, has_gradients)


def _is_first(call, step, piece, number):
    """Whether a range of keys is the first one that a piece is computed with; the sink takes part there."""
    return number == 0 and not any(
        each.start == piece.start and each.ranges
        for before in range(step)
        for each in call.transfers.at(call.rank, before)
    )


def _select_parts(contribution, parts):
    """The parts (range, of keys, of values) of a contribution, of parts with the starts of their pieces."""
    starts = {piece.start for piece in contribution.pieces}
    return [part for start, *part in parts if start in starts]


def _make_blocks(contribution, parts, number, like):
    """The gradients of each range of a contribution, (rows, batch, heads, D), of parts (range, of keys, of values)."""
    blocks = []
    for block in contribution.ranges:
        inside = [
            (part[0], part[1 + number].permute(2, 0, 1, 3))
            for part in parts
            if block[0] <= part[0][0] and part[0][1] <= block[1]
        ]
        whole = next((rows for keys, rows in inside if keys == block), None)
        if whole is not None and len(inside) <= 2:
            total = to_contiguous(whole)
            others = [each for each in inside if each[1] is not whole]
        else:
            total = whole = inside[0][1].new_zeros(
                block[1] - block[0], *inside[0][1].shape[1:], dtype=torch.promote_types(like.dtype, torch.float32)
            )
            others = inside
        for (start, stop), rows in others:
            total[start - block[0] : stop - block[0]] += rows
        blocks.append(total.to(like.dtype))
    return blocks


class _Sum:
    """The gradients of this rank's keys (or values) of a unit's heads, which steps add to."""

    def __init__(self, result, steps, wide):
        self._result, self._left = result, steps
        self._total = None if steps == 1 else result.new_zeros(result.shape, dtype=wide)
        self._wide = wide

    def add(self, sources):
        """Adds (first row, rows)s of a step, in this order."""
        self._left -= 1
        if self._total is not None:
            for start, rows in sources:
                self._total[start : start + len(rows)] += rows
            if not self._left:
                self._result.copy_(self._total)
            return
        ends = {0, len(self._result)}.union(*[(start, start + len(rows)) for start, rows in sources])
        ends = sorted(ends)
        for start, stop in zip(ends, ends[1:]):
            inside = [rows[start - at : stop - at] for at, rows in sources if at <= start and stop <= at + len(rows)]
            self._write(self._result[start:stop], inside)

    def _write(self, to, parts):
        if not parts:
            to.zero_()
        elif len(parts) <= 2:
            # The sum of two is computed in float32 and rounded once.
            copy_rows(to, parts[0] if len(parts) == 1 else parts[0] + parts[1])
        else:
            total = parts[0].to(self._wide)
            for rows in parts[1:]:
                total += rows
            to.copy_(total)


def differentiate(call, query, key, value, output, lse, output_grad, lse_grad, lengths, sink, arrays, wrt):
    """The gradients of query, key and value, of sink or None, and {number: gradient} of the arrays in wrt.

    Of what each rank has the whole, sink and arrays, they are this rank's part: of its own queries.
    """
    runner = Runner(call, lengths, sink, arrays)
    query_grad, key_grad, value_grad = (torch.empty_like(array) for array in (query, key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    sink_grad = None if sink is None else torch.zeros_like(sink)
    of_arrays = {
        number: torch.zeros_like(arrays[number], dtype=torch.promote_types(arrays[number].dtype, torch.float32))
        for number in wrt
    }
    sums, query_sums, under_way = {}, {}, collections.deque()
    carrier = _make_carrier(call, key, value, True)

    def finish():
        first, last, gradients = under_way.popleft()
        if first not in sums:
            sums[first] = [
                _Sum(array[:, first:last].permute(2, 0, 1, 3), call.transfers.steps, wide)
                for array in (key_grad, value_grad)
            ]
        sources = gradients()
        for number, total in enumerate(sums[first]):
            total.add([(start, rows) for of, start, rows in sources if of == number])

    for unit, keys in list_units(call, carrier):
        # Gradients of captured tensors are added unit by unit.
        with contextlib.nullcontext() if wrt else carrier.enter(unit):
            first, last, step = call.units[unit]
            keys.wait()
            heads = slice(first * call.per_key_head, last * call.per_key_head)
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
                        parts.append((piece.start, each, *grads[1:3]))
                    if grads[3] is not None:
                        sink_grad[heads] += grads[3]
                    for source, grad in grads[4].items():
                        of_arrays[source] += grad
                if step + 1 == call.transfers.steps:
                    total = query_sums.pop(piece.start, None)
                    if total is None:
                        query_grad[:, heads, rows] = 0
                    else:
                        copy_rows(query_grad[:, heads, rows], total)
            del keys
            blocks = {
                each: [_make_blocks(each, _select_parts(each, parts), number, query) for number in range(2)]
                for each in call.transfers.list_contributions(call.rank, step)
            }
            under_way.append((first, last, carrier.start_gradients(unit, blocks)))
        if carrier.adds_early and len(under_way) > 1:
            finish()
    carrier.meet()
    while under_way:
        finish()
    carrier.leave()
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
