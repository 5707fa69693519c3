"""Functions with the names, arguments and defaults of FlashAttention and of torch.nn.attention.varlen."""

import functools
import math
import operator

from . import _core, checking
from .attention import attention, read_call, run_call
from .expressions import is_array, key_length, query_length
from .functions import keep_trace
from .masks import as_mask, causal_where, check_sequences, is_compiling
from .masks import causal as causal_mask
from .masks import window
from .number_functions import absolute, tanh
from .offsets import may_look
from .operands import cast, get_dtype, is_tensor, swap_dense
from .packing import check_int32, get_arrays, get_key, rename
from .quantized import QUANTIZED


#: What FlashAttention calls arguments of `attention`.
NAMES = {
    **{"query": "q", "key": "k", "value": "v", "sink": "learnable_sink", "scale": "softmax_scale"},
    **{"query_scale": "q_descale", "key_scale": "k_descale", "value_scale": "v_descale"},
}
# That a split may have.
_MOST_KEYS = 1 << 20
# Of tiles that do not depend on other rows, 64 for other elements. One warp that converts 8 bits has registers for 16.
_KEY_TILES = {"float32": 32, **dict.fromkeys(QUANTIZED, 16)}
_NUMBERS = int, float, bool, type(None)
#: What calls of packed rows with these options do whose arrays are of types that were there before.
_shortcut = _core.Shortcut(False)
_call_again = _shortcut.call


def are_numbers(*options):
    """Whether options are numbers or tuples of these: an array may hold something else the next time."""
    return all([type(option) in _NUMBERS or type(option) is tuple and are_numbers(*option) for option in options])


def get_mask(causal, window_size, mask, used=None):
    """The mask of a window, which is aligned to the end as a causal one is, and what `mask` keeps of it.

    `causal` is a truth value, or an array of them for each sequence. `used` are how many keys of each sequence there are, where
    the kernel knows others.
    """
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2:
        raise ValueError(f"window_size is {window_size}; expected two numbers, as (-1, -1) for no window")
    left, right = [side if side is None else _read_side(side) for side in window_size]
    is_by_sequence = _is_by_sequence(causal)
    if not is_by_sequence and causal:
        right = 0
    parts = []
    if used is not None:
        parts.append(_get_used_mask(left, right, used, causal if is_by_sequence else None))
    else:
        if is_by_sequence:
            parts.append(causal_where(causal, "causal"))
        if left is None and right == 0:
            parts.append(causal_mask())
        elif left is not None or right is not None:
            parts.append(window(left=left, right=right))
    if mask is not None:
        parts.append(mask)
    made = None
    for part in parts:
        made = part if made is None else made & part
    return made


def _is_by_sequence(causal):
    return is_array(causal) or isinstance(causal, (list, tuple))


def _read_side(side):
    if not hasattr(side, "__index__") or side < -1:
        raise ValueError(f"window_size has {side!r}; expected integers from 0 on, or -1 or None for a side without end")
    return None if side == -1 else side


def check_causal(causal, rows, offsets=None):
    """Raises an error for what is neither a truth value nor one for each sequence of `rows`, a batch or packed by offsets; of
    any number of sequences where there are no rows."""
    if not _is_by_sequence(causal):
        return
    check_sequences("causal", causal)
    if not is_array(rows if offsets is None else offsets):
        return  # Others say so.
    name, count = ("q", rows.shape[0]) if offsets is None else ("cu_seqlens_q", offsets.shape[0] - 1)
    if causal.shape[0] != count:
        raise ValueError(f"causal is of {causal.shape[0]} sequences, and {name} of {count}; they must agree")


def _get_used_mask(left, right, used, causal):
    """A window that is aligned to the last of the keys that are used."""

    def keep(b, h, q, k):
        last = q + used[b] - query_length
        kept = k < used[b]
        if left is not None:
            kept = kept & (k >= last - left)
        if causal is not None:
            kept = kept & ((causal[b] == 0) | (k <= last))
        return kept if right is None else kept & (k <= last + right)

    return as_mask(keep)


def get_score(softcap, alibi_slopes, score, used=None):
    """Scores that are capped, then biased by ALiBi's slopes, then given to `score`."""
    if softcap is not None and not (hasattr(softcap, "__float__") and 0 <= softcap < math.inf):
        raise ValueError(f"softcap is {softcap!r}; expected a positive number, or 0 for none")
    if not softcap and alibi_slopes is None:
        return score
    if alibi_slopes is None and score is None and not is_compiling():
        return _get_cap(float(softcap))
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
            length = key_length if used is None else used[b]
            s = s - slope * absolute(q + length - query_length - k)
        return s if score is None else score(s, b, h, q, k)

    return change


@functools.lru_cache(maxsize=64)
def _get_cap(softcap):
    """One function of each cap, which is traced once."""
    return keep_trace(lambda s, b, h, q, k: softcap * tanh(s / softcap))


def get_schedule(num_splits, key, is_paged):
    """`choose_schedule` for a call's keys."""
    if num_splits in (None, 0):
        return None
    return choose_schedule(num_splits, get_dtype(key), operator.index(key.shape[1]) if is_paged else None)


def choose_schedule(num_splits, dtype, page):
    """The keys of a schedule with this number of splits: 1 is a row's keys by themselves, in tiles that do not depend on others.
    `page` is how many rows a page has, or None."""
    if num_splits in (None, 0):
        return None
    if num_splits != 1:
        raise ValueError(f"num_splits is {num_splits}; only 0 is possible, where calls choose how keys are split, and 1")
    tile = _KEY_TILES.get(dtype, 64)
    if page is not None:
        # A tile is a part of a page, or some of them.
        common, step = math.gcd(page, tile), math.lcm(page, 16)
        tile = common if page >= tile and common >= 16 else step * max(1, tile // step)
    return f"key_tile={tile},split_keys={_MOST_KEYS // tile * tile}"


def _check(dropout_p, return_attn_probs, return_lse):
    if dropout_p:
        raise ValueError(f"dropout_p is {dropout_p}; only 0 is possible, as kernels have no random numbers")
    if return_attn_probs and return_lse:
        raise ValueError("return_attn_probs returns three results and return_lse two; give one of them")


def _swap(array):
    """(batch, length, heads, D) as (batch, heads, length, D), and back."""
    return array.swapaxes(1, 2)


def _check_rank(name, array, offsets=None):
    # Of other ranks other dimensions would be exchanged, and attention takes what comes of three.
    if not is_array(array) or len(array.shape) != 4:
        found = f"has {len(array.shape)} dimensions" if is_array(array) else f"is a {type(array).__name__}"
        expected = f"without {offsets} it is" if offsets else "expected"
        raise ValueError(f"{name} {found}; {expected} (batch, length, heads, head dimension)")


def _attend(q, k, v, arrays, return_lse, out, options):
    names = "query_offsets", "key_offsets", "page_table", "key_lengths"
    return attention(q, k, v, return_lse=return_lse, out=out, **dict(zip(names, arrays)), **options)


def attend_rows(
    q,
    k,
    v,
    offsets,
    options,
    return_attn_probs,
    return_lse,
    page_table=None,
    key_lengths=None,
    out=None,
    *,
    names,
    keep=None,
):
    """Attention of rows with the heads behind them, packed where there are offsets, and of keys in pages where there is a table.
    `names` are what the caller calls the arguments of `attention`, for errors, and `keep` is given the function
    of the call's variant once it is done."""
    are_packed = offsets[1] is not None or page_table is not None
    of_queries, of_keys = (offsets[0] is not None, "query_offsets"), (are_packed, "key_offsets")
    swapped = []
    for name, array, (is_packed, its_offsets) in (("query", q, of_queries), ("key", k, of_keys), ("value", v, of_keys)):
        if not is_packed:
            swapped.append(names.get(name, name))
            _check_rank(swapped[-1], array, names.get(its_offsets))
    place = out
    if offsets[0] is None:
        if out is not None:
            place = put_heads_first(out, (*q.shape[:3], v.shape[-1]))
        q = _swap(q)
    k, v = (k, v) if are_packed else (_swap(k), _swap(v))
    arrays = *offsets, page_table, key_lengths
    returns_two = return_attn_probs or return_lse
    of_sequences = get_arrays(*arrays)
    if is_compiling():
        results = _attend(q, k, v, arrays, returns_two, place, options)
    else:
        try:
            if "key_scale" in options or not of_sequences:
                results = _attend(q, k, v, arrays, returns_two, place, options)
            else:
                call = read_call(q, k, v, get_key(*arrays, k), of_sequences, return_lse=returns_two, **options)
                results = run_call(*call, place)
                if keep is not None:
                    keep(call[0].function)
        except (TypeError, ValueError, NotImplementedError) as error:
            renamed = rename(error, swapped, **names)
            if renamed is error:
                raise
            raise renamed from None
    if offsets[0] is None:
        results = swap_results(results, returns_two, out)
    return (*results, None) if return_attn_probs else results


def get_scales(q_descale, k_descale, v_descale, k, v, q=None, names=("k", "v")):
    """The options of `attention` that scales are. Queries have one where `q` is given, which may have 8 bits. `names` are what the
    caller calls keys and values."""

    def is_quantized(array):
        # Most arrays have larger elements, and the name of a type takes a while.
        return is_array(array) and getattr(array.dtype, "itemsize", 1) == 1 and get_dtype(array) in QUANTIZED

    if q_descale is not None and not is_quantized(q):
        raise ValueError("q_descale is given, and it is the scale of queries of 8 bits in a batch; other queries are float16 or bfloat16: leave it out")
    if k_descale is None and v_descale is None:
        if not any([is_quantized(array) for array in (q, k, v)]):
            return {}
        for name, array in zip(names, (k, v)):
            if is_quantized(array) and get_dtype(array) == "int8":
                raise ValueError(
                    f"{name} is int8, and k_descale and v_descale are left out; give them, as only those of float8_e4m3fn are 1 if both are left out"
                )

    def get_scale(scale, array):
        # As in FlashAttention, one that is left out is 1.
        return 1 if scale is None and is_quantized(array) else scale

    scales = {"key_scale": get_scale(k_descale, k), "value_scale": get_scale(v_descale, v)}
    if is_quantized(q):
        # FlashAttention has one for all queries that read the keys of a head.
        heads, key_heads = (array.shape[2] if is_array(array) and len(array.shape) == 4 else 0 for array in (q, k))
        is_of_keys = is_array(q_descale) and len(q_descale.shape) == 2 and 0 < q_descale.shape[1] == key_heads < heads
        if is_of_keys and heads % key_heads == 0:
            repeat = q_descale.repeat_interleave if is_tensor(q_descale) else q_descale.repeat
            q_descale = repeat(heads // key_heads, 1)
        scales["query_scale"] = get_scale(q_descale, q)
    return scales


def put_heads_first(out, shape):
    """The array that becomes a result of a shape, as `attention` has it."""
    _check_rank("out", out)
    if tuple(out.shape) != shape:
        raise ValueError(f"out has the shape {tuple(out.shape)}; expected {shape}")
    return _swap(out)


def swap_results(results, has_lse, out=None):
    """Results of `attention` with the rows of the output before the heads; `out` is the output if it was given."""
    output = results[0] if has_lse else results
    output = swap_dense(output) if out is None else out
    return (output, results[1]) if has_lse else output


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
    out=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
):
    """FlashAttention's function of this name, by `attention`.

    Args:
      q: (batch, length, heads, D); arrays are such as `attention` takes, on the CPU, too.
      k, v: (batch, key length, key heads, D).
      dropout_p: 0.
      softmax_scale: 1 / sqrt(D) if left out.
      causal: A query sees no key behind it; the last query sees the last key. An array of bool or int32, (batch,), says for
        which sequences; it is read at each call.
      window_size: How many keys before and behind its own a query sees; -1 or None is unbounded.
      softcap: s becomes softcap * tanh(s / softcap); 0 for none.
      alibi_slopes: (heads,) or (batch, heads): -slope * |q + key length - query length - k| is added to scores.
      deterministic: Gradients are deterministic in any case.
      return_attn_probs: Returns (output, log-sum-exp, None), as there are no probabilities without dropout.
      return_lse: Returns (output, log-sum-exp).
      learnable_sink: (heads,): `sink` of `attention`.
      mask: What is seen in addition: a `Mask`, or a function of b, h, q and k.
      score: A function of s, b, h, q and k that gets scores after softcap and alibi_slopes.
      out: The array that becomes the result, as that of `attention`, shaped like it.
      k_descale, v_descale: `key_scale` and `value_scale` of `attention`, for k and v of float8_e4m3fn or int8: a number, or
        (batch, key heads). One that is left out is 1, but k and v of int8 need at least one.
      q_descale: `query_scale` of `attention`, for q of float8_e4m3fn: a number, (batch, heads), or (batch, key heads).

    Returns:
      An array like q, (batch, length, heads, Dv); log-sum-exps are (batch, heads, length).

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here.
    """
    _check(dropout_p, return_attn_probs, return_lse)
    check_causal(causal, q)
    options = dict(mask=get_mask(causal, window_size, mask), score=get_score(softcap, alibi_slopes, score))
    options.update(scale=softmax_scale, sink=learnable_sink, **get_scales(q_descale, k_descale, v_descale, k, v, q))
    return attend_rows(q, k, v, (None, None), options, return_attn_probs, return_lse, out=out, names=NAMES)


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
    seqused_k=None,
    num_splits=0,
    mask=None,
    score=None,
    out=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
):
    """FlashAttention's function of this name: `attention` of packed rows.

    Args:
      q: (rows of all sequences, heads, D); without cu_seqlens_q (sequences, length, heads, D).
      k, v: (rows of all sequences, key heads, D), without cu_seqlens_k as q, and with block_table
        (pages, rows of a page, key heads, D).
      cu_seqlens_q, cu_seqlens_k: int32 or int64 of shape (sequences + 1,): `query_offsets` and `key_offsets` of `attention`.
      max_seqlen_q, max_seqlen_k: Not needed, and not looked at.
      block_table: int32 of shape (sequences, pages of a sequence): `page_table` of `attention`. How many keys there are say
        seqused_k, or else cu_seqlens_k.
      seqused_k: int32 of shape (sequences,): how many keys of each sequence there are, to whose last one masks are aligned. Beside
        cu_seqlens_k without a table, masks and score functions of the caller see all keys between the offsets as its length.
      num_splits: 0: how keys are split is chosen by sizes. With 1 they are not, up to 2^20 for each row, and a token has the same bits
        whatever else is in the call.

    Masks and functions see sequences instead of batches. The other arguments are as for `flash_attn_func`.

    Returns:
      An array (rows, heads, Dv), row-major; log-sum-exps are (heads, rows). Rows of no sequence are 0, and -inf.

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here.
    """
    if not (is_compiling() or checking.is_on):
        # In the order of `keep` below.
        results = _call_again(
            q, k, v, None, learnable_sink, cu_seqlens_q, cu_seqlens_k, block_table, seqused_k, out,
            causal, window_size, softcap, num_splits, softmax_scale, return_lse,
            dropout_p, return_attn_probs, alibi_slopes, mask, score, q_descale, k_descale, v_descale,
        )  # fmt: skip
        if results is not None:
            return results
    _check(dropout_p, return_attn_probs, return_lse)
    if cu_seqlens_q is None and cu_seqlens_k is None and block_table is None and seqused_k is None:
        raise ValueError("neither cu_seqlens_q nor cu_seqlens_k is given; call flash_attn_func for a batch that is not packed")
    check_causal(causal, q, cu_seqlens_q)
    names = _name("cu_seqlens_q", "cu_seqlens_k", seqused_k)
    used, key_offsets, *of_keys = _get_keys(cu_seqlens_k, seqused_k, block_table, names)
    options = dict(mask=get_mask(causal, window_size, mask, used), score=get_score(softcap, alibi_slopes, score, used))
    options.update(scale=softmax_scale, sink=learnable_sink, lengths=used, **get_scales(q_descale, k_descale, v_descale, k, v))
    options["schedule"] = get_schedule(num_splits, k, block_table is not None)
    keep = None
    # Kernels get the arrays that are given: of packed queries, and of keys in pages, with lengths, or packed ones.
    is_paged = block_table is not None and seqused_k is not None and cu_seqlens_k is None
    are_given = cu_seqlens_q is not None and (is_paged or (block_table is None and seqused_k is None))
    numbers = causal, window_size, softcap, num_splits, softmax_scale, return_lse, dropout_p, return_attn_probs
    others = alibi_slopes, mask, score, q_descale, k_descale, v_descale
    if are_given and not return_attn_probs and all([other is None for other in others]) and are_numbers(*numbers):
        arrays = q, k, v, None, learnable_sink, cu_seqlens_q, cu_seqlens_k, block_table, seqused_k, out
        keep = lambda function: _shortcut.keep(function, *arrays, *numbers, *others)
    given = (cu_seqlens_q, key_offsets), options, return_attn_probs, return_lse, *of_keys
    return attend_rows(q, k, v, *given, out=out, names={**NAMES, **names}, keep=keep)


def _name(query_offsets, key_offsets, used):
    """What the caller of a function with these offsets calls the arrays of sequences."""
    of_lengths = f"({key_offsets}[1:] - {key_offsets}[:-1])" if used is None else "seqused_k"
    return dict(query_offsets=query_offsets, key_offsets=key_offsets, page_table="block_table", key_lengths=of_lengths, lengths=of_lengths)


def _check_used(used, offsets, name):
    """Raises an error, where the host may look, for more keys than there are: masks are aligned to the last of them."""
    if not is_array(offsets) or offsets.shape[:1] != (used.shape[0] + 1,) or not (may_look(used) and may_look(offsets)):
        return
    room = offsets[1:] - offsets[:-1]
    wrong = (used < 0) | (used > room)
    if wrong.any():
        b = int(wrong.nonzero()[0][0])
        raise ValueError(f"seqused_k[{b}] is {int(used[b])}; lengths are from 0 to {int(room[b])}, the keys that {name} has for the sequence")


def _get_keys(offsets, used, table, names):
    """(used keys that masks must know, key_offsets, page_table, key_lengths) of what says where keys are."""
    if used is not None:
        check_int32("seqused_k", used, 1, "1: how many keys of each sequence there are")
    if table is None:
        if used is not None and offsets is not None:
            _check_used(used, offsets, names["key_offsets"])
        return (used, offsets, None, None) if offsets is not None else (None, None, None, used)
    check_int32("block_table", table, 2, "2: the pages of each sequence, in their order")
    if used is None:
        if offsets is None:
            raise ValueError("block_table is given without seqused_k, which says how many keys each sequence has")
        try:
            get_key(None, offsets)
        except (TypeError, ValueError) as error:
            raise rename(error, **names) from None
        used = cast(offsets[1:] - offsets[:-1], "int32")
    return None, None, table, used


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
      seqused_k, block_table: As for `flash_attn_varlen_func`.
      num_splits: As for `flash_attn_varlen_func`; None is 0.
      mask, score: As for `flash_attn_func`.

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here.
    """
    if _is_by_sequence(is_causal):
        kind = type(is_causal).__name__
        raise TypeError(f"is_causal is a {kind}; expected True or False, as which sequences are causal says mask=causal(sequences=...)")
    if cu_seq_q is None or (cu_seq_k is None and seqused_k is None):
        raise ValueError(
            "cu_seq_q, and cu_seq_k or seqused_k, are needed; where one side is a batch, call attention with offsets of the other"
        )
    names = _name("cu_seq_q", "cu_seq_k", seqused_k)
    used, key_offsets, *of_keys = _get_keys(cu_seq_k, seqused_k, block_table, names)
    schedule = get_schedule(num_splits, key, block_table is not None)
    if not enable_gqa and query.shape[-2] != key.shape[-2]:
        raise ValueError(f"query has {query.shape[-2]} heads, key has {key.shape[-2]}; enable_gqa=True allows that")
    options = dict(mask=get_mask(is_causal, window_size or (-1, -1), mask, used), score=score, scale=scale, lengths=used)
    options["schedule"] = schedule
    returns_lse = return_aux is not None and return_aux.lse
    return attend_rows(query, key, value, (cu_seq_q, key_offsets), options, False, returns_lse, *of_keys, names=names)
