"""Attention for which ranks exchange heads: each has all rows of some heads, computes these, and sends the results
back.

Known as Ulysses. Masks see the whole sequence, and each rank computes as much as any other, whatever the mask is. Heads
are exchanged in groups: while one is computed, the next ones arrive, and results of the one before leave.

Each array has a number. The gradient of query, key or value has the number of query, key or value.
"""

import torch

from .copying import copy_rows, to_contiguous
from .exchange import Exchange
from .gather import Runner, list_units
from .shared import share
from .transfers import Piece

QUERY, KEY, VALUE, OUTPUT, LSE, OUTPUT_GRAD = range(6)


class Layout:
    """Where each rank has all rows of its heads in the memory that it shares, which is the same on all ranks.

    Gradients of query, key and value take the room of these: kernels have read a group's rows when its gradients are
    there.

    Args:
      sizes: (batch, heads, query length, key length) of the whole sequence.
      key_heads: How many heads keys have.
      ranks: How many ranks there are.
      dims, bytes: (D, D of values) and the bytes of an element.
    """

    _ALIGNMENT = 256

    def __init__(self, sizes, key_heads, ranks, dims, bytes):
        batch, heads, queries, keys = sizes
        of_queries, of_keys = (batch, heads // ranks, queries), (batch, key_heads // ranks, keys)
        self._shapes = [(*of_queries, dims[0]), (*of_keys, dims[0]), (*of_keys, dims[1]), (*of_queries, dims[1])]
        self._shapes += [of_queries, self._shapes[OUTPUT]]
        self._starts = [0]
        for number, shape in enumerate(self._shapes):
            size = torch.Size(shape).numel() * (max(bytes, 4) if number == LSE else bytes)
            self._starts.append(self._starts[-1] + -(-size // self._ALIGNMENT) * self._ALIGNMENT)
        #: How many bytes each rank shares in the forward pass, and in the backward pass.
        self.size_of_forward, self.size = self._starts[OUTPUT_GRAD], self._starts[-1]

    def get(self, shared, rank, number, dtype):
        """What a rank has of an array."""
        return shared.get(rank, self._starts[number], self._shapes[number], dtype)


class _Carrier:
    """What brings all rows of its heads to each rank, unit by unit, and rows of results back.

    `arrays` are this rank's rows of all heads, and `results` get what comes back, both by their numbers. `start` gives
    a function that waits for a unit's arrays and returns them. `make_result` gives a tensor for a result of a unit,
    `give` takes its results, and `finish` waits for what comes back.
    """

    def __init__(self, call, arrays, results):
        self._call, self._arrays, self._results = call, arrays, results
        self._rank, self._ranks = call.rank, call.transfers.ranks
        # The next ranks come first, so that not all write to the same one.
        self._peers = [(call.rank + each) % self._ranks for each in range(1, self._ranks)]

    def _get_shards(self, number):
        return self._call.transfers.key_shards if number in (KEY, VALUE) else self._call.transfers.shards

    def _get_heads(self, number, unit, rank=0):
        """The heads of a rank's unit, or of all its units, in an array of all heads; rank 0's are also the heads of
        any rank's unit in an array of its heads alone.
        """
        units = self._call.units
        first, last, _ = units[unit] if unit is not None else (0, units[-1][1], 0)
        before, each = rank * units[-1][1], 1 if number in (KEY, VALUE) else self._call.per_key_head
        return slice((before + first) * each, (before + last) * each)

    def _pair(self, number, rank, whole, mine):
        """(rows of the whole, the same ones of a rank's) of each piece of a rank."""
        place = 0
        for start, stop in self._get_shards(number).pieces[rank]:
            yield whole[:, :, start:stop], mine[:, :, place : place + stop - start]
            place += stop - start


class _Messages(_Carrier):
    """Messages of the group, with rows outside: each is of a peer's rows, or of this rank's."""

    #: Whether arrays of all rows stay for the backward pass, or are sent again in it.
    keeps = True

    def __init__(self, call, arrays, results):
        super().__init__(call, arrays, results)
        self._given = []

    def start(self, unit):
        exchange, found = Exchange(self._call.group), []
        for number, array in self._arrays.items():
            shards = self._get_shards(number)
            for peer in self._peers:
                heads = self._get_heads(number, unit, peer)
                exchange.send(peer, to_contiguous(array[:, heads].movedim(2, 0)))
            mine = array[:, self._get_heads(number, unit, self._rank)].movedim(2, 0)
            whole = mine.new_empty(shards.length, *mine.shape[1:])
            received = [(self._rank, mine)]
            for peer in self._peers:
                pieces = shards.pieces[peer]
                if len(pieces) == 1:
                    exchange.receive(peer, whole[slice(*pieces[0])])
                else:
                    received.append((peer, mine.new_empty(shards.count(peer), *mine.shape[1:])))
                    exchange.receive(*received[-1])
            found.append((number, whole.movedim(0, 2), received))
        exchange.start()

        def wait():
            exchange.wait()
            for number, whole, received in found:
                for peer, rows in received:
                    for to, source in self._pair(number, peer, whole, rows.movedim(0, 2)):
                        copy_rows(to, source)
            return {number: whole for number, whole, _ in found}

        return wait

    def make_result(self, number, unit, shape):
        batch, heads, rows, *more = shape
        return self._results[number].new_empty(rows, batch, heads, *more).movedim(0, 2)

    def give(self, unit, wholes):
        exchange, received = Exchange(self._call.group), []
        for number, whole in wholes.items():
            rows, shards = to_contiguous(whole.movedim(2, 0)), self._get_shards(number)
            for peer in range(self._ranks):
                parts = [rows[start:stop] for start, stop in shards.pieces[peer]]
                part = parts[0] if len(parts) == 1 else torch.cat(parts) if parts else rows[:0]
                exchange.send(peer, part)
                if peer != self._rank:
                    part = rows.new_empty(shards.count(self._rank), *rows.shape[1:])
                received.append((self._results[number][:, self._get_heads(number, unit, peer)], part.movedim(0, 2)))
                exchange.receive(peer, part)
        self._given.append((exchange.start(), received))

    def finish(self):
        for exchange, received in self._given:
            exchange.wait()
            for to, rows in received:
                copy_rows(to, rows)


class _Copies(_Carrier):
    """Copies in memory that the ranks share.

    A rank writes its rows into the others' memory from where they are, and reads its rows of results from there: in
    that way nothing but its own rows of its own heads is copied within a GPU, and gradients of the others' rows, as
    kernels write them elsewhere. What is under way takes no multiprocessors.

    All ranks meet

    - before anything is written: they read and write no longer what was there in the call before;
    - before a unit is computed: what all of them have written of it has arrived. The unit before is computed then on
      all ranks, too, so that results of it are read from there on;
    - after the last unit, whose results are read then. The next call begins with such a meeting, which a rank comes to
      when it has read its results.

    Nobody writes into a unit's rows between these but its own rank: gradients take their room behind the kernel that
    reads them.
    """

    keeps = False

    def __init__(self, call, arrays, results):
        super().__init__(call, {number: _close_gaps(array) for number, array in arrays.items()}, results)
        size = call.layout.size if OUTPUT_GRAD in arrays else call.layout.size_of_forward
        self._shared = share(call.group, next(iter(arrays.values())).device, size)
        self._given, self._waits = [], []
        self._shared.meet()

    def _get(self, rank, number, dtype, unit=None):
        """What a rank has of a unit, or of all."""
        return self._call.layout.get(self._shared, rank, number, dtype)[:, self._get_heads(number, unit)]

    def start(self, unit):
        pairs = []
        for peer in self._peers:
            for number, array in self._arrays.items():
                mine = array[:, self._get_heads(number, unit, peer)]
                pairs += self._pair(number, self._rank, self._get(peer, number, array.dtype, unit), mine)
        arrive = self._shared.copy(pairs)

        def wait():
            if unit == 0:
                # Of all units, as kernels have to wait for the first one's others anyway.
                self._put_mine()
            arrive()
            self._meet()
            return {number: self._get(self._rank, number, each.dtype, unit) for number, each in self._arrays.items()}

        return wait

    def _put_mine(self):
        for number, array in self._arrays.items():
            mine = array[:, self._get_heads(number, None, self._rank)]
            for to, source in self._pair(number, self._rank, self._get(self._rank, number, array.dtype), mine):
                copy_rows(to, source)

    def make_result(self, number, unit, shape):
        return self._get(self._rank, number, self._results[number].dtype, unit)

    def give(self, unit, wholes):
        for number, whole in wholes.items():
            room = self._get(self._rank, number, whole.dtype, unit)
            if room.data_ptr() == whole.data_ptr():
                continue
            for peer in self._peers:
                for start, stop in self._get_shards(number).pieces[peer]:
                    copy_rows(room[:, :, start:stop], whole[:, :, start:stop])
        self._given.append((unit, wholes))

    def _meet(self):
        self._shared.meet()
        if not self._given:
            return
        unit, pairs = self._given[-1][0], []
        for peer in self._peers:
            for number, result in self._results.items():
                mine = result[:, self._get_heads(number, unit, peer)]
                rows = self._pair(number, self._rank, self._get(peer, number, result.dtype, unit), mine)
                pairs += [(to, source) for source, to in rows]
        self._waits.append(self._shared.copy(pairs))

    def finish(self):
        self._meet()
        # While the last unit's rows arrive.
        for unit, wholes in self._given:
            for number, whole in wholes.items():
                mine = self._results[number][:, self._get_heads(number, unit, self._rank)]
                for source, to in self._pair(number, self._rank, whole, mine):
                    copy_rows(to, source)
        for wait in self._waits:
            wait()
        self._shared.leave()


def _close_gaps(array):
    """An array in which heads and their rows lie behind each other, as copies take them."""
    return array if array[:1].is_contiguous() else to_contiguous(array)


def _get_carrier(call):
    return _Messages if call.layout is None else _Copies


def _is_empty(call, sink):
    """Whether no query sees anything."""
    return call.sizes[2] == 0 or call.sizes[3] == 0 and sink is None


def compute(call, has_lse, query, key, value, lengths, sink, arrays):
    """[output and, with `has_lse`, log-sum-exp] of this rank's rows, and of each unit what `differentiate` takes."""
    runner, kept = Runner(call, lengths, sink, arrays), []
    results = {OUTPUT: query.new_empty(*query.shape[:-1], value.shape[-1])}
    if has_lse:
        results[LSE] = query.new_empty(query.shape[:-1], dtype=torch.promote_types(query.dtype, torch.float32))
    carrier = _get_carrier(call)(call, {QUERY: query, KEY: key, VALUE: value}, results)
    piece, keys = Piece(0, call.sizes[2], 0, ()), (0, call.sizes[3])
    for unit, wait in list_units(call, carrier):
        operands = list(wait().values())
        output = carrier.make_result(OUTPUT, unit, (*operands[QUERY].shape[:-1], value.shape[-1]))
        if _is_empty(call, sink):
            lse = output.new_full(output.shape[:-1], -torch.inf, dtype=torch.promote_types(output.dtype, torch.float32))
            output.zero_()
        else:
            lse = runner.run(piece, keys, call.units[unit][:2], True, *operands, output)[1]
        carrier.give(unit, {OUTPUT: output, LSE: lse} if has_lse else {OUTPUT: output})
        kept.append([*operands, output, lse] if carrier.keeps else [lse])
    carrier.finish()
    return list(results.values()), kept


def differentiate(call, shapes, sent, kept, lengths, sink, arrays, wrt):
    """The gradients of query, key and value, of sink or None, and {number: gradient} of the arrays in wrt.

    `shapes` are of this rank's query, key and value, and `sent` the arrays that ranks exchange, by their numbers.
    Of sink and arrays the gradients are this rank's part: of its heads.
    """
    runner = Runner(call, lengths, sink, arrays)
    results = {number: sent[OUTPUT_GRAD].new_empty(shape) for number, shape in zip((QUERY, KEY, VALUE), shapes)}
    sink_grad = None if sink is None else torch.zeros_like(sink)
    of_arrays = {
        number: torch.zeros_like(arrays[number], dtype=torch.promote_types(arrays[number].dtype, torch.float32))
        for number in wrt
    }
    carrier = _get_carrier(call)(call, sent, results)
    piece, keys = Piece(0, call.sizes[2], 0, ()), (0, call.sizes[3])
    for unit, wait in list_units(call, carrier):
        found, heads = wait(), call.units[unit][:2]
        grads = found.pop(OUTPUT_GRAD), found.pop(LSE, None)
        operands = [*found.values(), *kept[unit]]
        if _is_empty(call, sink):
            grads = [torch.zeros_like(each) for each in operands[:3]]
        else:
            *grads, of_sink, found = runner.differentiate(piece, keys, heads, True, *operands, *grads, wrt)
            if of_sink is not None:
                sink_grad[heads[0] * call.per_key_head : heads[1] * call.per_key_head] += of_sink
            for number, grad in found.items():
                of_arrays[number] += grad
        carrier.give(unit, dict(enumerate(grads)))
    carrier.finish()
    of_arrays = {number: grad.to(arrays[number].dtype) for number, grad in of_arrays.items()}
    return (*results.values(), sink_grad, of_arrays)


class Heads(torch.autograd.Function):
    """`compute` with gradients; `sink` is that of this rank's heads."""

    @staticmethod
    def forward(ctx, call, has_lse, query, key, value, lengths, sink, *arrays):
        results, kept = compute(call, has_lse, query, key, value, lengths, sink, arrays)
        sent = [] if _get_carrier(call).keeps else [query, key, value, results[0]]
        ctx.save_for_backward(lengths, sink, *arrays, *sent, *[each for of_unit in kept for each in of_unit])
        ctx.of_call = call, [each.shape for each in (query, key, value)], len(arrays), len(sent), len(kept)
        ctx.wrt = [number for number, needed in enumerate(ctx.needs_input_grad[7:]) if needed]
        return tuple(results)

    @staticmethod
    def backward(ctx, output_grad, lse_grad=None):
        if torch.is_grad_enabled():
            raise NotImplementedError("attention has no second derivative; leave out create_graph=True")
        call, shapes, arrays, sent, units = ctx.of_call
        lengths, sink, *saved = ctx.saved_tensors
        arrays, saved = saved[:arrays], saved[arrays:]
        sent, saved = dict(enumerate(saved[:sent])), saved[sent:]
        sent[OUTPUT_GRAD] = output_grad
        if lse_grad is not None:
            sent[LSE] = lse_grad
        each = len(saved) // units
        kept = [saved[unit * each : (unit + 1) * each] for unit in range(units)]
        grads = differentiate(call, shapes, sent, kept, lengths, sink, arrays, ctx.wrt)
        return (None, None, *grads[:3], None, grads[3], *[grads[4].get(number) for number in range(len(arrays))])
