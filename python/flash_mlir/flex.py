"""FlexAttention's function, with its arguments."""

import sys
import weakref

from .attention import attention
from .masks import is_compiling
from .plans import list_tiles, plan
from .preparation import autocast, get_mask

# Of a BlockMask, its masks and their plans, by all they depend on.
_masks = weakref.WeakKeyDictionary()
_plans = weakref.WeakKeyDictionary()
_MAX_MASKS = 8
_MAX_PLANS = 8

# What is left of a block: a part, for which mask_mod is asked, all, or nothing.
_PART, _WHOLE = 1, 2

# Of the mask without limits that FlexAttention makes where it is given none.
_NO_BLOCKS = 1 << 30


def _make_table(columns, *lists):
    """What is left of each block: (batches, heads, blocks of queries, blocks of keys, of which there are `columns`).

    `lists` are each (kind, indices of blocks of keys, from which place on they count, up to which).
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


def _get_table(block_mask):
    """What the lists of a BlockMask leave of each block."""
    lists = [(_PART, block_mask.kv_indices, 0, block_mask.kv_num_blocks)]
    if block_mask.full_kv_num_blocks is not None:
        lists.append((_WHOLE, block_mask.full_kv_indices, 0, block_mask.full_kv_num_blocks))
    return _make_table(-(-block_mask.seq_lengths[1] // block_mask.BLOCK_SIZE[1]), *lists)


def _are_of_mask_mod(table, block_mask, query, key):
    """Whether the lists leave what mask_mod does, as those do that create_block_mask makes. Waits for the device."""
    if query.device != table.device:
        return False
    shape = query.shape[0], query.shape[1], *block_mask.seq_lengths
    tiles, counts = list_tiles(block_mask.mask_mod, query, shape, block_mask.BLOCK_SIZE)
    parts, end = counts.unbind(-1)
    found = _make_table(table.shape[-1] - 1, (_PART, tiles, 0, parts), (_WHOLE, tiles, parts.unsqueeze(-1), end))
    if found.shape[2] != table.shape[2]:
        return False
    # A block that is listed as a part may be less, or all of it: mask_mod is asked.
    torch = sys.modules["torch"]
    agree = torch.where(table == _PART, True, torch.where(table == _WHOLE, found == _WHOLE, found == 0))
    return bool(agree[..., :-1].all())


def _get_listed(table, block_mask):
    """The mask of the lists and, where they leave a part, of mask_mod."""
    from torch.nn.attention.flex_attention import noop_mask

    query_block, key_block = block_mask.BLOCK_SIZE
    # One that is for all batches or heads has a size of 1.
    batches, heads = (int(size > 1) for size in table.shape[:2])
    mask_mod = block_mask.mask_mod

    def keep_all(b, h, q, k):
        return table[b * batches, h * heads, q // query_block, k // key_block] != 0

    def keep(b, h, q, k):
        left = table[b * batches, h * heads, q // query_block, k // key_block]
        return (left == _WHOLE) | ((left == _PART) & mask_mod(b, h, q, k))

    return keep_all if mask_mod is noop_mask else keep


def _choose_mask(block_mask, query, key):
    """mask_mod, where it leaves what the lists do, and else a mask that reads them.

    The former lets the compiler know what is left. Which one it is, is kept until the lists are others; where a graph is
    made, nobody can wait for the device to compare them, and they are read.
    """
    from torch.nn.attention.flex_attention import noop_mask

    if is_compiling():
        return _get_listed(_get_table(block_mask), block_mask)
    from .torch_state import is_watched

    torch = sys.modules["torch"]
    lists = block_mask.kv_num_blocks, block_mask.kv_indices, block_mask.full_kv_num_blocks, block_mask.full_kv_indices
    given = [each for each in lists if each is not None]
    is_graph = (
        type(query) is not torch.Tensor
        or any([type(each) is not torch.Tensor for each in given])
        or is_watched()
        or (query.is_cuda and torch.cuda.is_current_stream_capturing())
    )
    # Nothing tells when tensors of the inference mode are written to.
    versions = [(id(each), None if each.is_inference() else each._version) for each in given]
    wanted = block_mask.mask_mod, query.shape[:2], query.device, block_mask.seq_lengths
    masks = _masks.setdefault(block_mask, {})
    known = masks.get(wanted)
    if known is not None and known[0] == versions:
        return known[2]
    table = _get_table(block_mask)
    if is_graph:
        return _get_listed(table, block_mask)
    is_listed = block_mask.mask_mod is noop_mask or not _are_of_mask_mod(table, block_mask, query, key)
    mask = _get_listed(table, block_mask) if is_listed else block_mask.mask_mod
    if len(masks) >= _MAX_MASKS:
        masks.clear()
    # The lists are kept, so that no other has the identity of one.
    masks[wanted] = versions, given, mask
    return mask


def _get_mask(block_mask, query, key):
    query_block, key_block = block_mask.BLOCK_SIZE
    if query_block == key_block == _NO_BLOCKS:
        return None
    lengths = tuple(block_mask.seq_lengths)
    if query.shape[2] > lengths[0] or key.shape[2] > lengths[1]:
        raise ValueError(
            f"block_mask is for {lengths[0]} queries and {lengths[1]} keys, and there are {query.shape[2]} and "
            f"{key.shape[2]}"
        )
    for name, size, of_mask in zip(("batches", "heads"), query.shape[:2], block_mask.kv_num_blocks.shape):
        if of_mask not in (1, size):
            raise ValueError(f"block_mask is for {of_mask} {name}, and query has {size}")
    return _choose_mask(block_mask, query, key)


def _get_versions(arrays):
    """What changes when the arrays or what they hold do; None where nothing tells."""
    torch = sys.modules["torch"]
    if not all(isinstance(array, torch.Tensor) and not array.is_inference() for array in arrays):
        return None
    return [(id(array), array._version) for array in arrays]


def _with_plan(mask, block_mask, query, key, value, score):
    """The mask of a BlockMask, with the plan that is kept beside its lists of blocks.

    As those, it is made once. A tensor that the mask reads and that has changed since makes it again. Where a graph is
    made, of which nobody knows how long it lives, and for other lengths than those of the BlockMask, there is none.
    """
    if is_compiling():
        return mask
    from .torch_state import is_watched, needs_gradients

    torch = sys.modules["torch"]
    on_device = query.is_cuda
    if type(query) is not torch.Tensor or is_watched() or (on_device and torch.cuda.is_current_stream_capturing()):
        return mask
    if (query.shape[2], key.shape[2]) != tuple(block_mask.seq_lengths):
        return mask
    traced, _, arrays = get_mask(mask)
    versions = _get_versions(arrays)
    if versions is None:
        return mask
    stream = torch.cuda.current_stream(query.device) if on_device else None
    gradients = needs_gradients(query, key, value)
    # Gradients have tiles that pay with a score function: with the first one.
    has_score = gradients and score is not None
    wanted = traced, query.shape, key.shape, value.shape, query.dtype, query.device, stream, gradients, has_score
    plans = _plans.setdefault(block_mask, {})
    known = plans.get(wanted)
    if known is None or known[0] != versions:
        if len(plans) >= _MAX_PLANS:
            plans.clear()
        # The arrays are kept, so that no other has the identity of one.
        known = plans[wanted] = versions, arrays, plan(mask, query, key, value, score=score)
    return known[2]


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """`torch.nn.attention.flex_attention.flex_attention`, with the same arguments and results.

    A BlockMask leaves what compiled FlexAttention does: all of the blocks that full_kv_indices lists, what mask_mod keeps
    of those that kv_indices lists, and nothing of others. The first call with it finds out whether mask_mod alone leaves
    the same, for which it waits for the device; lists that create_block_mask has made are not read then, also where
    tensors that mask_mod reads change later. Under torch.compile, and while a CUDA graph is captured if there was no call
    before, they are read. Which tiles of its own are left, the compiler finds in the first call, too, whose `Plan` is kept
    as long as the BlockMask, and again when a tensor that the mask reads was written to by PyTorch; under torch.compile and
    while a CUDA graph is captured, in each call.

    Args:
      query: (batch, heads, query length, D).
      key: (batch, key heads, key length, D); value: (batch, key heads, key length, Dv). A batch of 1 serves all.
      score_mod: A function of score, b, h, q_idx and kv_idx, as `attention` takes it.
      block_mask: A BlockMask, for at least as many queries and keys as there are.
      scale: A number; 1 / sqrt(D) if left out.
      enable_gqa: Whether there may be fewer key heads than heads.
      return_lse: Whether to return the log-sum-exp, too.
      kernel_options: A dict of hints for FlexAttention's kernels, none of which changes a result; none is used.
      return_aux: An AuxRequest; lse is possible.

    Returns:
      The output; with return_lse (output, lse), with return_aux (output, AuxOutput).

    Raises:
      TypeError, ValueError: As `attention`, and where FlexAttention does.
      NotImplementedError: max_scores are asked for.
    """
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ValueError(f"query, key and value have {query.ndim}, {key.ndim} and {value.ndim} dimensions; expected 4")
    heads, key_heads = query.shape[1], key.shape[1]
    if heads != key_heads and not enable_gqa:
        raise ValueError(f"query has {heads} heads, key {key_heads}; that is possible with enable_gqa=True")
    if kernel_options is not None and not isinstance(kernel_options, dict):
        raise TypeError(f"kernel_options is a {type(kernel_options).__name__}; expected a dict")
    if return_aux is not None:
        if return_lse:
            raise ValueError("return_lse and return_aux are given; one of them is possible")
        if return_aux.max_scores:
            raise NotImplementedError("the greatest scores are not kept; the log-sum-exp is (AuxRequest(lse=True))")
        return_lse = return_aux.lse
    if key.shape[0] == 1 and value.shape[0] == 1 and query.shape[0] != 1:
        key, value = (x.expand(query.shape[0], -1, -1, -1) for x in (key, value))
    query, key, value = autocast(query, key, value)
    mask = None if block_mask is None else _get_mask(block_mask, query, key)
    if mask is not None:
        mask = _with_plan(mask, block_mask, query, key, value, score_mod)
    results = attention(query, key, value, mask=mask, score=score_mod, scale=scale, return_lse=return_lse)
    if return_aux is None:
        return results
    from torch.nn.attention.flex_attention import AuxOutput

    output, lse = results if return_lse else (results, None)
    return output, AuxOutput(lse=lse, max_scores=None)
