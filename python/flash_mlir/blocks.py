"""Lists of blocks of queries and keys that a caller gives."""

import operator
import sys
from typing import Any, NamedTuple, Optional, Tuple

from . import packing
from .expressions import is_array
from .masks import Mask
from .operands import get_dtype

# What is left of a block: a part, in which the mask is computed, all, or nothing.
PART, WHOLE = 1, 2


class Blocks(NamedTuple):
    """Which blocks of keys each block of queries sees: keys of others take no part, and all of a full block's do.

    Arrays are of int32, where query is. Numbers and counts that are possible are up to the caller; `flash_mlir.checks`
    looks at them. A block is listed once.

    Attributes:
      indices: (batch or 1, heads or 1, blocks of queries, n), of any n: the numbers of blocks of keys. Blocks
        that the mask keeps a part of come first, each kind in any order; what comes behind them has any value.
      counts: (batch or 1, heads or 1, blocks of queries, 2): how many are partial, and how many there are in all.
      size: The queries and keys of a block: multiples of 16 on CUDA, and of 8 on the CPU.
      query_indices, query_counts: The same pairs from the other side: for each block of keys the blocks of queries that
        list it. Gradients need them; without them a table of all blocks is used instead of the lists.
    """

    indices: Any
    counts: Any
    size: Tuple[int, int]
    query_indices: Optional[Any] = None
    query_counts: Optional[Any] = None


def get_key(blocks):
    """What programs depend on: the sizes of a block, and whether there are lists for gradients."""
    if blocks is None:
        return None
    return (*[int(size) for size in blocks.size], blocks.query_indices is not None)


def get_arrays(blocks):
    """The arrays that a call has behind the captured tensors: first for the attention, then for its gradients."""
    if blocks is None:
        return ()
    lists = blocks.indices, blocks.counts
    return lists if blocks.query_indices is None else (*lists, *lists, blocks.query_indices, blocks.query_counts)


def get_step(query):
    """What sizes of blocks are multiples of, for kernels to go over their lists."""
    return 16 if getattr(query, "is_cuda", False) else 8


def _check_size(size, query):
    try:
        numbers = tuple(map(operator.index, size))
    except TypeError:
        numbers = ()
    if len(numbers) != 2 or min(numbers) < 1:
        raise ValueError(f"blocks has the size {size!r}; expected two positive numbers, of queries and of keys")
    step = get_step(query)
    if any(number % step for number in numbers):
        nearest = tuple([-(-number // step) * step for number in numbers])
        raise ValueError(f"blocks has the size {numbers}; sizes of blocks are multiples of {step}, the nearest is {nearest}")


def _check_shapes(blocks, side, shape, rows, block):
    """Raises an error for lists of one side that are of other batches, heads or blocks than the operands."""
    count = -(-rows // block)
    indices, counts = (tuple(getattr(blocks, f"{side}{part}").shape) for part in ("indices", "counts"))
    if any(given not in (1, size) for given, size in zip(indices[:2], shape)) or indices[2] != count:
        expected = f"({shape[0]} or 1, {shape[1]} or 1, {count}, any number)"
        raise ValueError(f"{side}indices of blocks has the shape {indices}; expected {expected} for {rows} rows in blocks of {block}")
    if counts != (*indices[:3], 2):
        raise ValueError(f"{side}counts of blocks has the shape {counts}; expected {(*indices[:3], 2)}, as {side}indices has {indices}")


def check(blocks, query, key):
    """Raises TypeError or ValueError for what are no lists of blocks, or where operands have none."""
    if getattr(query, "is_nested", False) or getattr(key, "is_nested", False):
        packing.refuse_blocks("jagged tensors")
    if not isinstance(blocks, Blocks):
        raise TypeError(f"blocks is a {type(blocks).__name__}; expected flash_mlir.Blocks")
    _check_size(blocks.size, query)
    if len(query.shape) != 4:
        raise ValueError(f"blocks are of batches and heads, and query has {len(query.shape)} dimensions; expected 4")
    if (blocks.query_indices is None) != (blocks.query_counts is None):
        raise ValueError("query_indices and query_counts of blocks belong together; give both or none")
    for name in ("indices", "counts", "query_indices", "query_counts"):
        array = getattr(blocks, name)
        if array is None and name.startswith("query"):
            continue
        if not is_array(array):
            raise TypeError(f"{name} of blocks is a {type(array).__name__}; expected an array of int32")
        if get_dtype(array) != "int32":
            raise TypeError(f"{name} of blocks has the dtype {array.dtype}; expected int32")
        if len(array.shape) != 4:
            raise ValueError(f"{name} of blocks has {len(array.shape)} dimensions; expected (batch, heads, blocks, numbers)")
    _check_shapes(blocks, "", query.shape, query.shape[2], blocks.size[0])
    if blocks.query_indices is not None and len(key.shape) == 4:
        _check_shapes(blocks, "query_", query.shape, key.shape[2], blocks.size[1])


def make_table(columns, *lists):
    """What is left of each block: (batches, heads, blocks of queries, `columns` blocks of keys).

    `lists` are each (kind, indices of blocks of keys, the first entry that counts, the entry behind the last one).
    """
    torch = sys.modules["torch"]
    indices = lists[0][1]
    # What counts for nothing is written to a column more.
    table = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.int8, device=indices.device)
    for kind, indices, first, end in lists:
        place = torch.arange(indices.shape[-1], device=indices.device)
        counts = (place >= first) & (place < end.unsqueeze(-1))
        table = table.scatter(-1, torch.where(counts, indices, columns).clamp(max=columns).long(), kind)
    return table


def get_table(indices, counts, columns):
    """The table of such lists, whose last column counts for nothing."""
    parts, end = counts.unbind(-1)
    return make_table(columns, (PART, indices, 0, parts), (WHOLE, indices, parts.unsqueeze(-1), end))


def read_table(blocks, mask, key_length):
    """A mask that keeps what the lists and, of partial blocks, the mask do. It reads the table of all blocks."""
    query_block, key_block = blocks.size
    table = get_table(blocks.indices, blocks.counts, -(-key_length // key_block))
    # One that is for all batches or heads has a size of 1.
    batches, heads = (int(size > 1) for size in table.shape[:2])

    # Each of these functions reads the table itself: of functions of this package that they call nothing is looked at.
    def keep_all(b, h, q, k):
        return table[b * batches, h * heads, q // query_block, k // key_block] != 0

    def keep_whole(b, h, q, k):
        return table[b * batches, h * heads, q // query_block, k // key_block] == WHOLE

    def keep_part(b, h, q, k):
        return table[b * batches, h * heads, q // query_block, k // key_block] == PART

    def keep(b, h, q, k):
        left = table[b * batches, h * heads, q // query_block, k // key_block]
        return (left == WHOLE) | ((left == PART) & mask(b, h, q, k))

    if mask is None:
        return keep_all
    return (mask & keep_part) | keep_whole if isinstance(mask, Mask) else keep
