"""Attention for Transformers' models.

    import flash_mlir.transformers

    name = flash_mlir.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation=name)

Transformers takes two functions of a name: one that makes a mask once for all layers of a kind, and one that computes
attention. The first leaves the mask a function of positions, which the compiler takes apart; the 2-D mask of padding
and the sequences of a packed batch are tensors that it reads. A 4-D mask is never made.
"""

import functools

import torch
from torch.nn.attention.flex_attention import BlockMask

from .attention import attention, get_shared_mask
from .expressions import key_length, query_length, tanh
from .masks import Mask, causal, is_compiling
from .masks import mask as as_mask

#: Transformers takes every name with "flash" in it for one of FlashAttention's libraries, which have other masks.
NAME = "mlir"

# How many keys there are before the first query. One object, by which functions are found again.
_PAST = key_length - query_length


class ModelMask(BlockMask):
    """What the models hand from the mask function to the attention function.

    A BlockMask by name alone, since the models take such for a mask that is made already.

    Attributes:
      mask: What `attention` takes; None keeps all keys.
      shape: (batch, 1, queries, keys) that it is for.
    """

    def __init__(self, mask, shape):
        self.mask = mask
        self._shape = shape

    shape = property(lambda self: self._shape)

    def to(self, *arguments, **options):
        return self

    contiguous = to

    def __repr__(self):
        return f"ModelMask({self.mask}, {self._shape})"

    __str__ = __repr__


def _get_offsets(query_count, key_count, query_offset, key_offset):
    """What is to be added to the positions of queries and of keys: no number that another call changes."""
    is_known = isinstance(query_offset, int) and isinstance(key_offset, int) and key_offset == 0
    if is_known and query_offset == key_count - query_count:
        return _PAST, 0
    if is_known and query_offset == 0:
        return 0, 0
    return query_offset, key_offset


def _as_number(offset, device):
    """An offset that functions read at each call."""
    if isinstance(offset, torch.Tensor):
        return offset.reshape(()).to(device)
    return torch.tensor(offset, device=device) if isinstance(offset, int) and offset != 0 else offset


def make_mask(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    mask_function=None,
    attention_mask=None,
    device="cpu",
    **options,
):
    """The mask function that `register` hands to Transformers, with the arguments of its `sdpa_mask`."""
    from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

    padding = attention_mask
    if padding is not None:
        missing = kv_length + kv_offset - padding.shape[-1]
        if missing > 0:
            padding = torch.nn.functional.pad(padding, (0, missing))
        padding = padding[:, kv_offset : kv_offset + kv_length].to(torch.bool)
        # As Transformers does for its own: most batches have none.
        if not is_compiling() and bool(padding.all()):
            padding = None
    more_queries, more_keys = _get_offsets(q_length, kv_length, q_offset, kv_offset)
    is_aligned = not isinstance(more_queries, (int, torch.Tensor))
    if mask_function is bidirectional_mask_function:
        positions = None
    elif mask_function is causal_mask_function and is_aligned:
        positions = causal()
    else:
        more_queries, more_keys = _as_number(more_queries, device), _as_number(more_keys, device)

        def positions(b, h, q, k):
            return mask_function(b, h, q + more_queries, k + more_keys)

    if padding is None:
        mask = positions
    else:

        def is_token(b, h, q, k):
            return padding[b, k]

        mask = is_token if positions is None else _join(positions, is_token)
    if mask is not None and not isinstance(mask, Mask) and not is_compiling():
        mask = get_shared_mask(mask)
    return ModelMask(mask, (batch_size, 1, q_length, kv_length))


def _join(positions, is_token):
    return (positions if isinstance(positions, Mask) else as_mask(positions)) & is_token


@functools.lru_cache(maxsize=256)
def _make_cap(cap):
    return lambda s, b, h, q, k: cap * tanh(s / cap)


def _make_score(cap, bias, dense):
    """The function of scores with a cap, a bias and a mask of numbers that is given as a tensor."""
    if bias is None and dense is None:
        return None if cap is None else _make_cap(cap)
    # A size of 1 is for all batches or heads.
    bias_batches, bias_heads = (0, 0) if bias is None else (int(size > 1) for size in bias.shape[:2])
    dense_batches, dense_heads = (0, 0) if dense is None else (int(size > 1) for size in dense.shape[:2])

    def score(s, b, h, q, k):
        if cap is not None:
            s = cap * tanh(s / cap)
        if bias is not None:
            s = s + bias[b * bias_batches, h * bias_heads, q, k]
        if dense is not None:
            s = s + dense[b * dense_batches, h * dense_heads, q, k]
        return s

    return score


def attend(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    softcap=None,
    s_aux=None,
    position_bias=None,
    **options,
):
    """The attention function that `register` hands to Transformers.

    Args:
      query: (batch, heads, query length, D); key and value with their own number of heads.
      attention_mask: A ModelMask; None, where `is_causal` counts, as for `sdpa`; or a 4-D tensor of truth values
        or of numbers to add, that the caller made.
      softcap, s_aux, position_bias: The cap of scores, the sinks of heads, a bias (1 or batch, heads, queries, keys).
      options: What other implementations take, of no effect on this one: the windows are in the mask.

    Returns:
      (batch, query length, heads, Dv), and None in place of the weights.

    Raises:
      ValueError: dropout, weights (output_attentions), a head mask or a paged cache is asked for.
    """
    if dropout:
        raise ValueError(f"attention has no dropout, and {dropout} is asked for; set it to 0 in the model's config")
    for name in ("output_attentions", "head_mask", "cache"):
        if options.get(name) is not None and options[name] is not False:
            raise ValueError(f"attention takes no {name}; use attn_implementation='eager'")
    mask = dense = None
    if isinstance(attention_mask, ModelMask):
        if attention_mask.shape[3] != key.shape[2]:
            raise ValueError(f"the mask is for {attention_mask.shape[3]} keys, and there are {key.shape[2]}")
        mask = attention_mask.mask
    elif attention_mask is None:
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if is_causal and query.shape[2] > 1:
            mask = causal(top_left=True)
    elif attention_mask.dtype == torch.bool:
        batches, heads = (int(size > 1) for size in attention_mask.shape[:2])

        def mask(b, h, q, k):
            return attention_mask[b * batches, h * heads, q, k]

    else:
        dense = attention_mask
    score = _make_score(softcap, position_bias, dense)
    sink = None if s_aux is None else s_aux.float()
    output = attention(query, key, value, mask=mask, score=score, scale=scaling, sink=sink)
    return output.transpose(1, 2), None


def register(name=NAME):
    """Makes `attn_implementation=name` this package's attention, for all models that take one; returns the name.

    Raises ValueError for a name with "flash" in it, which Transformers takes for FlashAttention's.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    if "flash" in name:
        raise ValueError(
            f"{name!r} has 'flash' in it, and Transformers takes that for FlashAttention; {NAME!r} is possible"
        )
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, make_mask)
    return name
