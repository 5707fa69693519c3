"""Attention of the rows that each rank has to the rows of all ranks."""

import operator

import torch
import torch.distributed as dist

from .. import checking
from ..expressions import is_array
from ..operands import to_tensor
from ..plans import Plan
from ..preparation import get_scale, autocast
from ..programs import check_schedule
from .explanation import Shape, choose
from .gather import Call, Gather
from .heads import Heads
from .local import Functions
from .packed import Rows
from .shared import find_room
from .shards import check_shards, get_group


def attention(
    query,
    key,
    value,
    group=None,
    mask=None,
    score=None,
    scale=None,
    lengths=None,
    sink=None,
    return_lse=False,
    shards=None,
    key_shards=None,
    offsets=None,
    way=None,
    head_groups=None,
    ahead=None,
    memory=None,
    same_bits=False,
    exchange=None,
    schedule=None,
    gradient_schedule=None,
    explain=False,
):
    """`flash_mlir.attention` of a sequence whose rows several processes have; each calls it with its own and gets its
    own results.

    Masks and score functions see positions of the whole sequence, and causal masks and windows apply to it. All
    ranks of the group call it with the same arguments but query, key and value. On CUDA nothing waits for the device.

    Args:
      query, key, value: This rank's rows, (batch, heads, rows, D), or without the batch, as `shard` makes them; or
        DTensors whose rows are split over a mesh of one dimension.
      group: A group of torch.distributed, of NCCL for CUDA and for example of gloo on the CPU; all processes if left
        out.
      mask, score, scale, lengths, sink, return_lse: As `flash_mlir.attention`. No plans; `lengths` are of the whole
        sequence.
      shards, key_shards: `Shards` of the queries, and of the keys. Left out they are balanced, with as many rows on
        each rank; key_shards are shards, where there are as many keys.
      offsets: int32 or int64 of shape (sequences + 1,), the same on each rank: the rows of all ranks together are
        packed, query as (rows, heads, D), key and value as (rows, key heads, D), and each sequence has as many queries
        as keys. Offsets on the host, also beside CUDA tensors, show which keys need not be sent.
      way: "gather", "heads" or "ring"; left out it is chosen by sizes (docs/distributed.md).
      head_groups: In how many groups heads of keys are sent, each while the one before is computed; or how many heads
        of keys each group has. Where heads are exchanged they are of one rank's heads.
      ahead: How many of these groups are under way beside the one that is computed.
      memory: How many bytes a rank may hold of other ranks' rows; by it heads are sent in more groups, or in a ring.
      same_bits: Whether results and gradients of query, key and value have the same bits for 1, 2, 4 and 8 ranks.
      exchange: "copies": ranks of one host read and write each other's memory, by the GPUs' copy engines; "messages":
        they send and receive. Left out it is copies where all GPUs of the group reach each other, the way is no ring,
        and a rank would share no more than a quarter of its memory and than `memory`. What is shared stays until
        `free_memory`.
      schedule, gradient_schedule: Keys of schedules, as `flash_mlir.Attention` has them.
      explain: Whether the `Explanation` of the call is returned, and nothing is computed. All ranks call it, too: the
        first call of a group finds out whether its ranks may copy.

    Returns:
      As `flash_mlir.attention`, of this rank's rows. Gradients of query, key and value are of the sum of all ranks'
      losses. Of sink and of arrays that functions read, which every rank has, they are this rank's part: their sum
      over ranks is the whole, as of the parameters of a layer that is applied to the rows of each rank.

    Raises:
      TypeError, ValueError, TraceError, CompileError: As `flash_mlir.attention`, on each rank before anything is sent.
      Error: A rank does not take part any more. With NCCL it is PyTorch's watchdog that ends the process then.
    """
    if torch.compiler.is_compiling():
        from ..torch_breaks import call_ranks_eagerly

        given = dict(
            mask=mask, score=score, scale=scale, lengths=lengths, sink=sink, return_lse=return_lse, shards=shards
        )
        given.update(
            key_shards=key_shards,
            offsets=offsets,
            way=way,
            head_groups=head_groups,
            ahead=ahead,
            memory=memory,
            same_bits=same_bits,
            exchange=exchange,
        )
        given.update(schedule=schedule, gradient_schedule=gradient_schedule, explain=explain)
        return call_ranks_eagerly(attention, query, key, value, group, **given)
    _check_tensors(query, key, value)
    if any(_is_dtensor(each) for each in (query, key, value)):
        if shards is not None or key_shards is not None or group is not None:
            raise ValueError(
                "DTensors have their own shards, key_shards and group; leave them out, or give to_local() of these"
            )
        from .dtensors import unwrap

        (query, key, value), group, shards, key_shards, wrap = unwrap(query, key, value)
    else:
        wrap = None
    options = dict(way=way, head_groups=head_groups, ahead=ahead, memory=memory)
    options.update(same_bits=bool(same_bits), exchange=exchange)
    given = group, mask, score, scale, lengths, sink, return_lse, shards, key_shards, offsets
    results = _attend(query, key, value, *given, options, (schedule, gradient_schedule), explain)
    return results if wrap is None or explain else wrap(results)


def _is_dtensor(tensor):
    return type(tensor).__name__ == "DTensor"


def _check_tensors(*arrays):
    for name, array in zip(("query", "key", "value"), arrays):
        if not isinstance(array, torch.Tensor):
            raise TypeError(f"{name} is a {type(array).__name__}; expected a tensor of PyTorch")
        if array.is_nested:
            raise TypeError(f"{name} is a nested tensor; expected packed rows, which are its values(), and offsets")


def _check_operands(query, key, value, is_packed):
    shapes = {"query": tuple(query.shape), "key": tuple(key.shape), "value": tuple(value.shape)}
    ranks = (3,) if is_packed else (3, 4)
    if query.dim() not in ranks or not query.dim() == key.dim() == value.dim():
        expected = (
            "(rows, heads, D), as offsets are given"
            if is_packed
            else "(batch, heads, rows, D), or all of them without the batch"
        )
        raise ValueError(f"query, key and value have the shapes {shapes}; expected {expected}")
    for name, other in (("key", key), ("value", value)):
        if other.dtype != query.dtype:
            raise TypeError(f"{name} has the dtype {other.dtype}, and query {query.dtype}; they must agree")
        if other.device != query.device:
            raise ValueError(f"{name} is on {other.device}, and query on {query.device}; they must be on one device")
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            f"key and value have the shapes {shapes['key']} and {shapes['value']}; all but the last dimension "
            f"must agree"
        )
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(f"key has the head dimension {key.shape[-1]}; expected {query.shape[-1]}, as query has")
    if query.dim() == 4 and key.shape[0] != query.shape[0]:
        raise ValueError(f"key has the batch size {key.shape[0]}; expected {query.shape[0]}, as query has")
    dim = 1 if is_packed else -3
    if key.shape[dim] == 0 or query.shape[dim] % key.shape[dim]:
        raise ValueError(
            f"query has {query.shape[dim]} heads and key {key.shape[dim]}; those must be a multiple of these"
        )


def _check_number(name, number, least=1):
    if number is None:
        return None
    number = operator.index(number)
    if number < least:
        raise ValueError(f"{name} is {number}; it must be at least {least}")
    return number


def _check_group(group, device):
    backend = dist.get_backend(group)
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"tensors are on {device}; expected the CPU or CUDA")
    if device.type == "cuda" and "nccl" not in backend and "cuda" not in backend:
        raise ValueError(f"tensors are on {device}, and the group's backend is {backend}; expected nccl")
    if device.type == "cpu" and backend == "nccl":
        raise ValueError(
            "tensors are on the CPU, and the group's backend is nccl; expected gloo, or cpu:gloo,cuda:nccl"
        )


def _attend(
    query,
    key,
    value,
    group,
    mask,
    score,
    scale,
    lengths,
    sink,
    return_lse,
    shards,
    key_shards,
    offsets,
    options,
    schedules,
    explain,
):
    group, rank, ranks = get_group(group)
    query, key, value = autocast(query, key, value)
    _check_operands(query, key, value, offsets is not None)
    if isinstance(mask, Plan):
        raise ValueError("mask is a Plan, and no plan is of parts of a sequence; give the mask instead")
    for name, keys in zip(("schedule", "gradient_schedule"), schedules):
        if keys is not None:
            check_schedule(name, keys)
    options["memory"] = _check_number("memory", options["memory"])
    options["ahead"] = _check_number("ahead", options["ahead"], 0)
    if isinstance(options["head_groups"], (tuple, list)):
        options["head_groups"] = tuple([_check_number("head_groups", each) for each in options["head_groups"]])
    else:
        options["head_groups"] = _check_number("head_groups", options["head_groups"])
    scale = None if scale is None else get_scale(scale)
    functions = Functions(mask, score)
    lengths = _choose_lengths(lengths, functions.lengths, query, offsets is not None)
    rank_of_query = query.dim()
    if offsets is not None:
        query, key, value = (array.transpose(0, 1)[None] for array in (query, key, value))
    elif rank_of_query == 3:
        query, key, value = (array[None] for array in (query, key, value))
    shards = check_shards("shards", shards, query.shape[2], rank, ranks)
    if key_shards is None and key.shape[2] == query.shape[2]:
        key_shards = shards
    key_shards = check_shards("key_shards", key_shards, key.shape[2], rank, ranks)
    rows = None if offsets is None else _make_rows(offsets, query.device, shards, key_shards, functions, lengths)
    shape = Shape(
        query.shape[0],
        query.shape[1],
        key.shape[1],
        query.shape[3],
        value.shape[3],
        query.element_size(),
        shards,
        key_shards,
    )
    _check_group(group, query.device)
    room = 0
    # On the CPU ranks copy if a call says so: messages of gloo wait for no kernels.
    if ranks > 1 and options["exchange"] != "messages" and (query.is_cuda or options["exchange"] == "copies"):
        room = find_room(group, query.device)
    transfers, layout, explanation = choose(functions, shape, **options, rows=rows, room=room)
    if explain:
        return explanation
    if sink is not None and (not isinstance(sink, torch.Tensor) or tuple(sink.shape) != (shape.heads,)):
        found = tuple(sink.shape) if is_array(sink) else type(sink).__name__
        raise ValueError(f"sink is {found}; expected a tensor of shape ({shape.heads},), one number for each head")
    if checking.is_on:
        _compare_ranks(
            group,
            rank,
            (shape, functions.mask, mask is None, score is None, scale, options, schedules, explanation.way),
        )
    arrays = [array if isinstance(array, torch.Tensor) else to_tensor(array) for array in functions.arrays]
    of_call = (
        transfers,
        shape.sizes,
        shape.key_heads,
        explanation.head_groups,
        explanation.ahead,
        layout,
        scale,
        schedules,
        rows,
    )
    call = Call(group, rank, functions, *of_call)
    if explanation.way == "heads":
        of_rank = shape.heads // ranks
        call.first_head = of_rank * rank
        if sink is not None:
            sink = sink[call.first_head : call.first_head + of_rank]
        output, lse = (*Heads.apply(call, return_lse, query, key, value, lengths, sink, *arrays), None)[:2]
    else:
        output, lse = Gather.apply(call, query, key, value, lengths, sink, *arrays)
    if offsets is not None:
        output, lse = output[0].transpose(0, 1), lse[0]
    elif rank_of_query == 3:
        output, lse = output[0], None if lse is None else lse[0]
    return (output, lse) if return_lse else output


def _choose_lengths(lengths, of_mask, query, is_packed):
    if lengths is not None and of_mask is not None:
        raise ValueError("lengths are given twice: as an argument and by key_lengths in the mask")
    lengths = of_mask if lengths is None else lengths
    if lengths is None:
        return None
    if not isinstance(lengths, torch.Tensor):
        lengths = to_tensor(lengths)
    if is_packed:
        raise ValueError(
            "lengths and offsets are given, and packed sequences end where their offsets say; leave lengths out"
        )
    if query.dim() == 3 or tuple(lengths.shape) != tuple(query.shape[:1]):
        raise ValueError(
            f"lengths have the shape {tuple(lengths.shape)}; expected one for each batch, and query has the shape "
            f"{tuple(query.shape)}"
        )
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths have the dtype {lengths.dtype}; expected integers")
    return lengths.long()


def _make_rows(offsets, device, shards, key_shards, functions, lengths):
    if not isinstance(offsets, torch.Tensor):
        offsets = to_tensor(offsets) if is_array(offsets) else offsets
    if shards != key_shards:
        raise ValueError(
            "offsets are given, and shards are not key_shards; each packed sequence has as many queries as keys"
        )
    return Rows(offsets, device, shards.length, functions.sees_later())


def _compare_ranks(group, rank, facts):
    """Raises an error on each rank where ranks call with other arguments."""
    mine, theirs = [repr(each) for each in facts], [None] * dist.get_world_size(group)
    dist.all_gather_object(theirs, mine, group=group)
    for other, each in enumerate(theirs):
        for here, there in zip(theirs[0], each):
            if here != there:
                raise ValueError(
                    f"rank {other} calls attention with {there}, and rank 0 with {here}; all ranks must agree (this is "
                    f"rank {rank})"
                )
