"""Functions with the names, arguments and defaults of FlashAttention and of torch.nn.attention.varlen."""

import numpy

from .attention import attention
from .expressions import is_array, key_length, query_length
from .masks import causal as causal_mask
from .masks import window
from .number_functions import absolute, tanh


def _get_mask(causal, window_size, mask):
    """The mask of a window, which is aligned to the end as a causal one is, and what `mask` keeps of it."""
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2:
        raise ValueError(f"window_size is {window_size}; expected two numbers, as (-1, -1) for no window")
    sides = []
    for side in window_size:
        if side is not None and side < -1:
            raise ValueError(f"window_size has {side}; expected numbers from 0 on, or -1 or None for a side without end")
        sides.append(None if side == -1 else side)
    left, right = sides[0], 0 if causal else sides[1]
    if left is None and right is None:
        return mask
    made = causal_mask() if left is None and right == 0 else window(left=left, right=right)
    return made if mask is None else made & mask


def _get_score(softcap, alibi_slopes, score):
    """Scores that are capped, then biased by ALiBi's slopes, then given to `score`."""
    if softcap is not None and softcap < 0:
        raise ValueError(f"softcap is {softcap}; expected a positive number, or 0 for none")
    if not softcap and alibi_slopes is None:
        return score
    if alibi_slopes is not None and not is_array(alibi_slopes):
        raise TypeError(f"alibi_slopes is a {type(alibi_slopes).__name__}; expected an array, (heads,) or (batch, heads)")
    rank = None if alibi_slopes is None else len(alibi_slopes.shape)
    if rank not in (None, 1, 2):
        raise ValueError(f"alibi_slopes has {rank} dimensions; expected (heads,) or (batch, heads)")

    def change(s, b, h, q, k):
        if softcap:
            s = softcap * tanh(s / softcap)
        if rank is not None:
            slope = alibi_slopes[h] if rank == 1 else alibi_slopes[b, h]
            s = s - slope * absolute(q + key_length - query_length - k)
        return s if score is None else score(s, b, h, q, k)

    return change


def _check(dropout_p, return_attn_probs, return_lse):
    if dropout_p:
        raise ValueError(f"dropout_p is {dropout_p}; only 0 is possible, as kernels have no random numbers")
    if return_attn_probs and return_lse:
        raise ValueError("return_attn_probs asks for three results and return_lse for two; give one of them")


def _swap(array):
    """(batch, length, heads, D) as (batch, heads, length, D), and back."""
    return array.swapaxes(1, 2)


def _swap_back(array):
    array = _swap(array)
    return array.contiguous() if hasattr(array, "contiguous") else numpy.ascontiguousarray(array)


def _check_rank(name, array):
    # Of other ranks other dimensions would be exchanged, and attention takes what comes of three.
    if not is_array(array) or len(array.shape) != 4:
        found = f"has {len(array.shape)} dimensions" if is_array(array) else f"is a {type(array).__name__}"
        raise ValueError(f"{name} {found}; without offsets it is (batch, length, heads, head dimension)")


def _attend(q, k, v, offsets, options, return_attn_probs, return_lse):
    """Attention of rows with the heads behind them, packed where there are offsets."""
    for name, array, of_array in (("q", q, offsets[0]), ("k", k, offsets[1]), ("v", v, offsets[1])):
        if of_array is None:
            _check_rank(name, array)
    q = _swap(q) if offsets[0] is None else q
    k, v = (k, v) if offsets[1] is not None else (_swap(k), _swap(v))
    results = attention(
        q, k, v, return_lse=return_attn_probs or return_lse, query_offsets=offsets[0], key_offsets=offsets[1], **options
    )
    output, *more = results if return_attn_probs or return_lse else (results,)
    if offsets[0] is None:
        output = _swap_back(output)
    if return_attn_probs:
        return output, *more, None
    return (output, *more) if return_lse else output


def flash_attn_func(
    q,
    k,
    v,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
    *,
    return_lse=False,
    learnable_sink=None,
    mask=None,
    score=None,
):
    """FlashAttention's function of this name, by `attention`.

    Args:
      q: (batch, length, heads, D); arrays are such as `attention` takes, on the CPU, too.
      k, v: (batch, key length, key heads, D).
      dropout_p: 0.
      softmax_scale: 1 / sqrt(D) if left out.
      causal: A query sees no key behind it; the last query sees the last key.
      window_size: How many keys before and behind its own a query sees; -1 or None is unbounded.
      softcap: s becomes softcap * tanh(s / softcap); 0 for none.
      alibi_slopes: (heads,) or (batch, heads): -slope * |q + key length - query length - k| is added to scores.
      deterministic: Gradients are deterministic in any case.
      return_attn_probs: Returns (output, log-sum-exp, None), as there are no probabilities without dropout.
      return_lse: Returns (output, log-sum-exp).
      learnable_sink: (heads,): `sink` of `attention`.
      mask: What is seen in addition: a `Mask`, or a function of b, h, q and k.
      score: A function of s, b, h, q and k that gets scores after softcap and alibi_slopes.

    Returns:
      An array like q, (batch, length, heads, Dv); log-sum-exps are (batch, heads, length).

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here.
    """
    _check(dropout_p, return_attn_probs, return_lse)
    options = dict(mask=_get_mask(causal, window_size, mask), score=_get_score(softcap, alibi_slopes, score))
    options.update(scale=softmax_scale, sink=learnable_sink)
    return _attend(q, k, v, (None, None), options, return_attn_probs, return_lse)


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q=None,
    cu_seqlens_k=None,
    max_seqlen_q=None,
    max_seqlen_k=None,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
    block_table=None,
    *,
    return_lse=False,
    learnable_sink=None,
    mask=None,
    score=None,
):
    """FlashAttention's function of this name: `attention` of packed rows.

    Args:
      q: (rows of all sequences, heads, D); without cu_seqlens_q (sequences, length, heads, D).
      k, v: (rows of all sequences, key heads, D), and without cu_seqlens_k as q.
      cu_seqlens_q, cu_seqlens_k: int32 or int64 of shape (sequences + 1,): `query_offsets` and `key_offsets` of `attention`.
      max_seqlen_q, max_seqlen_k: Not needed, and not looked at.
      block_table: None: there are no pages.

    Masks and functions see sequences in place of batches. The other arguments are as those of `flash_attn_func`.

    Returns:
      An array (rows, heads, Dv), row-major; log-sum-exps are (heads, rows). Rows of no sequence are 0, and -inf.

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here, and NotImplementedError for block_table.
    """
    _check(dropout_p, return_attn_probs, return_lse)
    _refuse_pages("block_table", block_table)
    if cu_seqlens_q is None and cu_seqlens_k is None:
        raise ValueError("neither cu_seqlens_q nor cu_seqlens_k is given; call flash_attn_func for a batch that is not packed")
    options = dict(mask=_get_mask(causal, window_size, mask), score=_get_score(softcap, alibi_slopes, score))
    options.update(scale=softmax_scale, sink=learnable_sink)
    return _attend(q, k, v, (cu_seqlens_q, cu_seqlens_k), options, return_attn_probs, return_lse)


def _refuse_pages(name, table):
    if table is not None:
        raise NotImplementedError(f"{name} is given, and keys cannot lie in pages; put those of a sequence behind each other")


def varlen_attn(
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q=None,
    max_k=None,
    is_causal=False,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
    mask=None,
    score=None,
):
    """The function of this name of torch.nn.attention.varlen: `attention` of packed rows.

    Args:
      query, key, value, cu_seq_q, cu_seq_k: As q, k, v, cu_seqlens_q and cu_seqlens_k of `flash_attn_varlen_func`.
      max_q, max_k: Not needed, and not looked at.
      is_causal: As window_size=(-1, 0), where the window has no left side.
      return_aux: Something with an attribute `lse`, which says whether to return the log-sum-exp, too.
      scale: 1 / sqrt(D) if left out.
      window_size: As that of `flash_attn_varlen_func`.
      enable_gqa: Whether key may have fewer heads than query.
      seqused_k, block_table: None: sequences have all of their keys, and there are no pages.
      num_splits: None, 0 or 1: keys of packed rows are not split.
      mask, score: As those of `flash_attn_func`.

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here, and NotImplementedError for
        seqused_k and block_table.
    """
    _refuse_pages("block_table", block_table)
    if seqused_k is not None:
        raise NotImplementedError("seqused_k is given, and sequences have all of their keys; take the used ones, with cu_seq_k of these")
    if num_splits not in (None, 0, 1):
        raise ValueError(f"num_splits is {num_splits}; only 1 is possible, as keys of packed rows are not split")
    if cu_seq_q is None or cu_seq_k is None:
        raise ValueError("cu_seq_q and cu_seq_k are needed; where one side is a batch, call attention with offsets of the other")
    if not enable_gqa and query.shape[-2] != key.shape[-2]:
        raise ValueError(f"query has {query.shape[-2]} heads, key has {key.shape[-2]}; enable_gqa=True allows that")
    options = dict(mask=_get_mask(is_causal, window_size or (-1, -1), mask), score=score, scale=scale)
    return _attend(query, key, value, (cu_seq_q, cu_seq_k), options, False, return_aux is not None and return_aux.lse)
