"""Attention of a few queries to a cache of keys that is split over ranks, which is known as decode context
parallelism.
"""

import torch

from .. import checking, lowering, packing
from ..expressions import BATCH, HEAD, KEY, QUERY, Tensor, query_length
from ..merging import merge
from ..plans import Plan
from ..preparation import get_scale
from ..programs import Variant, check_schedule, get_function, with_packing, with_schedules
from .attention import _check_group, _check_number, _check_tensors
from .exchange import gather_parts
from .local import Functions, Rewriter, moved
from .shards import get_group


def _count(length, rank, ranks, interleave):
    """How many of the first keys a rank has; of a number or of a tensor."""
    whole = length // (ranks * interleave)
    rest = length - whole * ranks * interleave - rank * interleave
    rest = rest.clamp(0, interleave) if isinstance(rest, torch.Tensor) else min(max(rest, 0), interleave)
    return whole * interleave + rest


def stripe(x, group=None, dim=-2, interleave=1):
    """This rank's keys of a tensor that is whole on each rank: every position k for which k // interleave %
    ranks is the rank.
    """
    _, rank, ranks = get_group(group)
    interleave = _check_number("interleave", interleave)
    positions = torch.arange(x.shape[dim], device=x.device)
    return x.index_select(dim, positions[positions // interleave % ranks == rank])


class _Program:
    """The variant for this rank's keys, and the arrays that it reads."""

    def __init__(self, functions, queries, rank, ranks, interleave, scale, has_sink, packed, schedule):
        self._tensor = None
        attribute = condition = None
        sees_all = queries == 1 and functions.mask is not None and functions.mask._attribute is not None
        if functions.condition is not None and not (
            sees_all and functions.mask._attribute.operands == ("#flash.causal",)
        ):
            attribute, condition = lowering.MaskBuilder().split(
                self._rewrite(functions.condition, rank, ranks, interleave)
            )
        score = None if functions.score is None else self._rewrite(functions.score, rank, ranks, interleave)
        variant = Variant(attribute, condition, score, scale, True, has_sink, True)
        self.config = with_packing(variant.config, packed) if packed != (None, None) else variant.config
        if schedule is not None:
            self.config = with_schedules(self.config, schedule, None)
        self.function = get_function(self.config)
        numbers = {id(tensor): number for number, tensor in enumerate(functions.tensors)}
        #: Of each captured tensor its number, or None for the lengths.
        self.sources = [numbers.get(id(tensor)) for tensor in variant.captures]

    def _rewrite(self, root, rank, ranks, interleave):
        position = KEY * ranks if interleave == 1 else KEY // interleave * (ranks * interleave) + KEY % interleave
        symbols = {"b": moved(BATCH), "h": moved(HEAD), "i": moved(QUERY), "nq": moved(query_length)}
        symbols.update(j=moved(position, {None: rank * interleave}), nk=moved(0, {"nk": 1}))
        return Rewriter(symbols, self._read).rewrite(root)

    def _read(self, _):
        if self._tensor is None:
            self._tensor = Tensor(torch.zeros(1, dtype=torch.int32), "lengths")
        return self._tensor[BATCH]


def decode(
    query,
    key,
    value,
    lengths,
    group=None,
    mask=None,
    score=None,
    scale=None,
    sink=None,
    return_lse=False,
    page_table=None,
    interleave=1,
    schedule=None,
):
    """Attention of the last queries of each sequence to keys that are divided among ranks: each rank has every
    `ranks`-th one, as `stripe` makes them.

    It is `flash_mlir.attention(query, all keys, all values, mask, ..., key_lengths=lengths)`: causal masks and windows
    are aligned to the last key. Each rank computes with its keys; results and log-sum-exps are gathered, and merged in
    float32 in the order of ranks, so that all ranks have the same bits. On CUDA nothing waits for the device.

    Args:
      query: (batch, heads, queries, D), the same on each rank.
      key, value: This rank's part of the cache, (batch, key heads, room, D); with page_table its pages, (pages, rows
        of a page, key heads, D).
      lengths: int32 of shape (batch,): how many keys each sequence has on all ranks together.
      group: As `attention`.
      mask, score, scale, sink, return_lse, schedule: As `flash_mlir.attention`; functions see positions in the whole
        sequence.
      page_table: int32 of shape (batch, pages of a sequence): this rank's pages.
      interleave: How many keys in a row a rank has: it has the keys k for which k // interleave % ranks is its number.

    Returns:
      The output, (batch, heads, queries, Dv), the same on each rank, and with return_lse the log-sum-exp.

    Raises:
      TypeError, ValueError, TraceError, CompileError: As `flash_mlir.attention`.
      NotImplementedError: Gradients are needed.
      Error: A rank does not take part any more.
    """
    if torch.compiler.is_compiling():
        from ..torch_breaks import call_ranks_eagerly

        given = dict(
            group=group, mask=mask, score=score, scale=scale, sink=sink, return_lse=return_lse, page_table=page_table
        )
        return call_ranks_eagerly(decode, query, key, value, lengths, **given, interleave=interleave, schedule=schedule)
    _check_tensors(query, key, value)
    group, rank, ranks = get_group(group)
    _check_group(group, query.device)
    interleave = _check_number("interleave", interleave)
    if isinstance(mask, Plan):
        raise ValueError("mask is a Plan, and no plan is of parts of a sequence; give the mask instead")
    if schedule is not None:
        check_schedule("schedule", schedule)
    if query.dim() != 4 or key.dim() != 4:
        raise ValueError(f"query and key have {query.dim()} and {key.dim()} dimensions; expected 4")
    packing.check_int32("lengths", lengths, 1, "1: how many keys each sequence has")
    functions = Functions(mask, score)
    if functions.lengths is not None:
        raise ValueError("lengths are given twice: as an argument and by key_lengths in the mask")
    if torch.is_grad_enabled() and any(
        each.requires_grad for each in (query, key, value, *filter(torch.is_tensor, (sink, *functions.arrays)))
    ):
        raise NotImplementedError("decode has no gradients; call it under torch.no_grad(), or take attention")
    scale = None if scale is None else get_scale(scale)
    mine = _count(lengths, rank, ranks, interleave).int()
    packed, of_pages = (None, None), ()
    if page_table is not None:
        packed = packing.get_key(None, None, page_table, mine, key)
        of_pages = packing.get_arrays(None, None, page_table, mine)
    # A sink takes part once.
    sink = sink if rank == 0 else None
    given = query.shape[2], rank, ranks, interleave, scale, sink is not None, packed, schedule
    program = functions.remember(("decode", *given), lambda: _Program(functions, *given))
    captured = tuple([lengths if source is None else functions.arrays[source] for source in program.sources])
    if checking.is_on:
        checking.check_call(program.config, query, key, value, mine, sink, captured + of_pages)
    with torch.no_grad():
        output, lse = program.function.run(query, key, value, mine, sink, captured + of_pages)
        if ranks > 1:
            output, lse = merge(gather_parts(group, output), gather_parts(group, lse))
    return (output, lse) if return_lse else output
