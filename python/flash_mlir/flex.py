"""FlexAttention's function, with its arguments."""

import sys
import weakref

from .attention import attention, autocast, get_mask
from .masks import is_compiling
from .plans import plan

# Of a BlockMask, the plans of its mask_mod, by all they depend on.
_plans = weakref.WeakKeyDictionary()
_MAX_PLANS = 8

# Of the mask without limits that FlexAttention makes where it is given none.
_NO_BLOCKS = 1 << 30


def _get_listed(block_mask):
    """The mask of a BlockMask that has nothing but lists of blocks."""
    listed = block_mask.to_dense() != 0
    query_block, key_block = block_mask.BLOCK_SIZE
    # One that is for all batches or heads has a size of 1.
    batches, heads = (int(size > 1) for size in listed.shape[:2])

    def keep(b, h, q, k):
        return listed[b * batches, h * heads, q // query_block, k // key_block]

    return keep


def _get_mask(block_mask, query, key):
    from torch.nn.attention.flex_attention import noop_mask

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
    return _get_listed(block_mask) if block_mask.mask_mod is noop_mask else block_mask.mask_mod


def _get_versions(arrays):
    """What changes when the arrays or what they hold do; None where nothing tells."""
    torch = sys.modules["torch"]
    if not all(isinstance(array, torch.Tensor) and not array.is_inference() for array in arrays):
        return None
    return [(id(array), array._version) for array in arrays]


def _with_plan(mask, block_mask, query, key, value, score):
    """The mask of a BlockMask, with the plan that is kept beside its lists of blocks.

    As those, it is made once. A tensor that the mask reads and that has changed since makes it again. Where a graph is
    made, of which nobody knows how long it lives, for other lengths than those of the BlockMask, and where its lists are
    the mask, there is none.
    """
    if mask is not block_mask.mask_mod or is_compiling():
        return mask
    from .torch_operator import is_watched, needs_gradients

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

    Of a BlockMask, the mask_mod alone counts; the compiler finds itself which tiles it leaves. It does so in the first
    call with a BlockMask, whose `Plan` is kept as long as the BlockMask, and again when a tensor that mask_mod reads was
    written to by PyTorch; under torch.compile and while a CUDA graph is captured, in each call. Lists of blocks are
    read where there is no other mask_mod than noop_mask, and all scores of the blocks that they name are kept.
    Lists that leave out more than a mask_mod does are FlexAttention's own, and have no effect here.

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
