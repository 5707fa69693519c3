"""The offsets of packed rows (docs/ragged-rows.md), from what says the document of each."""

import sys

import numpy

from . import checking
from .expressions import is_array
from .masks import is_compiling
from .operands import as_integer, get_dtype, is_tensor


def may_look(array):
    """Whether the host may read what an array holds: at once, or because checks are on."""
    if not is_tensor(array):
        return True
    if is_compiling() or array.is_meta:
        return False
    from .torch_state import is_watched

    return not is_watched() and (checking.is_on or not array.is_cuda)


def document_offsets(ids, count=None):
    """The offsets of documents that lie behind each other, from the number of the document of each row.

        offsets = flash.document_offsets(ids, 64)
        output = flash.attention(query, key, value, mask=flash.causal(), query_offsets=offsets, key_offsets=offsets)

    They are what `documents(ids)` is as a mask, where ids do not decrease. Rows of a batch lie behind each other, and a document
    ends where its row does: packed rows of (batch, heads, length, D) are x.transpose(1, 2).flatten(0, 1).

    Args:
      ids: Integers that do not decrease, of shape (length,) or (batch, length).
      count: How many documents there are at most. What is left of them is empty, behind the last row. With a count nothing
        waits for the device; if left out, it is the number of documents, for which the host waits, and torch.compile breaks its
        graph.

    Returns:
      Integers of shape (count + 1,), where ids are: where each document starts, and where the last one ends; int64.

    Raises:
      TypeError: ids is no array of integers, or count no integer.
      ValueError: ids have other dimensions; count is negative; ids decrease, or are of more documents than count. Of the last two
        nobody knows on CUDA without `checks`, nor in a graph: each change of ids starts a document then, and rows of documents
        beyond the count are of none.
    """
    if not is_array(ids):
        raise TypeError(f"ids is a {type(ids).__name__}; expected an array of integers")
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(ids, torch.Tensor):
        torch, ids = None, numpy.asarray(ids)
    dtype = get_dtype(ids)
    if not dtype.startswith(("int", "uint")):
        raise TypeError(f"ids has the dtype {dtype}; expected integers")
    if ids.ndim not in (1, 2):
        raise ValueError(f"ids has {ids.ndim} dimensions; expected (length,) or (batch, length)")
    if count is not None:
        count = as_integer("count", count)
        if count < 0:
            raise ValueError(f"count is {count}; it must not be negative")
    can_look = may_look(ids)
    rows = ids if ids.ndim == 2 else ids[None]
    if can_look and (rows[:, 1:] < rows[:, :-1]).any():
        raise ValueError(
            "ids decrease along a row, and offsets are of documents that lie behind each other; take documents(ids) as a mask"
        )
    # The number of each row's document, from 1 on.
    starts = numpy.ones(rows.shape, bool) if torch is None else torch.ones_like(rows, dtype=torch.bool)
    starts[:, 1:] = rows[:, 1:] != rows[:, :-1]
    numbers = starts.reshape(-1).cumsum(0)
    if can_look or count is None:
        found = int(numbers[-1]) if len(numbers) else 0
        if count is not None and found > count:
            raise ValueError(f"ids are of {found} documents, and count is {count}")
        count = found if count is None else count
    # The first row of each document, and of the one behind the last; all rows where there is none.
    if torch is None:
        return numbers.searchsorted(numpy.arange(1, count + 2))
    return torch.searchsorted(numbers, torch.arange(1, count + 2, device=ids.device))
