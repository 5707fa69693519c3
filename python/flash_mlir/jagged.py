"""PyTorch's jagged tensors, which are packed rows with their offsets."""

import torch

from . import packing

_OPERANDS = "query", "key", "value"


def are_jagged(*arrays):
    """Whether one of the arrays, which may be None, is a nested tensor."""
    # What stands for a tensor in a graph has no truth value.
    return any([getattr(array, "is_nested", False) is True for array in arrays])


def _unpack(name, array):
    """The rows (rows, heads, D) and the offsets of a jagged tensor; a dense one as it is, and None."""
    if not are_jagged(array):
        return array, None
    if array.layout is not torch.jagged:
        raise TypeError(f"{name} is a nested tensor of the layout {array.layout}; a dense one, or one of torch.jagged, is needed")
    if array.dim() != 4 or array._ragged_idx != 2:
        raise ValueError(
            f"{name} has {array.dim()} dimensions, and dimension {array._ragged_idx} is ragged; expected (batch, heads, ragged "
            "length, head dimension), as x.transpose(1, 2) is of (batch, ragged length, heads, head dimension)"
        )
    if array.lengths() is not None:
        raise ValueError(
            f"{name} is a jagged tensor with holes, as torch.nested.narrow makes them (its lengths() is not None), and offsets "
            "alone say where rows are; copy it without holes"
        )
    return array.values().transpose(0, 1), array.offsets()


def unpack(query, key, value):
    """(query, key, value) as packed rows, and (offsets of queries, of keys), each None where there are no jagged ones."""
    rows, offsets = zip(*[_unpack(name, array) for name, array in zip(_OPERANDS, (query, key, value))])
    if (offsets[1] is None) != (offsets[2] is None):
        kinds = "key is jagged and value is" if offsets[2] is None else "value is jagged and key is"
        raise ValueError(f"{kinds} not; they must have the same offsets")
    # Sizes are the same where they come from the same offsets, which nobody has to read for that.
    if offsets[1] is not None and key.shape[2] != value.shape[2]:
        raise ValueError(
            f"key and value have different ragged lengths, {key.shape[2]} and {value.shape[2]}, as they have each offsets of "
            "their own; make one by torch.nested.nested_tensor_from_jagged(values, offsets) with the offsets() of the other"
        )
    return rows, offsets[:2]


def _pack(rows, query):
    """What the rows of a result are, (rows, heads, ...), as a jagged tensor like the query, (batch, heads, ragged length, ...)."""
    known = {name: getattr(query, f"_maybe_{name}", None) for name in ("min_seqlen", "max_seqlen")}
    known = {name: length for name, length in known.items() if length is not None}
    return torch.nested.nested_tensor_from_jagged(rows, query.offsets(), **known).transpose(1, 2)


def pack(results, query):
    """The results of attention of packed rows, the output or (output, log-sum-exp), like the query that they are of."""
    if not query.is_nested:
        return results
    if isinstance(results, torch.Tensor):
        return _pack(results, query)
    return _pack(results[0], query), _pack(results[1].transpose(0, 1), query)


def attend(call, query, key, value, is_packed):
    """`call` of the packed rows of these, `packing.get_key` and the offsets; the results like the query.

    `is_packed` says whether the caller has given offsets, pages or lengths himself, beside which there are no others.
    """
    if is_packed:
        raise ValueError("page_table, key_lengths, query_offsets or key_offsets are given beside jagged tensors, which have offsets of their own")
    rows, offsets = unpack(query, key, value)
    return pack(call(*rows, packing.get_key(*offsets), packing.get_arrays(*offsets)), query)
