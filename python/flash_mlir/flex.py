"""FlexAttention's function, with its arguments."""

import sys
import weakref

from .attention import attention
from .blocks import PART, WHOLE, Blocks, get_step, get_table, read_table
from .masks import is_compiling
from .plans import list_tiles, plan
from .preparation import autocast, get_mask

# Of a BlockMask, its masks and their plans, by all they depend on.
_masks = weakref.WeakKeyDictionary()
_plans = weakref.WeakKeyDictionary()
_MAX_MASKS = 8
_MAX_PLANS = 8

# Of the mask without limits that FlexAttention makes where it is given none.
_NO_BLOCKS = 1 << 30

# The lists of a BlockMask.
_LISTS = [
    f"{full}{side}_{part}"
    for full in ("", "full_")
    for side in ("kv", "q")
    for part in ("num_blocks", "indices")
]


def _merge(partial, full, rows, columns):
    """The lists of partial blocks and of full ones, which may be empty, as one list and its counts.

    `partial` and `full` are each (how many blocks each row has, their numbers). There are so many rows and columns.
    """
    torch = sys.modules["torch"]
    kinds = []
    for kind, (ends, numbers) in enumerate((partial, full)):
        if ends is not None:
            place = torch.arange(numbers.shape[-1], device=numbers.device)
            counts = (place < ends.unsqueeze(-1)) & (numbers < columns)
            kinds.append(torch.where(counts, kind, 2)[..., :rows, :])
    kinds = torch.cat(kinds, -1)
    numbers = partial[1] if full[0] is None else torch.cat((partial[1], full[1]), -1)
    numbers = numbers[..., :rows, :].gather(-1, kinds.sort(dim=-1, stable=True).indices)
    return numbers, torch.stack([(kinds == 0).sum(-1), (kinds < 2).sum(-1)], -1).int()


def _get_blocks(block_mask, lengths):
    """The lists of a BlockMask for so many queries and keys."""
    size = tuple(block_mask.BLOCK_SIZE)
    rows, columns = (-(-length // block) for length, block in zip(lengths, size))
    partial = block_mask.kv_num_blocks, block_mask.kv_indices
    full = block_mask.full_kv_num_blocks, block_mask.full_kv_indices
    indices, counts = _merge(partial, full, rows, columns)
    if block_mask.q_indices is None:
        return Blocks(indices, counts, size)
    partial = block_mask.q_num_blocks, block_mask.q_indices
    full = block_mask.full_q_num_blocks, block_mask.full_q_indices
    return Blocks(indices, counts, size, *_merge(partial, full, columns, rows))


def _are_of_mask_mod(blocks, block_mask, query):
    """Whether the lists leave what mask_mod does, as those do that create_block_mask makes. Waits for the device."""
    if query.device != blocks.indices.device:
        return False
    shape = *query.shape[:2], *block_mask.seq_lengths
    columns = -(-block_mask.seq_lengths[1] // blocks.size[1])
    table = get_table(blocks.indices, blocks.counts, columns)
    found = get_table(*list_tiles(block_mask.mask_mod, query, shape, blocks.size), columns)
    # A block that is listed as a part may be less, or all of it: mask_mod decides.
    torch = sys.modules["torch"]
    agree = torch.where(table == PART, True, torch.where(table == WHOLE, found == WHOLE, found == 0))
    return bool(agree[..., :-1].all())


def _choose_mask(block_mask, query, key):
    """mask_mod, where it leaves what the lists do, and None; else mask_mod, or None if it keeps all, and the lists.

    The former lets the compiler know what is left. Which one it is, is kept until the lists are others; where a graph is
    made, nobody can wait for the device to compare them, and they are visited.
    """
    from torch.nn.attention.flex_attention import noop_mask

    mask = None if block_mask.mask_mod is noop_mask else block_mask.mask_mod
    lengths = query.shape[2], key.shape[2]
    if is_compiling():
        return mask, _get_blocks(block_mask, lengths)
    from .torch_state import is_watched

    torch = sys.modules["torch"]
    lists = [getattr(block_mask, name) for name in _LISTS]
    given = [each for each in lists if each is not None]
    is_graph = (
        type(query) is not torch.Tensor
        or any([type(each) is not torch.Tensor for each in given])
        or is_watched()
        or (query.is_cuda and torch.cuda.is_current_stream_capturing())
    )
    # Tensors of the inference mode have no version that changes when they are written to.
    versions = [(id(each), None if each.is_inference() else each._version) for each in given]
    wanted = block_mask.mask_mod, query.shape[:2], query.device, block_mask.seq_lengths
    masks = _masks.setdefault(block_mask, {})
    known = masks.get(wanted)
    if known is None or known[0] != versions:
        if is_graph:
            return mask, _get_blocks(block_mask, lengths)
        blocks = _get_blocks(block_mask, block_mask.seq_lengths)
        are_of_mask = mask is not None and _are_of_mask_mod(blocks, block_mask, query)
        if len(masks) >= _MAX_MASKS:
            masks.clear()
        # The lists are kept, so that no other has the identity of one.
        known = masks[wanted] = versions, given, are_of_mask, {tuple(block_mask.seq_lengths): blocks}
    _, _, are_of_mask, by_lengths = known
    if are_of_mask:
        return mask, None
    blocks = by_lengths.get(lengths)
    if blocks is None:
        blocks = _get_blocks(block_mask, lengths)
        if not is_graph:
            if len(by_lengths) >= _MAX_MASKS:
                by_lengths.clear()
            by_lengths[lengths] = blocks
    return mask, blocks


def _get_mask(block_mask, query, key):
    query_block, key_block = block_mask.BLOCK_SIZE
    if query_block == key_block == _NO_BLOCKS:
        return None, None
    lengths = tuple(block_mask.seq_lengths)
    if query.shape[2] > lengths[0] or key.shape[2] > lengths[1]:
        raise ValueError(
            f"block_mask is for {lengths[0]} queries and {lengths[1]} keys, and there are {query.shape[2]} and "
            f"{key.shape[2]}"
        )
    for name, size, of_mask in zip(("batches", "heads"), query.shape[:2], block_mask.kv_num_blocks.shape):
        if of_mask not in (1, size):
            raise ValueError(f"block_mask is for {of_mask} {name}, and query has {size}")
    mask, blocks = _choose_mask(block_mask, query, key)
    if blocks is not None and any(size % get_step(query) for size in blocks.size):
        return read_table(blocks, mask, key.shape[2]), None
    return mask, blocks


def _get_versions(arrays):
    """What changes when the arrays or what they hold do; None where nothing shows it."""
    torch = sys.modules["torch"]
    if not all(isinstance(array, torch.Tensor) and not array.is_inference() for array in arrays):
        return None
    return [(id(array), array._version) for array in arrays]


def _with_plan(mask, block_mask, query, key, value, score):
    """The mask of a BlockMask, with the plan that is kept beside its lists of blocks.

    As those, it is made once. A tensor that the mask reads and that has changed since makes it again. There is none where a graph
    is made, whose lifetime is not known, and for other lengths than the BlockMask has.
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
    tensors that mask_mod reads change later. Others, and all under torch.compile and while a CUDA graph is captured if
    there was no call before, are visited as `Blocks` are. Which tiles of its own mask_mod leaves, the compiler finds in
    the first call, too, whose `Plan` is kept as long as the BlockMask, and again when a tensor that the mask reads was written to by PyTorch; under torch.compile and
    while a CUDA graph is captured, in each call.

    Args:
      query: (batch, heads, query length, D).
      key: (batch, key heads, key length, D); value: (batch, key heads, key length, Dv). A batch of 1 serves all.
      score_mod: A function of score, b, h, q_idx and kv_idx, as `attention` takes it.
      block_mask: A BlockMask, for at least as many queries and keys as there are.
      scale: A number; 1 / sqrt(D) if left out.
      enable_gqa: Whether there may be fewer key heads than heads.
      return_lse: Whether to return the log-sum-exp, too.
      kernel_options: A dict of hints for FlexAttention's kernels; they do not change results, and none is used.
      return_aux: An AuxRequest; lse is possible.

    Returns:
      The output; with return_lse (output, lse), with return_aux (output, AuxOutput).

    Raises:
      TypeError, ValueError: As `attention`, and where FlexAttention does.
      NotImplementedError: max_scores are requested.
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
    if block_mask is not None and (query.is_nested or key.is_nested):
        raise ValueError(
            "block_mask is given beside jagged tensors; without one, flash_mlir.attention takes a mask of positions inside of each "
            "sequence: attention(query, key, value, mask=mask_mod, score=score_mod)"
        )
    mask, blocks = (None, None) if block_mask is None else _get_mask(block_mask, query, key)
    if mask is not None and blocks is None:
        mask = _with_plan(mask, block_mask, query, key, value, score_mod)
    results = attention(query, key, value, mask=mask, score=score_mod, scale=scale, return_lse=return_lse, blocks=blocks)
    if return_aux is None:
        return results
    from torch.nn.attention.flex_attention import AuxOutput

    output, lse = results if return_lse else (results, None)
    return output, AuxOutput(lse=lse, max_scores=None)
